//! What layers are told.

use std::time::Duration;

use crate::client_name::ClientName;
use crate::engine::LossReason;
use crate::error::{Error, ErrorKind};
use crate::key::Key;
use crate::mode::{Mode, Wait};
use crate::owner::Owner;

/// One call of a user who wants a lock.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Acquisition {
    /// Different for every acquisition of a process: what joins the beginning of one to its end.
    pub number: u64,
    /// The engine of the client, in one word.
    pub engine: &'static str,
    /// The name of the client.
    pub client: ClientName,
    /// What for.
    pub key: Key,
    /// Shared or exclusive. After [`Guard::downgrade`](crate::Guard::downgrade) the end says `Read`.
    pub mode: Mode,
    /// Who.
    pub owner: Owner,
    /// How long the caller is ready to wait.
    pub wait: Wait,
}

/// How an acquisition ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// The caller stopped waiting: it dropped the future.
    Cancelled,
    /// An error, also that of a layer that refused.
    Failed(Error),
    /// The caller holds the lock.
    Granted {
        /// Somebody else had to let go first, or stood before it in the queue.
        waited: bool,
    },
    /// The lock was not free, or not in time.
    NotFree,
    /// The caller holds the lock, because its owner held it already.
    Reentered,
}

/// How a hold ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// It was lost before it was given back.
    Lost(LossReason),
    /// It was given back.
    Released,
}

/// What became of a renewal.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Renewed {
    /// The store did not confirm it. It is tried again until the lease ends.
    Failed(Error),
    /// The store does not have the grant any more.
    Lost(LossReason),
    /// The store has the grant for another lease.
    Renewed,
}

/// What a client did or learnt by itself, without a call of a user.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Happened {
    /// An owner holds a lock no more.
    HoldEnded {
        /// Which lock.
        key: Key,
        /// Who held it.
        owner: Owner,
        /// As what it was held at the end.
        mode: Mode,
        /// From the owner's first acquisition until it had given back its last one, or until the loss.
        held: Duration,
        /// How.
        end: End,
    },
    /// A grant went from one owner of this process to the next, without the store.
    HandedOver {
        /// Of which lock.
        key: Key,
    },
    /// Renewals began.
    Renewing {
        /// How many.
        grants: usize,
        /// How much later than planned the latest of them was: more than a moment if the process had no time for its tasks.
        lag: Duration,
    },
    /// A renewal has ended.
    Renewed {
        /// Of which lock.
        key: Key,
        /// How.
        outcome: Renewed,
    },
    /// What the store had of this client for a key has been given back: a grant or, if `held` is false, a place in the queue.
    Left {
        /// Of which lock.
        key: Key,
        /// A grant, not a place in the queue.
        held: bool,
        /// From the decision until now.
        took: Duration,
        /// How many attempts failed before.
        failures: u32,
        /// False: the store never confirmed it within one lease, and frees it by itself.
        confirmed: bool,
    },
    /// A request to the store has ended.
    Requested {
        /// What kind of request, in the words of the engine.
        operation: &'static str,
        /// From sending it.
        took: Duration,
        /// Why it failed, if it did.
        error: Option<ErrorKind>,
    },
}

impl Happened {
    /// The key it belongs to, if it belongs to one.
    pub fn key(&self) -> Option<&Key> {
        match self {
            Self::HoldEnded { key, .. }
            | Self::HandedOver { key }
            | Self::Renewed { key, .. }
            | Self::Left { key, .. } => Some(key),
            Self::Renewing { .. } | Self::Requested { .. } => None,
        }
    }
}
