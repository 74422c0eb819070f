//! The engine: one row per key, and the algorithm that the options name.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use ylock_core::engine::{
    AcquisitionId, Diagnostics, EarlyRenewals, Engine, Grant, Holding, Inspection, KeyPage, LossReason,
    Meter, Release, Renewal, Request, Ticket,
};
use ylock_core::environment::{Environment, SystemEnvironment};
use ylock_core::options::check_lease;
use ylock_core::{Guarantees, JobRun, Key, Options, Result};

use crate::NAME;
use crate::algorithm::clock::{GlobalTime, HybridClock, Stamps, TimeCell};
use crate::algorithm::own_row::{Client, OwnRow};
use crate::algorithm::runs::RunCell;
use crate::algorithm::store::{Slot, Store};
use crate::algorithm::{acquire, inspect, release, renew, runs};
use crate::driver::Table;
use crate::hints::{Carrier, Exchange, HintCounts, Networks, Socket};
use crate::options::{CassandraOptions, Clock, Notify, Protocol, check_tokens};
use crate::own_rows::OwnRows;

/// The most requests that one call of `close` has on their way at once, and the releases to begin with.
const CONCURRENT: usize = 64;

/// Locks in a table of Cassandra, by the algorithm that the options name.
///
/// One engine is one client: it has a row of its own in every partition it uses.
#[derive(Debug)]
pub struct CassandraEngine {
    client: Arc<Client>,
    own_rows: Arc<OwnRows>,
    protocol: Protocol,
    request_timeout: Duration,
    /// The client's store, where that is the real one: for its request counter.
    table: Option<Arc<Table>>,
    /// The meter of the table, where there is one.
    meter: Meter,
    /// How hints make holders renew.
    early_renewals: EarlyRenewals,
    /// How waiters learn of their turn, in words.
    waiters: String,
}

impl CassandraEngine {
    /// Connects to a cluster, checks or creates the schema, and makes a client.
    ///
    /// # Errors
    /// [`Config`](ylock_core::ErrorKind::Config) for bad options, a failed login or a missing table;
    /// [`Unavailable`](ylock_core::ErrorKind::Unavailable) if no node answers.
    pub async fn connect(options: &CassandraOptions) -> Result<Self> {
        let environment = SystemEnvironment::shared();
        let table = Table::connect(options, &environment).await?;
        let (table, socket, waiters) = match Socket::open(table.options(), &table.nodes()?, &environment)? {
            Ok(socket) => {
                let waiters = format!("are told at {}", socket.address());
                (table.of_told_client(), Some(socket), waiters)
            }
            Err(reason) => (table, None, format!("look by themselves: {reason}")),
        };
        let table = Arc::new(table);
        let engine = Self::over(Arc::clone(&table) as Arc<dyn Store>, environment, table.options());
        let engine = engine.with_runs(Arc::clone(&table) as Arc<dyn RunCell>);
        let engine = match options.clock() {
            Clock::Hlc => engine,
            Clock::GlobalTime => engine.with_global_time(Arc::clone(&table) as Arc<dyn TimeCell>),
        };
        let engine = Self { meter: table.meter().clone(), table: Some(table), waiters, ..engine };
        Ok(match socket {
            Some(socket) => engine.with_hints(Arc::new(socket), options),
            None => engine,
        })
    }

    /// Creates a client over any store and environment; a simulation brings its own.
    #[doc(hidden)]
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
            expiry: options.expiry(),
            max_clock_skew: options.max_clock_skew(),
            token_ttl,
            hints: None,
            runs: None,
        };
        Self {
            client: Arc::new(client),
            own_rows: Arc::default(),
            protocol: options.protocol(),
            request_timeout: options.request_timeout(),
            table: None,
            meter: Meter::default(),
            early_renewals: EarlyRenewals::default(),
            waiters: String::new(),
        }
    }

    /// Returns the client with its places in the queue taken from the time in this cell. To be called before anything is acquired.
    #[doc(hidden)]
    #[must_use]
    pub fn with_global_time(mut self, cell: Arc<dyn TimeCell>) -> Self {
        if let Some(client) = Arc::get_mut(&mut self.client) {
            let time = GlobalTime::new(cell, Arc::clone(&client.environment));
            time.keep_going();
            client.global_time = Some(time);
        }
        self
    }

    /// Returns the client with the last runs of jobs kept in these cells. To be called before anything is acquired.
    #[doc(hidden)]
    #[must_use]
    pub fn with_runs(mut self, runs: Arc<dyn RunCell>) -> Self {
        if let Some(client) = Arc::get_mut(&mut self.client) {
            client.runs = Some(runs);
        }
        self
    }

    /// Returns the client with hints from and to other clients over this carrier. To be called before anything is acquired.
    #[doc(hidden)]
    #[must_use]
    pub fn with_hints(mut self, carrier: Arc<dyn Carrier>, options: &CassandraOptions) -> Self {
        if let Some(client) = Arc::get_mut(&mut self.client) {
            let allowed = match options.notify() {
                Notify::Auto => Some(Networks::around(carrier.address().ip()).unwrap_or_default()),
                Notify::Off | Notify::Udp => options.notify_allow().cloned(),
            };
            let environment = Arc::clone(&client.environment);
            client.hints = Some(Exchange::start(carrier, environment, allowed, self.early_renewals.clone()));
        }
        self
    }

    /// Returns how many hints this client has sent and received; none where [`notify`](CassandraOptions::with_notify) does not tell.
    pub fn hints(&self) -> HintCounts {
        self.client.hints.as_ref().map(|hints| hints.counts()).unwrap_or_default()
    }

    /// Returns how often this client met the ticket of a client whose clock is so far ahead that it was not followed.
    pub fn refused_tickets(&self) -> u64 {
        self.client.clock.refused()
    }

    /// Returns how many requests this client has sent to Cassandra, by the driver's own counters. Over a session that the program has handed
    /// over, the requests that the program and other clients send over it are counted too: then `ylock_store_requests_total` of the crate
    /// `ylock-metrics` has the number.
    pub fn requests(&self) -> u64 {
        self.table.as_ref().map_or(0, |table| table.requests())
    }

    fn check_lease(&self, lease: Duration) -> Result<()> {
        check_lease(lease, self.request_timeout)?;
        let token_ttl = Duration::from_secs(self.client.token_ttl.into());
        check_tokens(lease, self.client.max_clock_skew, token_ttl)
    }

    fn own_row(&self, key: &Key) -> Arc<OwnRow> {
        self.own_rows.at(key, &self.client)
    }
}

#[async_trait]
impl Engine for CassandraEngine {
    fn name(&self) -> &'static str {
        NAME
    }

    fn guarantees(&self) -> Guarantees {
        let queue = self.protocol == Protocol::Queue;
        Guarantees::NONE
            .with_exclusive(true)
            .with_fair(queue)
            .with_fencing(true)
            .with_shared_reads(queue)
            .with_durable(true)
            .with_exclusive_after_failover(true)
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

    fn early_renewals(&self) -> Option<&EarlyRenewals> {
        Some(&self.early_renewals)
    }

    fn concurrent_releases(&self) -> Option<usize> {
        Some(CONCURRENT)
    }

    fn in_memory(&self) -> Vec<(&'static str, usize)> {
        let (own_rows, left) = self.own_rows.count();
        let keys = self.client.hints.as_ref().map_or(0, |hints| hints.keys());
        vec![("rows", own_rows), ("rows that were left", left), ("keys of hints", keys)]
    }

    async fn acquire(&self, request: &Request) -> Result<Option<Grant>> {
        self.check_lease(request.lease)?;
        acquire::ask_for_the_time(&self.client, request.lease).await?;
        let own_row = self.own_row(&request.key);
        // With a request timeout of a fifth of the lease, longer than until a holder renews.
        let longest = (self.request_timeout * 2).min(request.lease);
        let answer = acquire::acquire(&own_row, request, self.protocol, longest).await;
        // No release follows an attempt that was refused.
        if matches!(answer, Ok(None)) {
            self.own_rows.left(&request.key, &self.client.environment);
        }
        answer
    }

    async fn renew(&self, holdings: &[Holding]) -> Vec<Result<Renewal>> {
        let rows: Vec<_> = holdings
            .iter()
            .map(|holding| (self.own_rows.find(&holding.grant.key), holding.clone()))
            .collect();
        let renewals = rows.into_iter().map(|(own_row, holding)| async move {
            match own_row {
                Some(own_row) => renew::renew(&own_row, &holding).await,
                // Given back, and so long ago that nothing of it is left.
                None => Ok(Renewal::Lost(LossReason::Gone)),
            }
        });
        // All at once: were there a limit, a few for which the store is slow would keep others from beginning until their leases are
        // over. The caller says how many there are.
        join_all(renewals).await
    }

    async fn release(&self, key: &Key, id: AcquisitionId, next: Option<&Request>) -> Result<Release> {
        let Some(own_row) = self.own_rows.find(key) else { return Ok(Release::WasGone) };
        // Whatever becomes of this attempt, also if it is dropped: what it has decided must arrive, and the row must go.
        let _left = Left { own_rows: &self.own_rows, key, environment: &self.client.environment };
        release::release(&own_row, id, next, self.protocol).await
    }

    async fn inspect(&self, key: &Key) -> Result<Inspection> {
        let own_row = self.own_row(key);
        // What this look shows of other clients is worth remembering, for as long as what an attempt has seen.
        let _left = Left { own_rows: &self.own_rows, key, environment: &self.client.environment };
        inspect::inspect(&own_row).await
    }

    async fn keys(&self, group: Option<&str>, after: Option<&str>) -> Result<KeyPage> {
        inspect::keys(&*self.client.store, group, after).await
    }

    async fn revoke(&self, key: &Key, id: AcquisitionId) -> Result<bool> {
        let own_row = self.own_row(key);
        let _left = Left { own_rows: &self.own_rows, key, environment: &self.client.environment };
        inspect::revoke(&own_row, id).await
    }

    async fn last_run(&self, key: &Key) -> Result<Option<JobRun>> {
        runs::last_run(&self.client, key).await
    }

    async fn store_run(&self, key: &Key, run: &JobRun, kept: Duration) -> Result<bool> {
        runs::store_run(&self.client, key, run, kept).await
    }

    async fn diagnose(&self) -> Result<Diagnostics> {
        match &self.table {
            Some(table) => {
                let mut seen = table.diagnose().await?;
                seen.facts.push(("waiters", self.waiters.clone()));
                Ok(seen)
            }
            // Of the store of a simulation nothing is told.
            None => Ok(Diagnostics::default()),
        }
    }

    /// Removes the client's idle rows: at a name that many clients use once, they would slow down every look.
    async fn close(&self) -> Result<()> {
        let erasures = self.own_rows.take().into_iter().map(|own_row| async move { own_row.erase().await });
        let erased = stream::iter(erasures).buffer_unordered(CONCURRENT);
        let results: Vec<Result<()>> = erased.collect().await;
        results.into_iter().collect()
    }
}

/// Says that a client's row was left, when it is dropped.
struct Left<'a> {
    own_rows: &'a Arc<OwnRows>,
    key: &'a Key,
    environment: &'a Arc<dyn Environment>,
}

impl Drop for Left<'_> {
    fn drop(&mut self) {
        self.own_rows.left(self.key, self.environment);
    }
}
