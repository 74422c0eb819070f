//! The servers as the algorithm needs them, with nothing of how the driver provides it.
//!
//! # Contract
//! - **Transactions** of all clients have one order, the revisions. One that writes is answered only when a majority of the members has it. Its
//!   looks show what there is after its own writes before them. Transactions that only look are *linearizable*: they show every transaction that was
//!   answered before they were sent.
//! - **Faults:** after [`Refused`](Fault::Refused) and [`LeaseGone`](Fault::LeaseGone) nothing has happened, and nothing will. After
//!   [`Unknown`](Fault::Unknown) it may have happened, or still happen. Nothing is sent twice.
//! - **Time:** every request is answered, or has failed, within the request timeout.
//! - **Leases:** a key that was put under a lease is gone when the lease is, and is put under no lease that is gone. It lives
//!   for its time at least from when it was asked for, whichever member leads.

use std::fmt;

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;
use ylock_core::engine::Diagnostics;
use ylock_core::{Error, ErrorKind};

/// A request, not sent before it is polled.
pub type Pending<'a, T> = BoxFuture<'a, Result<T, Fault>>;

/// The servers; see the [module](self).
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Carries out a transaction.
    fn transact(&self, transaction: Transaction) -> Pending<'_, Outcome>;

    /// Makes a lease that lives for so many seconds, or for longer.
    fn grant(&self, seconds: i64) -> Pending<'_, Granted>;

    /// Ends a lease. One that is gone already is no fault.
    fn revoke(&self, lease: i64) -> Pending<'_, ()>;

    /// Asks each server what it tells of itself.
    fn diagnose(&self) -> BoxFuture<'_, Diagnostics> {
        Box::pin(std::future::ready(Diagnostics::default()))
    }

    /// Watches a key from now on: until it is deleted, and also until it is changed if `changes`.
    fn watch(&self, key: Vec<u8>, changes: bool) -> Pending<'_, Watching>;
}

/// What every answer says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "not covered by semver")]
pub struct Header {
    /// The cluster that has answered.
    pub cluster: u64,
    /// The member that has answered.
    pub member: u64,
    /// The revision of the answer: that of a transaction which has written.
    pub revision: i64,
}

/// A lease that was made.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_structs, reason = "not covered by semver")]
pub struct Granted {
    /// What the answer says.
    pub header: Header,
    /// The number of the lease.
    pub lease: i64,
    /// For how many seconds it lives.
    pub seconds: i64,
}

/// What a watch has told of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "not covered by semver")]
pub struct KeyEvent {
    /// True if the key was deleted, false if it was put.
    pub is_deletion: bool,
    /// The revision of that. It may be older than what a look has shown that was taken beside the watch: a watch begins with what its member has
    /// carried out, which may be behind.
    pub revision: i64,
}

/// A watch. Dropped, it takes the watch back.
#[allow(clippy::exhaustive_structs, reason = "not covered by semver")]
pub struct Watching {
    /// The revision after which changes are told.
    pub since: i64,
    /// Fires once. Fails if the watch has broken.
    pub told: oneshot::Receiver<KeyEvent>,
    /// Whatever ends the watch when it is dropped.
    pub guard: Box<dyn Send + Sync>,
}

/// One key, or all keys from one to another.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "not covered by semver")]
pub struct Keys {
    /// The first key.
    pub begin: Vec<u8>,
    /// The key after the last; `None` for one key.
    pub end: Option<Vec<u8>>,
}

impl Keys {
    /// Returns one key.
    pub fn one(key: impl Into<Vec<u8>>) -> Self {
        Self { begin: key.into(), end: None }
    }

    /// Returns the keys that begin with `prefix`, which ends with a byte other than the largest.
    pub fn below(prefix: impl Into<Vec<u8>>) -> Self {
        let begin = prefix.into();
        let end = after_all_below(&begin);
        Self { begin, end: Some(end) }
    }
}

/// Returns the first key after all that begin with `prefix`.
pub(crate) fn after_all_below(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    end
}

/// A condition of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "not covered by semver")]
pub enum Condition {
    /// Each of these keys was made at this revision; at 0: none of them is there.
    MadeAt(Keys, i64),
    /// This key was last changed at this revision.
    ChangedAt(Vec<u8>, i64),
}

/// A step of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "not covered by semver")]
pub enum Step {
    /// Puts a key.
    Put(Put),
    /// Deletes a key.
    Delete(Vec<u8>),
    /// Looks.
    Look(Look),
}

/// A key that is put.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "not covered by semver")]
pub struct Put {
    /// The key.
    pub key: Vec<u8>,
    /// Its value.
    pub value: Vec<u8>,
    /// The lease that it belongs to. `None`: the key is there, and keeps the one that it has.
    pub lease: Option<i64>,
}

/// A look.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "not covered by semver")]
pub struct Look {
    /// The keys to look at.
    pub keys: Keys,
    /// Whether those come first that were made last; otherwise they come in the order of the keys.
    pub newest_first: bool,
    /// The most keys to show; 0: all.
    pub most: i64,
    /// Only keys that were made before this revision.
    pub made_before: Option<i64>,
    /// Only keys that were made after this revision.
    pub made_after: Option<i64>,
    /// Whether the values are shown too.
    pub values: bool,
}

impl Look {
    /// Returns a look at all of these keys and their values, in their order.
    pub fn at(keys: Keys) -> Self {
        Self { keys, newest_first: false, most: 0, made_before: None, made_after: None, values: true }
    }
}

/// Steps that are carried out together, or other ones if a condition does not hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "not covered by semver")]
pub struct Transaction {
    /// All of these must hold.
    pub when: Vec<Condition>,
    /// The steps if they do.
    pub then: Vec<Step>,
    /// The steps if they do not.
    pub otherwise: Vec<Step>,
}

impl Transaction {
    /// Returns a transaction that only looks.
    pub fn looking(looks: impl IntoIterator<Item = Look>) -> Self {
        Self { then: looks.into_iter().map(Step::Look).collect(), ..Self::default() }
    }
}

/// The answer to a transaction.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "not covered by semver")]
pub struct Outcome {
    /// What the answer says.
    pub header: Header,
    /// Whether all conditions held.
    pub held: bool,
    /// The answers to the steps, in order.
    pub done: Vec<Done>,
}

impl Outcome {
    /// Returns what the look at this step has shown.
    pub(crate) fn seen(&mut self, step: usize) -> Seen {
        match self.done.get_mut(step) {
            Some(Done::Looked(seen)) => std::mem::take(seen),
            _ => Seen::default(),
        }
    }

    /// Returns whether any step has deleted a key.
    pub(crate) fn has_deleted(&self) -> bool {
        self.done.iter().any(|done| matches!(done, Done::Deleted(count) if *count > 0))
    }
}

/// The answer to a step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "not covered by semver")]
pub enum Done {
    /// The key was put.
    Put,
    /// So many keys were deleted.
    Deleted(i64),
    /// What was seen.
    Looked(Seen),
}

/// What a look has shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "not covered by semver")]
pub struct Seen {
    /// The keys.
    pub entries: Vec<Entry>,
    /// Whether there are more than were to be shown.
    pub more: bool,
}

/// A key as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "not covered by semver")]
pub struct Entry {
    /// The key.
    pub key: Vec<u8>,
    /// Its value; empty if the look did not ask for it.
    pub value: Vec<u8>,
    /// The revision that made it.
    pub made: i64,
    /// The revision that changed it last.
    pub changed: i64,
    /// The lease that it belongs to; 0 if it belongs to none.
    pub lease: i64,
}

/// What came instead of an answer.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_enums, reason = "not covered by semver")]
pub enum Fault {
    /// There is no such lease. Nothing has happened.
    LeaseGone,
    /// Nothing has happened, and nothing will.
    Refused(Error),
    /// It may have happened, or still happen.
    Unknown(Error),
}

/// Returns the error for a caller.
pub(crate) fn to_error(fault: Fault) -> Error {
    match fault {
        Fault::LeaseGone => Error::new(ErrorKind::Unavailable, "the etcd lease of this client has ended")
            .with_engine(crate::NAME),
        Fault::Refused(error) | Fault::Unknown(error) => error,
    }
}

/// Returns the kind of failure that the fault is for the meter. That a lease is gone is an answer.
pub(crate) fn failure<T>(answer: &Result<T, Fault>) -> Option<ErrorKind> {
    match answer {
        Err(Fault::Refused(error) | Fault::Unknown(error)) => Some(error.kind()),
        Ok(_) | Err(Fault::LeaseGone) => None,
    }
}

impl fmt::Debug for Watching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watching").field("since", &self.since).finish_non_exhaustive()
    }
}
