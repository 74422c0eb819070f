//! The engine: one seat per key, and the algorithm that the options name.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use ylock_core::engine::{
    AcquisitionId, Engine, Grant, Holder, Holding, Inspection, LossReason, Meter, Patience, Release, Renewal,
    Request, Ticket, Waiter,
};
use ylock_core::environment::{Environment, SystemEnvironment};
use ylock_core::options::check_lease;
use ylock_core::retry_deadline::RetryDeadline;
use ylock_core::{Guarantees, Key, Options, Result};

use crate::NAME;
use crate::algorithm::clock::{GlobalTime, HybridClock, Stamps, TimeCell};
use crate::algorithm::judge::Place;
use crate::algorithm::seat::{Client, Seat};
use crate::algorithm::store::{Partition, Slot, Store};
use crate::algorithm::{lease, queue, shadow_rows};
use crate::driver::Table;
use crate::options::{CassandraOptions, Clock, Protocol, check_tokens};
use crate::seats::Seats;

/// The most requests that one call of `close` has on their way at once, and the releases to begin with.
const CONCURRENT: usize = 64;
/// The time for which a request to give up a lock is kept, in leases of the holder: it is found at the next renewal.
const REVOKE_LEASES: u32 = 2;

/// Locks in a table of Cassandra, by the algorithm that the options name.
///
/// One engine is one client: it has a row of its own in every partition it uses.
#[derive(Debug)]
pub struct CassandraEngine {
    client: Arc<Client>,
    seats: Arc<Seats>,
    protocol: Protocol,
    request_timeout: Duration,
    /// The client's store, where that is the real one: for its request counter.
    table: Option<Arc<Table>>,
    /// The meter of the table, where there is one.
    meter: Meter,
}

impl CassandraEngine {
    /// Connects to a cluster, checks or creates the schema, and makes a client.
    ///
    /// # Errors
    /// [`Config`](ylock_core::ErrorKind::Config) for bad options, a failed login or a missing table;
    /// [`Unavailable`](ylock_core::ErrorKind::Unavailable) if no node answers.
    pub async fn connect(options: &CassandraOptions) -> Result<Self> {
        let environment = SystemEnvironment::shared();
        let table = Arc::new(Table::connect(options, &environment).await?);
        let engine = Self::over(Arc::clone(&table) as Arc<dyn Store>, environment, options);
        let engine = match options.clock() {
            Clock::Hlc => engine,
            Clock::GlobalTime => engine.with_global_time(Arc::clone(&table) as Arc<dyn TimeCell>),
        };
        Ok(Self { meter: table.meter().clone(), table: Some(table), ..engine })
    }

    /// Creates a client over any store and environment; a simulation brings its own.
    pub fn over(
        store: Arc<dyn Store>,
        environment: Arc<dyn Environment>,
        options: &CassandraOptions,
    ) -> Self {
        let token_ttl = u32::try_from(options.token_ttl().as_secs()).unwrap_or(u32::MAX);
        let client = Client {
            slot: Slot::from_u128(environment.random_identity()),
            store,
            environment,
            clock: HybridClock::default(),
            global_time: None,
            stamps: Stamps::default(),
            max_clock_skew: options.max_clock_skew(),
            token_ttl,
        };
        Self {
            client: Arc::new(client),
            seats: Arc::default(),
            protocol: options.protocol(),
            request_timeout: options.request_timeout(),
            table: None,
            meter: Meter::default(),
        }
    }

    /// Returns the client with its places in the queue taken from the time in this cell. To be called before anything is acquired.
    #[must_use]
    pub fn with_global_time(mut self, cell: Arc<dyn TimeCell>) -> Self {
        if let Some(client) = Arc::get_mut(&mut self.client) {
            let time = GlobalTime::new(cell, Arc::clone(&client.environment));
            time.keep_going();
            client.global_time = Some(time);
        }
        self
    }

    /// Returns how often this client met the ticket of a client whose clock is so far ahead that it was not followed.
    pub fn refused_tickets(&self) -> u64 {
        self.client.clock.refused()
    }

    /// Returns how many requests this client has sent to Cassandra, by the driver's own counters.
    pub fn requests(&self) -> u64 {
        self.table.as_ref().map_or(0, |table| table.requests())
    }

    fn check_lease(&self, lease: Duration) -> Result<()> {
        check_lease(lease, self.request_timeout)?;
        let token_ttl = Duration::from_secs(self.client.token_ttl.into());
        check_tokens(lease, self.client.max_clock_skew, token_ttl)
    }

    fn seat(&self, key: &Key) -> Arc<Seat> {
        self.seats.at(key, &self.client)
    }

    /// Asks for the global time, because a place in the queue needs the time as it is now. Where the store does not answer, the time
    /// that was known last has to do.
    async fn ask_for_the_time(&self, lease: Duration) -> Result<()> {
        let Some(time) = &self.client.global_time else { return Ok(()) };
        let mut silence = RetryDeadline::new(&*self.client.environment, lease);
        loop {
            match time.current().await {
                Err(error) if time.latest() == 0 => silence.retry_or_fail(error).await?,
                _ => return Ok(()),
            }
        }
    }
}

#[async_trait]
impl Engine for CassandraEngine {
    fn name(&self) -> &'static str {
        NAME
    }

    fn guarantees(&self) -> Guarantees {
        match self.protocol {
            Protocol::Queue => Guarantees::ALL,
            Protocol::ShadowRows => Guarantees::ALL.with_fair(false).with_shared_reads(false),
        }
    }

    fn environment(&self) -> Arc<dyn Environment> {
        Arc::clone(&self.client.environment)
    }

    fn check(&self, options: &Options) -> Result<()> {
        self.check_lease(options.lease()).map_err(|error| error.with_engine(NAME))
    }

    fn ticket(&self) -> Ticket {
        self.client.ticket_after(None)
    }

    fn meter(&self) -> &Meter {
        &self.meter
    }

    fn concurrent_releases(&self) -> Option<usize> {
        Some(CONCURRENT)
    }

    fn in_memory(&self) -> Vec<(&'static str, usize)> {
        let (seats, left) = self.seats.count();
        vec![("seats", seats), ("seats that were left", left)]
    }

    async fn acquire(&self, request: &Request) -> Result<Option<Grant>> {
        self.check_lease(request.lease)?;
        self.ask_for_the_time(request.lease).await?;
        let seat = self.seat(&request.key);
        let answer = match (self.protocol, request.patience) {
            (Protocol::Queue, Patience::Queue) => queue::get_lock(&seat, request).await.map(Some),
            (Protocol::Queue, Patience::Try) => {
                queue::try_get_lock(&seat, request, self.request_timeout).await
            }
            (Protocol::ShadowRows, Patience::Queue) => shadow_rows::get_lock(&seat, request).await.map(Some),
            (Protocol::ShadowRows, Patience::Try) => shadow_rows::try_get_lock(&seat, request).await,
        };
        // No release follows an attempt that was refused.
        if matches!(answer, Ok(None)) {
            self.seats.left(&request.key, &self.client.environment);
        }
        answer
    }

    async fn renew(&self, holdings: &[Holding]) -> Vec<Result<Renewal>> {
        let seated: Vec<_> =
            holdings.iter().map(|holding| (self.seats.find(&holding.grant.key), holding.clone())).collect();
        let renewals = seated.into_iter().map(|(seat, holding)| async move {
            match seat {
                Some(seat) => lease::renew(&seat, &holding).await,
                // Given back, and so long ago that nothing of it is left.
                None => Ok(Renewal::Lost(LossReason::Gone)),
            }
        });
        // All at once: were there a limit, a few for which the store is slow would keep others from beginning until their leases are
        // over. The caller says how many there are.
        join_all(renewals).await
    }

    async fn release(&self, key: &Key, id: AcquisitionId, next: Option<&Request>) -> Result<Release> {
        let Some(seat) = self.seats.find(key) else { return Ok(Release::WasGone) };
        // Whatever becomes of this attempt, also if it is dropped: what it has decided must arrive, and the seat must go.
        let _left = Left { seats: &self.seats, key, environment: &self.client.environment };
        // Without a queue there is nothing to join beforehand.
        let next = next.filter(|_| self.protocol == Protocol::Queue);
        let was_there = seat.leave(id, next).await?;
        Ok(if was_there { Release::Released } else { Release::WasGone })
    }

    async fn inspect(&self, key: &Key) -> Result<Inspection> {
        Ok(inspect(&self.client.store.read(key).await?))
    }

    async fn revoke(&self, key: &Key, id: AcquisitionId) -> Result<bool> {
        let look = self.client.store.read(key).await?;
        let is_holder = inspect(&look).holders.iter().any(|holder| holder.id == id);
        let found = look.rows.iter().filter(|_| is_holder).find_map(|seen| {
            let row = seen.row.as_ref().filter(|row| row.acquisition == id)?;
            Some((seen.slot, row.lease, seen.claim?))
        });
        let Some((slot, lease, claim)) = found else { return Ok(false) };
        // The tokens of a row grow from one acquisition to the next, so they can serve as write timestamps of the cell.
        let stamp = i64::try_from(claim.token.get()).unwrap_or(i64::MAX);
        let ttl = self.client.row_ttl(lease.saturating_mul(REVOKE_LEASES));
        self.client.store.revoke(key, slot, id, stamp, ttl).await?;
        Ok(true)
    }

    /// Removes the client's idle rows: at a name that many clients use once, they would slow down every look.
    async fn close(&self) -> Result<()> {
        let erasures = self.seats.take().into_iter().map(|seat| async move { seat.erase().await });
        let erased = stream::iter(erasures).buffer_unordered(CONCURRENT);
        let results: Vec<Result<()>> = erased.collect().await;
        results.into_iter().collect()
    }
}

/// Says that a seat was left, when it is dropped.
struct Left<'a> {
    seats: &'a Arc<Seats>,
    key: &'a Key,
    environment: &'a Arc<dyn Environment>,
}

impl Drop for Left<'_> {
    fn drop(&mut self) {
        self.seats.left(self.key, self.environment);
    }
}

/// Returns the holders and waiters that a partition shows.
fn inspect(look: &Partition) -> Inspection {
    let mut places = Vec::new();
    for (seen, row) in look.rows.iter().filter_map(|seen| Some((seen, seen.row.as_ref()?))) {
        places.extend(Place::all_of(seen.slot, row).map(|place| (place, row, seen.claim)));
    }
    places.sort_by_key(|(place, ..)| (place.ticket, place.slot));
    let mut inspection = Inspection::default();
    for &(place, row, claim) in &places {
        let Place { acquisition: id, owner, mode, .. } = place;
        let shown = Waiter::new(id, owner, row.client.clone(), mode, time(row.since));
        if is_inside(&place, places.iter().map(|(other, ..)| other)) {
            let token = claim.map(|claim| claim.token.into());
            inspection.holders.push(Holder::of(shown, token));
        } else {
            inspection.queue.push(shown);
        }
    }
    inspection
}

/// Returns whether this place is inside: it says so, or it has claimed and no other client that conflicts says so or has claimed with
/// an earlier ticket.
fn is_inside<'a>(place: &Place, all: impl Iterator<Item = &'a Place>) -> bool {
    let precedes = |other: &Place| {
        other.is_held() || (other.is_in_main() && (other.ticket, other.slot) < (place.ticket, place.slot))
    };
    let mut rivals = all.filter(|other| other.slot != place.slot && other.mode.conflicts_with(place.mode));
    place.is_held() || (place.is_in_main() && !rivals.any(precedes))
}

fn time(micros: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(u64::try_from(micros).unwrap_or_default())
}
