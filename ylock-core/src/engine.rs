//! What an engine is: locks over one kind of store, for one contender per key and client.
//!
//! This is for those who write an engine. Users hold a [`Lock`](crate::Lock).

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;

pub use crate::meter::{Meter, Requests};

use crate::client_name::ClientName;
use crate::environment::{Environment, Moment};
use crate::error::Result;
use crate::guarantees::Guarantees;
use crate::key::Key;
use crate::mode::Mode;
use crate::options::{Fairness, Options, margin};
use crate::owner::Owner;
use crate::token::{StoreToken, Token};

/// Names one acquisition for ever. It exists before the first byte is sent, so that whatever became of a
/// request can be found out, or undone, later.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AcquisitionId(u128);

impl AcquisitionId {
    /// A new identity, drawn from `environment`.
    pub fn new(environment: &dyn Environment) -> Self {
        Self(environment.random_identity())
    }

    /// The identity as a number, as a store keeps it.
    pub fn as_u128(self) -> u128 {
        self.0
    }

    /// The identity with this number.
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
    /// The ticket with this number.
    pub fn from_number(number: i64) -> Self {
        Self(number)
    }

    /// The ticket as a number.
    pub fn get(self) -> i64 {
        self.0
    }
}

/// Whether a contender stays in the queue.
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
pub struct Request {
    /// What for.
    pub key: Key,
    /// Its identity: every write that it causes carries it.
    pub id: AcquisitionId,
    /// Shared or exclusive.
    pub mode: Mode,
    /// Whom to name to those who look.
    pub owner: Owner,
    /// The client, for those who look. A grant is shown with that of its request for as long as it lives, and so is a waiter.
    pub client: ClientName,
    /// How long a grant lives without renewal.
    pub lease: Duration,
    /// Whether to stay in the queue.
    pub patience: Patience,
    /// Whether those who came earlier go first.
    pub fairness: Fairness,
    /// The place to queue at, where it was taken before ([`Engine::ticket`]); otherwise the engine takes one.
    pub ticket: Option<Ticket>,
}

/// What a store gave to one contender.
#[derive(Clone, Debug)]
pub struct Grant {
    /// What for.
    pub key: Key,
    /// The identity from the request.
    pub id: AcquisitionId,
    /// The mode that the store shows.
    pub mode: Mode,
    /// The owner that the store shows.
    pub owner: Owner,
    /// From the request, or shorter where the store cannot keep a grant for so long.
    pub lease: Duration,
    /// Larger than that of every earlier conflicting grant, or nothing if the engine cannot promise that.
    pub token: Option<StoreToken>,
    /// Just before the write was sent that this grant's lease counts from.
    pub sent: Moment,
    /// Whether somebody who conflicts was waiting elsewhere at the last look.
    pub contended: bool,
    /// Whether others went first. For those who watch; nothing is decided by it.
    pub waited: bool,
}

impl Grant {
    /// What a request was given.
    pub fn of(request: &Request, token: Option<StoreToken>, sent: Moment, contended: bool) -> Self {
        let Request { id, mode, owner, lease, .. } = *request;
        Self { key: request.key.clone(), id, mode, owner, lease, token, sent, contended, waited: false }
    }

    /// The same grant, saying whether others went first.
    #[must_use]
    pub fn after_waiting(self, waited: bool) -> Self {
        Self { waited, ..self }
    }
}

/// When a grant that was last shown at `sent` may no longer be relied on: its lease, less the
/// [margin](crate::Options::margin).
pub fn valid_until(sent: Moment, lease: Duration) -> Moment {
    sent.plus(lease.saturating_sub(margin(lease)))
}

/// A grant as its holder wants the store to show it from now on.
#[derive(Clone, Debug)]
pub struct Holding {
    /// The grant. Its mode is the one to show: [`Mode::Read`] also where `Write` was granted, to give up writing and go on
    /// reading.
    pub grant: Grant,
    /// A waiter of this client that conflicts and waits behind it: announced in the queue, so that those elsewhere who
    /// come later stay behind. It stays the same from one holding to the next while it waits.
    ///
    /// Its place belongs to the grant. It goes when a later holding does not name it any more, when the grant is released without naming it
    /// as `next`, is lost or lapses, and when it is released itself: an announced waiter that gave up keeps nobody out. Once it is let in its
    /// lease is the one that it asked for, whatever that of the grant is: its client believes in that.
    pub next: Option<Request>,
}

/// What became of a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "renewed or not; unknown is an error")]
pub enum Renewal {
    /// The store has the grant for another lease.
    Renewed {
        /// Just before the write was sent that the lease counts from now.
        sent: Moment,
        /// Whether somebody who conflicts waits elsewhere.
        contended: bool,
    },
    /// The store does not have the grant any more.
    Lost(LossReason),
}

/// Why a lock was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LossReason {
    /// The client was closed while the lock was held.
    Closed,
    /// The store shows somebody else, or nobody.
    Gone,
    /// The lease ran out before a renewal was confirmed.
    Lapsed,
    /// Somebody took it away with [`Ylock::revoke`](crate::Ylock::revoke).
    Revoked,
}

impl LossReason {
    /// One word, as used in messages and metric labels.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Gone => "gone",
            Self::Lapsed => "lapsed",
            Self::Revoked => "revoked",
        }
    }
}

/// What became of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "it was there or it was not; unknown is an error")]
pub enum Release {
    /// It was there and has been given back.
    Released,
    /// The store did not have this acquisition any more. Nothing was changed.
    WasGone,
}

/// Who holds a key and who waits for it.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Inspection {
    /// Those who hold it: one writer, or readers.
    pub holders: Vec<Holder>,
    /// Those who wait, in order. Of another client only the first: the others queue inside that process, and the store does not know them.
    pub queue: Vec<Waiter>,
}

/// Somebody who holds a key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Holder {
    /// The acquisition, as the store knows it.
    pub id: AcquisitionId,
    /// Who.
    pub owner: Owner,
    /// The name of the client that holds it.
    pub client: ClientName,
    /// Shared or exclusive.
    pub mode: Mode,
    /// Since when, by the wall clock of the client that holds it.
    pub since: SystemTime,
    /// Its fencing token.
    pub token: Option<Token>,
}

/// Somebody who waits for a key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Waiter {
    /// The acquisition, as the store knows it.
    pub id: AcquisitionId,
    /// Who.
    pub owner: Owner,
    /// The name of the client that waits.
    pub client: ClientName,
    /// Shared or exclusive.
    pub mode: Mode,
    /// Since when, by the wall clock of the client that waits.
    pub since: SystemTime,
}

impl Holder {
    /// A holder, of whom a store shows the same as of a waiter, and its token.
    pub fn of(shown: Waiter, token: Option<Token>) -> Self {
        let Waiter { id, owner, client, mode, since } = shown;
        Self { id, owner, client, mode, since, token }
    }
}

impl Waiter {
    /// A waiter as a store shows it.
    pub fn new(id: AcquisitionId, owner: Owner, client: ClientName, mode: Mode, since: SystemTime) -> Self {
        Self { id, owner, client, mode, since }
    }
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
/// - **Exclusion.** While a grant with [`Mode::Write`] is valid there is no other valid grant of its key; while one with
///   [`Mode::Read`] is valid there is none with `Write`. Valid means: the lease, counted from
///   [`Grant::sent`] or the last [`Renewal::Renewed`], less the [margin](crate::Options::margin), has not passed.
/// - **Unknown outcomes.** Every future may be dropped at any point, and every call may fail after it had an effect.
///   A later `release` with the same id undoes it for good, also if the request is still on its way.
/// - **Errors** say what went wrong in the store. The keeper adds which engine and key that was.
/// - **No policy.** Reentrancy, local queues, the schedule of renewals and retries of releases live above.
/// - Not promised: that a holder has stopped when its lease is over.
#[async_trait]
pub trait Engine: fmt::Debug + Send + Sync + 'static {
    /// One word that names the kind of store: the URL scheme, the feature, the metric label.
    fn name(&self) -> &'static str;

    /// What this engine promises.
    fn guarantees(&self) -> Guarantees;

    /// Where this engine takes time, randomness and tasks from. Its moments are on this clock.
    fn environment(&self) -> Arc<dyn Environment>;

    /// Where this engine counts its requests to the store, each of them: of what goes past it the keeper
    /// knows nothing, and a wait that ends while the store is away would be told as a lock that others hold.
    fn meter(&self) -> &Meter;

    /// How much of what belongs to single locks this object keeps in memory, by kind: places, records, tasks under way. All of it is zero
    /// soon after nothing is held, waited for or on its way back: for tests that look for leaks.
    fn in_memory(&self) -> Vec<(&'static str, usize)>;

    /// Checks whether locks can have these options, before any is acquired with them: whether there is time for a second renewal when the
    /// first one gets no answer, and whether what is kept in the store lives long enough. Asks nothing of the store.
    ///
    /// For callers who have not asked, [`acquire`](Self::acquire) fails in the same way, or grants a lease that is shorter.
    ///
    /// # Errors
    /// [`Config`](crate::ErrorKind::Config) that names the limit and what to change.
    fn check(&self, options: &Options) -> Result<()>;

    /// A place in the queue as of now.
    fn ticket(&self) -> Ticket;

    /// Contends for a key until it is granted; with [`Patience::Try`] answers `None` if it is not free.
    ///
    /// # Behavior
    /// - Neither an outage of the store nor a pause of this process changes the kind of an answer while it is shorter than one lease of
    ///   *running* time ([`Silence`](crate::silence::Silence)); a waiter that lost its place meanwhile joins again. It ends with
    ///   [`Unavailable`](crate::ErrorKind::Unavailable) when the store has not answered for about one lease.
    /// - A contender that stops being polled loses its place after one lease, and its claim with it.
    /// - A revocation concerns holders: it never ends the call of a waiter.
    async fn acquire(&self, request: &Request) -> Result<Option<Grant>>;

    /// Renews grants, each for another lease, and makes the store show what each [`Holding`] says. One answer
    /// per holding, in order.
    ///
    /// # Behavior
    /// - A grant that lapsed before the store confirmed it is [`Renewal::Lost`].
    /// - A loss is only told. What is left of the grant is given back by the release that follows: if that happened here,
    ///   somebody else could be inside before the holder knows.
    /// - One grant that fails does not delay the others for longer than one request.
    async fn renew(&self, holdings: &[Holding]) -> Vec<Result<Renewal>>;

    /// Gives back a grant, leaves the queue, or undoes an acquisition with unknown outcome.
    ///
    /// With `next`, which the caller will `acquire` afterwards, an engine may join the queue in the same trip.
    ///
    /// # What becomes of `next`
    /// - **Until when it is undone.** The store may have it as soon as a release that names it was sent, whatever the answer. The caller names
    ///   the same one in every attempt. It acquires it when the release has succeeded; when it gives up, or nobody waits for it any
    ///   more, it releases it, which undoes it for good: also against a copy of the earlier release that arrives a minute later.
    /// - **From when its grant counts.** The store may let it in at once, and the caller may ask much later. Its grant is valid from the moment
    ///   from which the store counts its lease, never from a later question: either that question makes the store count afresh, or
    ///   [`Grant::sent`] is from before the first release that named it.
    ///
    /// # Behavior
    /// - Acts on this acquisition only, never on another one of the same key.
    /// - May be repeated until it succeeds.
    async fn release(&self, key: &Key, id: AcquisitionId, next: Option<&Request>) -> Result<Release>;

    /// Who holds the key and who waits, as the store shows it now.
    async fn inspect(&self, key: &Key) -> Result<Inspection>;

    /// Takes a grant away from whoever holds it; it is told at its next renewal at the latest. Answers whether this
    /// acquisition held the key.
    async fn revoke(&self, key: &Key, id: AcquisitionId) -> Result<bool>;

    /// Ends the connection and removes what this client left in the store. The caller has released everything.
    async fn close(&self) -> Result<()>;
}
