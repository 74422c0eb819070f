//! The engine: one script per operation, and what this client knows in addition to what the server has.

use std::borrow::Cow;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use ylock_core::engine::{
    AcquisitionId, Engine, Grant, Holding, Inspection, LossReason, Meter, Release, Renewal, Request, Ticket,
};
use ylock_core::environment::{Environment, Moment, SystemEnvironment};
use ylock_core::options::check_lease;
use ylock_core::{Guarantees, Key, Options, Result};

use crate::acquire::{Acquire, alive, mode_word};
use crate::driver::{Answer, Call, Heard, Inbox, Store, scripts};
use crate::options::{RedisOptions, Topology, Waiting};
use crate::records::Records;
use crate::{NAME, inspect, place};

/// The time for which a request without an answer may still be on its way: longer than any connection holds it back.
const LATE: Duration = Duration::from_secs(60);
/// The age at which the guess of the server's clock is made anew.
const CLOCK_AGE: Duration = Duration::from_secs(10);

/// The number of times that the server is asked for its time in a row: this many, or up to [`MOST_TRIPS`] until a trip was short.
const TRIPS: u32 = 3;
const MOST_TRIPS: u32 = 8;
const SHORT_TRIP: Duration = Duration::from_micros(500);

/// The engine for locks on Redis: each lock is one hash.
#[derive(Debug)]
pub struct RedisEngine {
    client: Arc<Client>,
    request_timeout: Duration,
    guarantees: Guarantees,
}

/// The state of one client of the engine.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) store: Arc<Store>,
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) waiting: Waiting,
    pub(crate) min_replicas: u32,
    /// True if tokens grow from holder to holder, also when another server takes over; otherwise there are no tokens.
    pub(crate) fencing: bool,
    pub(crate) records: Arc<Records>,
    /// The beginning of the names of all locks.
    prefix: String,
    inbox: Arc<Inbox>,
    clock: ServerClock,
}

/// The server's clock, as guessed when the server was last asked: for places in the queue that must be known at once.
#[derive(Debug, Default)]
struct ServerClock {
    /// The server's time less the client's, in microseconds.
    ahead: AtomicI64,
    asked: AtomicU64,
}

impl RedisEngine {
    /// Connects to the servers and makes a client.
    ///
    /// # Errors
    /// [`Config`](ylock_core::ErrorKind::Config) for bad options, a refused login or a server that is too old or of the wrong kind;
    /// [`Unavailable`](ylock_core::ErrorKind::Unavailable) if no server answers.
    pub async fn connect(options: &RedisOptions) -> Result<Self> {
        options.check()?;
        let environment = SystemEnvironment::shared();
        let store = Arc::new(Store::open(options, &environment).await?);
        let guarantees = guarantees(options.topology());
        let in_a_cluster = *options.topology() == Topology::Cluster;
        // Short: with the owner beside it, it must fit into 64 bytes, the longest value that Redis keeps in the compact form of a hash.
        let name = format!("{:016x}", environment.random());
        let client = Arc::new_cyclic(|client: &Weak<Client>| {
            let client = Weak::clone(client);
            let hear = move |heard| {
                if let Some(client) = client.upgrade() {
                    client.hear(heard);
                }
            };
            Client {
                inbox: Inbox::new(name, in_a_cluster, &store, &environment, Box::new(hear)),
                store,
                environment,
                waiting: options.waiting(),
                min_replicas: options.min_replicas(),
                fencing: guarantees.fencing,
                records: Arc::default(),
                prefix: options.prefix().to_owned(),
                clock: ServerClock::default(),
            }
        });
        // In a cluster there is a channel for each part of the locks, and which of these are needed is known only later.
        if options.waiting() == Waiting::Told && !in_a_cluster {
            client.inbox.subscribe("").await?;
        }
        client.ask_for_the_time().await?;
        Ok(Self { client, request_timeout: options.request_timeout(), guarantees })
    }

    /// Returns how many scripts this client has called.
    pub fn requests(&self) -> u64 {
        self.client.store.requests()
    }
}

impl Client {
    pub(crate) fn now(&self) -> Moment {
        self.environment.now()
    }

    /// Creates a call of a script for a lock.
    pub(crate) fn call(&self, script: &'static scripts::Script, key: &Key) -> Call {
        Call::at(script, place::of(&self.prefix, key))
    }

    /// Returns the channel on which the server shall tell this client: `-`, none, if the client asks by itself, or as long as it would not
    /// hear a message. A waiter with a channel that cannot be told is passed over, and that may be again and again; for a waiter without a
    /// channel the server waits until its next question.
    pub(crate) fn channel(&self, place: &str) -> Cow<'_, str> {
        let hears = self.waiting == Waiting::Told && self.inbox.hears(place);
        if hears { self.inbox.channel(place) } else { "-".into() }
    }

    /// Makes sure that messages about a lock are heard. Waiters are woken when they are, and ask: their turn may have come before.
    pub(crate) fn listen(&self, key: &Key) {
        self.inbox.listen(&place::of(&self.prefix, key));
    }

    /// Handles what the inbox has heard.
    fn hear(self: &Arc<Self>, heard: Heard) {
        let Heard::LetIn { id, told, place } = heard else { return self.records.wake_all() };
        if self.records.deliver(id, told) {
            return;
        }
        // No acquisition of this client waits for this grant or has it: the grant was caused by a request that came late, or is being given
        // back at this moment. Left alone, it would keep other contenders out for a lease.
        let client = Arc::clone(self);
        self.environment.spawn(Box::pin(async move {
            if let Err(error) = client.undo(Call::at(&scripts::RELEASE, place), id, None).await {
                tracing::debug!(
                    error = format!("{error:#}"),
                    "a grant that no caller waits for could not be given back; it ends with its lease"
                );
            }
        }));
    }

    /// Undoes all that there is of an acquisition, for good.
    pub(crate) async fn leave(&self, key: &Key, id: AcquisitionId) -> Result<()> {
        self.release(key, id, None).await.map(drop)
    }

    pub(crate) async fn release(
        &self,
        key: &Key,
        id: AcquisitionId,
        next: Option<&Request>,
    ) -> Result<Release> {
        let was_there = self.undo(self.call(&scripts::RELEASE, key), id, next).await?;
        Ok(if was_there { Release::Released } else { Release::WasGone })
    }

    /// Undoes an acquisition, and lets `next` join the queue. Returns whether there was a grant or a place. All releases go through here.
    async fn undo(&self, release: Call, id: AcquisitionId, next: Option<&Request>) -> Result<bool> {
        let late = if self.records.end(id) { Duration::ZERO } else { LATE };
        let call = release.id(id).arg(late.as_millis());
        let Some(next) = next else { return self.store.call(call).await?.flag() };
        // This request may let `next` in: a copy of it may arrive after `next` was undone.
        let mark = self.records.begin(next.id);
        let was_there = self.store.call(self.with_next(call, next)).await?.flag();
        mark.answered();
        was_there
    }

    fn with_next(&self, call: Call, next: &Request) -> Call {
        let channel = self.channel(call.place());
        call.id(next.id)
            .arg(mode_word(next.mode))
            .arg(next.lease.as_millis())
            .arg(ticket_word(next.ticket))
            .arg(alive(next).as_millis())
            .owner(next.owner)
            .arg(&*channel)
            .arg(next.client.as_str())
    }

    async fn renew(&self, holding: &Holding) -> Result<Renewal> {
        let Grant { key, id, mode, lease, .. } = &holding.grant;
        let mut call = self.call(&scripts::RENEW, key).id(*id).arg(mode_word(*mode)).arg(lease.as_millis());
        if let Some(next) = &holding.next {
            let channel = self.channel(call.place());
            call = call
                .id(next.id)
                .arg(mode_word(next.mode))
                .arg(next.lease.as_millis())
                .arg(ticket_word(next.ticket))
                .owner(next.owner)
                .arg(&*channel)
                .arg(next.client.as_str());
        }
        let sent = self.now();
        let mut answer = self.store.call(call).await?;
        read_renewal(&mut answer, sent)
    }

    /// Compares the server's clock with the client's. A long trip makes the guess worse, so the shortest of a few trips counts; of more, as
    /// long as all are long.
    async fn ask_for_the_time(&self) -> Result<()> {
        let mut best: Option<(Duration, i64)> = None;
        for number in 0..MOST_TRIPS {
            let before = self.now();
            let server = self.store.server_time().await?;
            let trip = self.now().since(before);
            let ahead = server - micros(before.plus(trip / 2));
            if best.is_none_or(|(shortest, _)| trip < shortest) {
                best = Some((trip, ahead));
            }
            if number + 1 >= TRIPS && best.is_some_and(|(shortest, _)| shortest < SHORT_TRIP) {
                break;
            }
        }
        if let Some((_, ahead)) = best {
            self.clock.ahead.store(ahead, Ordering::Relaxed);
        }
        self.clock.asked.store(self.now().as_nanos(), Ordering::Relaxed);
        Ok(())
    }

    /// Keeps the guess of the server's clock fresh, in a task that no caller waits for.
    fn keep_the_time(self: &Arc<Self>) {
        let asked = Moment::from_nanos(self.clock.asked.load(Ordering::Relaxed));
        if self.now().since(asked) < CLOCK_AGE {
            return;
        }
        self.clock.asked.store(self.now().as_nanos(), Ordering::Relaxed);
        let client = Arc::clone(self);
        self.environment.spawn(Box::pin(async move { drop(client.ask_for_the_time().await) }));
    }
}

#[async_trait]
impl Engine for RedisEngine {
    fn name(&self) -> &'static str {
        NAME
    }

    fn guarantees(&self) -> Guarantees {
        self.guarantees
    }

    fn environment(&self) -> Arc<dyn Environment> {
        Arc::clone(&self.client.environment)
    }

    fn check(&self, options: &Options) -> Result<()> {
        check_lease(options.lease(), self.request_timeout).map_err(|error| error.with_engine(NAME))
    }

    fn ticket(&self) -> Ticket {
        let ahead = self.client.clock.ahead.load(Ordering::Relaxed);
        Ticket::from_number(micros(self.client.now()).saturating_add(ahead))
    }

    fn meter(&self) -> &Meter {
        self.client.store.meter()
    }

    fn in_memory(&self) -> Vec<(&'static str, usize)> {
        vec![("acquisitions", self.client.records.len())]
    }

    async fn acquire(&self, request: &Request) -> Result<Option<Grant>> {
        check_lease(request.lease, self.request_timeout)?;
        self.client.keep_the_time();
        Acquire::new(&self.client, request, self.request_timeout).run().await
    }

    /// Renews each grant with a request of its own; all are on their way at once over one connection.
    async fn renew(&self, holdings: &[Holding]) -> Vec<Result<Renewal>> {
        join_all(holdings.iter().map(|holding| self.client.renew(holding))).await
    }

    async fn release(&self, key: &Key, id: AcquisitionId, next: Option<&Request>) -> Result<Release> {
        self.client.release(key, id, next).await
    }

    async fn inspect(&self, key: &Key) -> Result<Inspection> {
        let answer = self.client.store.call(self.client.call(&scripts::INSPECT, key)).await?;
        inspect::read(answer, self.client.fencing)
    }

    async fn revoke(&self, key: &Key, id: AcquisitionId) -> Result<bool> {
        let call = self.client.call(&scripts::REVOKE, key).id(id);
        Ok(self.client.store.call(call).await?.flag()?)
    }

    async fn close(&self) -> Result<()> {
        self.client.inbox.close();
        self.client.records.clear();
        Ok(())
    }
}

impl Drop for RedisEngine {
    fn drop(&mut self) {
        self.client.inbox.close();
    }
}

/// Returns the guarantees of a topology. A server that takes over may lack the last writes, and its clock may differ: then tokens can fall.
fn guarantees(topology: &Topology) -> Guarantees {
    let is_alone = *topology == Topology::Single;
    Guarantees::ALL.with_durable(false).with_fencing(is_alone).with_exclusive_after_failover(is_alone)
}

fn read_renewal(answer: &mut Answer, sent: Moment) -> Result<Renewal> {
    if answer.flag()? {
        return Ok(Renewal::Renewed { sent, contended: answer.flag()? });
    }
    Ok(Renewal::Lost(match answer.word()?.as_str() {
        "revoked" => LossReason::Revoked,
        _ => LossReason::Gone,
    }))
}

fn ticket_word(ticket: Option<Ticket>) -> String {
    ticket.map_or("-".to_owned(), |ticket| ticket.get().to_string())
}

fn micros(moment: Moment) -> i64 {
    i64::try_from(moment.as_nanos() / 1_000).unwrap_or(i64::MAX)
}
