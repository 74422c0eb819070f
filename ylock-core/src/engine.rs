//! The contract of an engine: locks over one kind of store, for one contender per key and client.
//!
//! This is for programs that implement an engine. Users hold a [`Lock`](crate::Lock).

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;

pub use crate::diagnostics::{ClockReading, Diagnostics, Finding, ServerReport};
pub use crate::early_renewals::EarlyRenewals;
pub use crate::key_page::KeyPage;
pub use crate::meter::{Meter, Requests};

use crate::client_name::ClientName;
use crate::environment::{Environment, Moment};
use crate::error::Result;
use crate::guarantees::Guarantees;
use crate::job_run::JobRun;
use crate::key::Key;
use crate::mode::Mode;
use crate::options::{Fairness, Options, margin};
use crate::owner::Owner;
use crate::token::{StoreToken, Token};

/// The identity of one acquisition, for ever. It exists before the first byte is sent, so that the outcome of a
/// request can be found out, or undone, later.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AcquisitionId(u128);

impl AcquisitionId {
    /// Draws a new identity from `environment`.
    pub fn new(environment: &dyn Environment) -> Self {
        Self(environment.random_identity())
    }

    /// Returns the identity as a number, as a store keeps it.
    pub fn as_u128(self) -> u128 {
        self.0
    }

    /// Returns the identity with this number.
    pub fn from_u128(number: u128) -> Self {
        Self(number)
    }
}

impl fmt::Debug for AcquisitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A place in a queue. Order only, never safety.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(i64);

impl Ticket {
    /// Returns the ticket with this number.
    pub fn from_number(number: i64) -> Self {
        Self(number)
    }

    /// Returns the ticket as a number.
    pub fn get(self) -> i64 {
        self.0
    }
}

/// Gives out tickets by the wall clock, and never the same twice.
#[derive(Debug, Default)]
pub struct TicketClock(AtomicI64);

impl TicketClock {
    /// Returns a ticket that is later than all before it.
    pub fn next(&self, environment: &dyn Environment) -> Ticket {
        let wall = environment.wall_micros();
        let later = |last: i64| wall.max(last.saturating_add(1));
        let last = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(later(last)));
        Ticket::from_number(last.map_or(wall, later))
    }
}

/// The choice of a contender to stay in the queue or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "it stays or it does not")]
pub enum Patience {
    /// Answer at once; leave nothing behind if the key is not free.
    Try,
    /// Stay until granted.
    Queue,
}

/// One contender for one key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request {
    /// The key that it contends for.
    pub key: Key,
    /// Its identity: every write that it causes carries it.
    pub id: AcquisitionId,
    /// Shared or exclusive.
    pub mode: Mode,
    /// The owner that [`Engine::inspect`] shows.
    pub owner: Owner,
    /// The client that [`Engine::inspect`] shows. A grant, like a waiter, is shown with the client of its request for as long as it lives.
    pub client: ClientName,
    /// The time for which a grant lives without renewal.
    pub lease: Duration,
    /// The choice to stay in the queue or not.
    pub patience: Patience,
    /// The order of service: it says whether earlier contenders go first.
    pub fairness: Fairness,
    /// The place to queue at, where it was taken before ([`Engine::ticket`]); otherwise the engine takes one.
    pub ticket: Option<Ticket>,
}

impl Request {
    /// Creates the request of a contender that stays in the queue until it is granted, in the order of arrival and without a place that was
    /// taken before.
    pub fn new(
        key: Key,
        id: AcquisitionId,
        mode: Mode,
        owner: Owner,
        client: ClientName,
        lease: Duration,
    ) -> Self {
        let (patience, fairness) = (Patience::Queue, Fairness::Fair);
        Self { key, id, mode, owner, client, lease, patience, fairness, ticket: None }
    }

    /// Returns the same request for another key.
    #[must_use]
    pub fn with_key(self, key: Key) -> Self {
        Self { key, ..self }
    }

    /// Returns the same request as another acquisition.
    #[must_use]
    pub fn with_id(self, id: AcquisitionId) -> Self {
        Self { id, ..self }
    }

    /// Returns the same request in this mode.
    #[must_use]
    pub fn with_mode(self, mode: Mode) -> Self {
        Self { mode, ..self }
    }

    /// Returns the same request for a grant with this lease.
    #[must_use]
    pub fn with_lease(self, lease: Duration) -> Self {
        Self { lease, ..self }
    }

    /// Returns the same request, which stays in the queue or does not.
    #[must_use]
    pub fn with_patience(self, patience: Patience) -> Self {
        Self { patience, ..self }
    }

    /// Returns the same request with this order of service.
    #[must_use]
    pub fn with_fairness(self, fairness: Fairness) -> Self {
        Self { fairness, ..self }
    }

    /// Returns the same request, at the place that was taken before, if one was.
    #[must_use]
    pub fn with_ticket(self, ticket: impl Into<Option<Ticket>>) -> Self {
        Self { ticket: ticket.into(), ..self }
    }
}

/// The lock that a store gave to one contender.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Grant {
    /// The key.
    pub key: Key,
    /// The identity from the request.
    pub id: AcquisitionId,
    /// The mode that the store shows.
    pub mode: Mode,
    /// The owner that the store shows.
    pub owner: Owner,
    /// The lease of the request, or a shorter one where the store cannot keep a grant for so long.
    pub lease: Duration,
    /// The token, larger than that of every earlier conflicting grant; `None` if the engine cannot promise that.
    pub token: Option<StoreToken>,
    /// The moment just before the write was sent from which this grant's lease counts.
    pub sent: Moment,
    /// True if a conflicting contender was waiting elsewhere at the last look.
    pub contended: bool,
    /// True if other contenders went first. For layers; nothing is decided by it.
    pub waited: bool,
}

impl Grant {
    /// Creates the grant of a request.
    pub fn of(request: &Request, token: Option<StoreToken>, sent: Moment, contended: bool) -> Self {
        let Request { id, mode, owner, lease, .. } = *request;
        Self { key: request.key.clone(), id, mode, owner, lease, token, sent, contended, waited: false }
    }

    /// Returns the same grant as the store shows it in this mode.
    #[must_use]
    pub fn with_mode(self, mode: Mode) -> Self {
        Self { mode, ..self }
    }

    /// Returns the same grant with this lease: a store may not be able to keep it for as long as was asked for.
    #[must_use]
    pub fn with_lease(self, lease: Duration) -> Self {
        Self { lease, ..self }
    }

    /// Returns the same grant, whose lease counts from this moment.
    #[must_use]
    pub fn with_sent(self, sent: Moment) -> Self {
        Self { sent, ..self }
    }

    /// Returns the same grant, which says whether other contenders went first.
    #[must_use]
    pub fn after_waiting(self, waited: bool) -> Self {
        Self { waited, ..self }
    }
}

/// Returns the moment from which a grant that was last shown at `sent` may no longer be relied on: the end of its lease,
/// less the [margin](crate::Options::margin).
pub fn valid_until(sent: Moment, lease: Duration) -> Moment {
    sent.plus(lease.saturating_sub(margin(lease)))
}

/// A grant as its holder wants the store to show it from now on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Holding {
    /// The grant. Its mode is the mode to show: [`Mode::Read`] also where `Write` was granted, to give up writing and go on
    /// reading.
    pub grant: Grant,
    /// A waiter of this client that conflicts and waits behind the grant: announced in the queue, so that later contenders
    /// elsewhere stay behind it. It stays the same from one holding to the next while it waits.
    ///
    /// Its place belongs to the grant. The place goes when a later holding does not name the waiter any more, when the grant is released
    /// without naming it as `next`, is lost or lapses, and when the waiter is released itself: an announced waiter that gave up keeps no
    /// other contender out. Once the waiter is let in, its lease is the one that it asked for, whatever the lease of the grant is: its
    /// client relies on that.
    pub next: Option<Request>,
}

impl Holding {
    /// Creates the holding of a grant, and of the waiter of the same client that is announced behind it, if there is one.
    pub fn new(grant: Grant, next: impl Into<Option<Request>>) -> Self {
        Self { grant, next: next.into() }
    }
}

/// The outcome of a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "renewed or not; unknown is an error")]
pub enum Renewal {
    /// The store has the grant for another lease.
    Renewed {
        /// The moment just before the write was sent from which the lease counts now.
        sent: Moment,
        /// True if a conflicting contender waits elsewhere. One that is dead counts for no longer than its lease: it keeps the readers of this client
        /// out, and no other request may come to the store that would forget it.
        contended: bool,
    },
    /// The store has the grant for another lease, and does not show its new mode yet, because it may not for now: the renewal is asked for again soon.
    Kept {
        /// The moment just before the write was sent from which the lease counts now.
        sent: Moment,
    },
    /// The store does not have the grant any more.
    Lost(LossReason),
}

/// The reason why a lock was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LossReason {
    /// The client was closed while the lock was held.
    Closed,
    /// The store shows another holder, or none.
    Gone,
    /// It was held for as long as [`max_hold`](crate::Options::with_max_hold) lets a holder have
    /// it.
    HeldTooLong,
    /// The lease ran out before a renewal was confirmed.
    Lapsed,
    /// A call of [`Ylock::revoke`](crate::Ylock::revoke) took it away.
    Revoked,
}

crate::closed_set! {
    /// Returns one word, as used in messages and metric labels.
    pub LossReason: Closed = "closed", Gone = "gone", HeldTooLong = "held_too_long", Lapsed = "lapsed", Revoked = "revoked"
}

/// The outcome of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "it was there or it was not; unknown is an error")]
pub enum Release {
    /// The store had this acquisition, and it has been given back.
    Released,
    /// The store did not have this acquisition any more. Nothing was changed.
    WasGone,
}

/// The holders of a key, and the waiters for it.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Inspection {
    /// The holders: one writer, or readers.
    pub holders: Vec<Holder>,
    /// The waiters, in order. Of another client only the first: the others queue inside that process, and the store does not know them, nor how
    /// many they are; see [`Ylock::inspect`](crate::Ylock::inspect).
    pub queue: Vec<Waiter>,
}

/// A holder of a key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Holder {
    /// The acquisition, as the store knows it.
    pub id: AcquisitionId,
    /// The owner that holds it.
    pub owner: Owner,
    /// The name of the client that holds it.
    pub client: ClientName,
    /// Shared or exclusive.
    pub mode: Mode,
    /// The time since which it is held, by the wall clock of the client that holds it.
    pub since: SystemTime,
    /// Its fencing token.
    pub token: Option<Token>,
}

/// A waiter for a key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Waiter {
    /// The acquisition, as the store knows it.
    pub id: AcquisitionId,
    /// The owner that waits.
    pub owner: Owner,
    /// The name of the client that waits.
    pub client: ClientName,
    /// Shared or exclusive.
    pub mode: Mode,
    /// The time since which it waits, by the wall clock of the client that waits.
    pub since: SystemTime,
}

impl Holder {
    /// Creates a holder from what a store shows of it, which is the same as of a waiter, and its token.
    pub fn of(shown: Waiter, token: Option<Token>) -> Self {
        let Waiter { id, owner, client, mode, since } = shown;
        Self { id, owner, client, mode, since, token }
    }
}

impl Waiter {
    /// Creates a waiter as a store shows it.
    pub fn new(id: AcquisitionId, owner: Owner, client: ClientName, mode: Mode, since: SystemTime) -> Self {
        Self { id, owner, client, mode, since }
    }
}

/// The answers of an engine that asks no server: while a lock is free, its caller needs no task and no future for it.
///
/// A caller calls these on its own thread, also where no runtime lives and from the drop of a guard: they do not block for longer than it takes
/// to look. Nor do they wake a waiter while they have anything locked: a waker is its owner's code, which may give back another lock of the same
/// store. To the [contract](Engine#contract) they are calls of the engine, as those of the same names.
pub trait AtOnce: fmt::Debug + Send + Sync {
    /// Does what [`Engine::acquire`] does. `None` if the contender has to wait: then the caller calls [`Engine::acquire`] with the same
    /// request, or [releases](Engine::release) it; it may have joined the queue.
    fn acquire(&self, request: &Request) -> Option<Result<Option<Grant>>>;

    /// Does what [`Engine::release`] does.
    fn release(&self, key: &Key, id: AcquisitionId, next: Option<&Request>) -> Result<Release>;
}

/// Locks over one kind of store.
///
/// # Contract
/// - **One contender per key.** The caller never has two acquisitions of one key in flight or granted through one
///   engine object, and calls `release` for each before it starts the next. Renewals of a grant may overlap
///   with its release; the release wins.
/// - **Runtimes end.** A call may be made in any runtime, and its future dropped with it. Then the same call is made again in another one:
///   `acquire` with the same request goes on where it stood. What the engine does by itself goes through [`Environment::spawn`], and
///   connections that died with a runtime are noticed as dead at the next request, not after a time.
/// - **Calls stand still.** The future of a call may stand still at any point without being dropped: for its first 10 to 20 ms it is polled by a
///   caller of the lock, and later by a runtime that may not be driven. What other calls need must come free after a time, whether or not this
///   future is polled again.
/// - **Exclusion.** While a grant with [`Mode::Write`] is valid there is no other valid grant of its key; while one with
///   [`Mode::Read`] is valid there is none with `Write`. Valid means: the lease, counted from
///   [`Grant::sent`] or the last [`Renewal::Renewed`], less the [margin](crate::Options::margin), has not passed.
/// - **Unknown outcomes.** Every future may be dropped at any point, and every call may fail after it had an effect.
///   A later `release` with the same id undoes it for good, also if the request is still on its way.
///   Where every request of an acquisition was certainly refused, it is answered without a request.
/// - **Errors** say what went wrong in the store. The keeper adds the engine and the key.
/// - **No policy.** Reentrancy, local queues, the schedule of renewals and retries of releases live above.
/// - Not promised: that a holder has stopped when its lease is over.
#[async_trait]
pub trait Engine: fmt::Debug + Send + Sync + 'static {
    /// Returns one word that names the kind of store: the URL scheme, the feature, the metric label.
    fn name(&self) -> &'static str;

    /// Returns what this engine promises.
    fn guarantees(&self) -> Guarantees;

    /// Returns the source of time, randomness and tasks of this engine. Its moments are on this clock.
    fn environment(&self) -> Arc<dyn Environment>;

    /// Returns the meter on which this engine counts its requests to the store, each of them: the keeper knows nothing of a
    /// request that is not counted, and would report a wait that ends while the store is away as a lock that others hold.
    fn meter(&self) -> &Meter;

    /// Returns how much of what belongs to single locks this object keeps in memory, by kind: places, records, tasks under way. All of it
    /// is zero soon after nothing is held, waited for or on its way back: for tests that look for leaks.
    fn in_memory(&self) -> Vec<(&'static str, usize)>;

    /// Returns how many releases the store is sent at once, to begin with, if very many at once make it so slow that it answers none of them
    /// in time. `None`, which is the default: any number.
    fn concurrent_releases(&self) -> Option<usize> {
        None
    }

    /// Returns the way in which this engine asks for renewals before they are due. `None`, which is the default: it never asks.
    fn early_renewals(&self) -> Option<&EarlyRenewals> {
        None
    }

    /// Returns what this engine answers without waiting. `None`, which is the default: an engine that asks a store has nothing to say at
    /// once.
    fn at_once(&self) -> Option<&dyn AtOnce> {
        None
    }

    /// Checks whether locks can have these options, before any is acquired with them: whether there is time for a second renewal when the
    /// first one gets no answer, and whether what is kept in the store lives long enough. Asks nothing of the store.
    ///
    /// If the caller has not checked, [`acquire`](Self::acquire) fails in the same way, or grants a shorter lease.
    ///
    /// # Errors
    /// [`Config`](crate::ErrorKind::Config) that names the limit and what to change.
    fn check(&self, options: &Options) -> Result<()>;

    /// Returns a place in the queue as of now.
    fn ticket(&self) -> Ticket;

    /// Contends for a key until it is granted; with [`Patience::Try`] returns `None` if it is not free.
    ///
    /// # Behavior
    /// - Neither an outage of the store nor a pause of this process changes the kind of an answer while it is shorter than one lease of
    ///   *running* time ([`RetryDeadline`](crate::retry_deadline::RetryDeadline)); a waiter that lost its place meanwhile joins again. It ends with
    ///   [`Unavailable`](crate::ErrorKind::Unavailable) when the store has not answered for about one lease.
    /// - A contender that stops being polled loses its place after one lease, and its claim with it.
    /// - A revocation concerns holders: it never ends the call of a waiter.
    async fn acquire(&self, request: &Request) -> Result<Option<Grant>>;

    /// Renews grants, each for another lease, and makes the store show what each [`Holding`] says. Returns one answer
    /// per holding, in order.
    ///
    /// # Behavior
    /// - A grant that lapsed before the store confirmed it is [`Renewal::Lost`].
    /// - A loss is only reported. What is left of the grant is given back by the release that follows: if that happened here,
    ///   another contender could get in before the holder knows.
    /// - One grant that fails does not delay the others for longer than one request.
    /// - A writer that cannot become a reader for now is renewed as a writer, and answered with [`Renewal::Kept`]: it must not lose its lock by it.
    async fn renew(&self, holdings: &[Holding]) -> Vec<Result<Renewal>>;

    /// Gives back a grant, leaves the queue, or undoes an acquisition with unknown outcome.
    ///
    /// With `next`, which the caller will `acquire` afterwards, an engine may join the queue in the same trip.
    ///
    /// # What becomes of `next`
    /// - **Until when it is undone.** The store may have `next` as soon as a release that names it was sent, whatever the answer. The
    ///   caller names the same `next` in every attempt, and acquires it when the release has succeeded. When the caller gives up, or has no
    ///   waiter for `next` any more, it releases `next`, which undoes it for good: also against a copy of the earlier release that arrives
    ///   a minute later.
    /// - **From when its grant counts.** The store may let `next` in at once, and the caller may ask for it much later. Its grant is valid
    ///   from the moment from which the store counts its lease, never from the later request: either that request makes the store count
    ///   afresh, or [`Grant::sent`] is from before the first release that named `next`.
    ///
    /// # Behavior
    /// - Acts on this acquisition only, never on another one of the same key.
    /// - May be repeated until it succeeds.
    async fn release(&self, key: &Key, id: AcquisitionId, next: Option<&Request>) -> Result<Release>;

    /// Returns the holders of the key and the waiters for it, as the store shows them now.
    async fn inspect(&self, key: &Key) -> Result<Inspection>;

    /// Returns whether a try to write may get the key: false if the store shows that it is held, or waited for.
    ///
    /// # Behavior
    /// - A semaphore asks this of many permits before it tries one. So an engine whose inspection costs much for a key that is used much answers this
    ///   with less, and may say `true` where it is in doubt: by default it is an inspection.
    async fn may_be_free(&self, key: &Key) -> Result<bool> {
        let seen = self.inspect(key).await?;
        Ok(seen.holders.is_empty() && seen.queue.is_empty())
    }

    /// Returns all holders of the key, none whose release was answered before this was called. As in an inspection, one whose lease has ended may be shown
    /// beside the next one.
    ///
    /// # Behavior
    /// - A resource decides by this whose token it accepts. So an engine whose inspection may be late by a moment answers this with more requests: by
    ///   default it is an inspection.
    async fn exact_holders(&self, key: &Key) -> Result<Vec<Holder>> {
        Ok(self.inspect(key).await?.holders)
    }

    /// Returns a page of the keys that are held or waited for, of one group or of all; the first page, or the one that follows `after`.
    ///
    /// # Behavior
    /// - Names each key that is held or waited for during the whole of the listing, from the call for its first page to the answer with its last
    ///   one; at least once. A key that is free by now may be named too.
    /// - A page may be empty and have a page after it. What an answer costs the store is bounded, however many keys there are.
    /// - `after` is the [`next`](KeyPage::next) of an earlier answer to the same question, of this engine or of that of another client, with the
    ///   same version of ylock. Anything else is [`Invalid`](crate::ErrorKind::Invalid).
    async fn keys(&self, group: Option<&str>, after: Option<&str>) -> Result<KeyPage>;

    /// Takes a grant away from its holder, which is told at its next renewal at the latest. Returns whether this
    /// acquisition held the key.
    async fn revoke(&self, key: &Key, id: AcquisitionId) -> Result<bool>;

    /// Returns the last run of the job of this key; `None` if there is none, or the store has forgotten it.
    ///
    /// # Behavior
    /// - A call that begins when the key was granted to this client, for writing, shows every run that was
    ///   [stored](Self::store_run) with the answer `true` under an earlier grant, or a later one. Without the grant it may show an older run.
    async fn last_run(&self, key: &Key) -> Result<Option<JobRun>>;

    /// Stores a run of the job of this key for at least as long as `kept`, unless the store has one that it does not
    /// [replace](JobRun::replaces). Returns whether the store has it now.
    ///
    /// The store forgets the run by itself some time after that, or whichever client sweeps it.
    ///
    /// # Behavior
    /// - A run never takes the place of a later one, however late it arrives, also that of a caller which does not hold the key any more.
    /// - `true` says that the store has it, or a later one by now, as it would have a grant that it has confirmed. Every error says that it may have it, or get it
    ///   later; the same call may then be made again.
    /// - The caller held the key for writing when it made the call: of two runs that are stored at once, one is that of a former holder. A
    ///   store that cannot compare and write in one step may rely on that, and of two runs of one period of which neither is done, and one
    ///   of which is still on its way, keep either.
    async fn store_run(&self, key: &Key, run: &JobRun, kept: Duration) -> Result<bool>;

    /// Asks the servers what they tell of themselves, for those who look after the store. By default nothing is told.
    ///
    /// # Behavior
    /// - Changes no lock, and leaves nothing in the store.
    /// - A server that does not answer is a [fault](ServerReport::fault) of that server, and not an error.
    /// - A question that this client may not ask is left out.
    async fn diagnose(&self) -> Result<Diagnostics> {
        Ok(Diagnostics::default())
    }

    /// Ends the connection and removes what this client left in the store, but no [run](Self::store_run). The caller has released everything.
    async fn close(&self) -> Result<()>;
}
