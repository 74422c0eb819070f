//! The store that the algorithm needs from Cassandra, with nothing of how the driver provides it.
//!
//! One partition per lock. In it one row, the *slot*, per client, which that client alone writes and always
//! overwrites as a whole; and two cells that belong to the whole partition, the tokens of the last holders.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use ylock_core::engine::{AcquisitionId, Ticket};
use ylock_core::{ClientName, Key, Mode, Owner, Result, StoreToken};

use crate::hints::Endpoint;

/// A client's row in every partition it uses: drawn once per connect, so that two clients never share one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(u128);

impl Slot {
    /// Returns the slot with this number.
    pub const fn from_u128(number: u128) -> Self {
        Self(number)
    }

    /// Returns the slot as a number: a version 4 UUID in the table.
    pub fn as_u128(self) -> u128 {
        self.0
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A row's cell in the "main row" of the thesis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Takes no part.
    Idle,
    /// In the queue, without a claim.
    Waiting,
    /// Written into the main row; may or may not have entered.
    Claimed,
    /// Entered, and says so.
    Held,
}

ylock_core::closed_set! {
    /// Returns one word, as used in the table.
    pub State: Idle = "idle", Waiting = "waiting", Claimed = "claimed", Held = "held"
}

/// The content that a client shows in its row. It lives for the row's TTL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The identity of the attempt.
    pub acquisition: AcquisitionId,
    /// Shared or exclusive.
    pub mode: Mode,
    /// The state of the attempt.
    pub state: State,
    /// Its place in the queue.
    pub ticket: Ticket,
    /// The owner that acquires.
    pub owner: Owner,
    /// The name of the slot's client, also that of the waiter behind it.
    pub client: ClientName,
    /// When the attempt began; of one that has waited and says that it is inside, when it was granted. In microseconds of the client's wall
    /// clock.
    pub since: i64,
    /// The lease the client asked for.
    pub lease: Duration,
    /// The waiter of the same client behind what this row holds.
    pub next: Option<Next>,
    /// Where the client can be told to look; nothing if it cannot.
    pub hints: Option<Endpoint>,
}

/// A local waiter that conflicts with its own client's held row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Next {
    /// The identity of its attempt.
    pub acquisition: AcquisitionId,
    /// The owner that acquires.
    pub owner: Owner,
    /// Shared or exclusive.
    pub mode: Mode,
    /// Its place in the queue.
    pub ticket: Ticket,
}

/// A token that was claimed for a mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The token.
    pub token: StoreToken,
    /// The mode that it was claimed for.
    pub mode: Mode,
}

/// One overwrite of a client's own row: one mutation, one trip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The write timestamp of the row's own cells; larger than that of every earlier write of this client, and never sent twice.
    pub stamp: i64,
    /// The whole new row.
    pub row: Row,
    /// The TTL of the row, in whole seconds.
    pub row_ttl: u32,
    /// The token cell to write beside it; without one the cell stays as it is.
    pub claim: Option<TimedClaim>,
    /// A token that was used and must outlive the row: goes to the partition's last write or read token, with
    /// the token itself as write timestamp, so that the largest one stays.
    pub used: Option<TimedClaim>,
}

/// A token and the TTL of its cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedClaim {
    /// The token.
    pub claim: Claim,
    /// The TTL, in whole seconds.
    pub ttl: u32,
}

/// One read of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partition {
    /// All rows of which anything is left, in no promised order.
    pub rows: Vec<SeenRow>,
    /// The largest token that a writer has used and given back.
    pub last_write: Option<StoreToken>,
    /// The largest token that a reader has used and given back.
    pub last_read: Option<StoreToken>,
}

/// The cells that belong to a whole partition: the largest tokens that were used and given back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastTokens {
    /// That of a writer.
    pub write: Option<StoreToken>,
    /// That of a reader.
    pub read: Option<StoreToken>,
}

impl LastTokens {
    /// Returns the one of this mode.
    pub(crate) fn of(&self, mode: Mode) -> Option<StoreToken> {
        match mode {
            Mode::Read => self.read,
            Mode::Write => self.write,
        }
    }
}

impl Partition {
    /// Returns the largest tokens that were used and given back.
    pub fn last_tokens(&self) -> LastTokens {
        LastTokens { write: self.last_write, read: self.last_read }
    }
}

/// The part of one client's row that a look shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenRow {
    /// The slot of the client.
    pub slot: Slot,
    /// The row, unless its TTL has passed or it was buried.
    pub row: Option<Row>,
    /// The stamp of the write that the row comes from: there if, and only if, the row is.
    pub heartbeat: Option<i64>,
    /// Its token cell, which lives longer.
    pub claim: Option<Claim>,
    /// The stamp of the write that the token cell comes from: there if, and only if, the cell is.
    pub claim_stamp: Option<i64>,
    /// The acquisition that this client is asked to give up.
    pub revoked: Option<AcquisitionId>,
}

/// Some of the locks of the table: those whose partitions follow each other on Cassandra's ring.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The locks in whose partitions a client takes part, each once. A lock that is free may be among them.
    pub keys: Vec<Key>,
    /// The position on the ring at which this page ends and the next one goes on; nothing if this is the last one.
    pub next: Option<i64>,
}

impl SeenRow {
    /// Returns the claim of the row that is shown, nothing if the token comes from another write than the row.
    ///
    /// A client writes both in one mutation, so a token that is later was written with a row that has ended since or was buried. What is
    /// shown beside it is an earlier row of the same client, of a replica that missed all this, and the token says nothing of it.
    pub(crate) fn present_claim(&self) -> Option<Claim> {
        self.claim.filter(|_| self.heartbeat.is_some() && self.heartbeat == self.claim_stamp)
    }
}

/// One partition per lock, read and written at quorum.
///
/// # Contract
/// - `write`, `revoke`, `bury` and `erase` return `Ok` only when a quorum has the mutation; any
///   error means *it may still happen, also later*, but for one of `write` that says that it [had
///   no effect](ylock_core::Error::had_no_effect): then no replica has the mutation, or will have
///   it.
/// - A `read` that starts after a `write` returned `Ok` shows that write or one with a larger stamp, as long as its TTL lasts, counted
///   from when `write` was called. The same holds for `read_last_tokens`, of the tokens that the write says were used.
/// - That is so only for a stamp that is given to `write` *once*: of two calls with one stamp the first copy may end while the second
///   one should live, and the copy that has ended wins. The caller sends a write in doubt again under a new stamp. Copies that the
///   network makes of one call are harmless: their end was computed once.
/// - Cells that are written more than once under one stamp (the last tokens and the revocations) may end as early as their first copy:
///   their TTL counts from the first time.
/// - The pages of `keys` together name each lock that has one and the same row, not [`Idle`](State::Idle), from before the first of them was asked
///   for until the last one came. A row that is written anew is the same row.
/// - A row that cannot be understood is an [`Unexpected`](ylock_core::ErrorKind::Unexpected) error of `read`, never left out. `keys` names its lock.
#[async_trait]
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Overwrites this client's row.
    async fn write(&self, key: &Key, slot: Slot, write: &Write) -> Result<()>;

    /// Reads the whole partition.
    async fn read(&self, key: &Key) -> Result<Partition>;

    /// Reads the last tokens alone, which takes as long however many clients wait.
    async fn read_last_tokens(&self, key: &Key) -> Result<LastTokens>;

    /// Reads the page of locks that follows this position on the ring, or the first one. It may have no locks and yet not be the last one.
    async fn keys(&self, after: Option<i64>) -> Result<Page>;

    /// Asks the client of `slot` to give up an acquisition, by a cell of that row that this client itself never writes. `stamp` grows
    /// from one acquisition of the slot to the next.
    async fn revoke(&self, key: &Key, slot: Slot, id: AcquisitionId, stamp: i64, ttl: u32) -> Result<()>;

    /// Deletes the row that another client has shown with this heartbeat, and nothing that is newer: the stamp of the deletion is the
    /// heartbeat, which wins the tie. The row's token stays. It can be sent any number of times, by any client.
    async fn bury(&self, key: &Key, slot: Slot, heartbeat: i64) -> Result<()>;

    /// Removes this client's row.
    async fn erase(&self, key: &Key, slot: Slot, stamp: i64) -> Result<()>;
}
