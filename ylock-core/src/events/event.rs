//! The events that layers are told.

use std::time::Duration;

use crate::client_name::ClientName;
use crate::engine::LossReason;
use crate::error::{Error, ErrorKind};
use crate::key::Key;
use crate::mode::Mode;
use crate::owner::Owner;

/// One call of a user that acquires a lock, or a permit.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Acquisition {
    /// A number, different for every acquisition of a process: it joins the beginning of one to its end.
    pub number: u64,
    /// The engine of the client, in one word.
    pub engine: &'static str,
    /// The name of the client.
    pub client: ClientName,
    /// The key of the lock, or of the semaphore.
    pub key: Key,
    /// Of a permit how many the semaphore has; `None` for a lock.
    pub permits: Option<u32>,
    /// Shared or exclusive; a permit is shared. After [`Guard::downgrade`](crate::Guard::downgrade) the end says `Read`.
    pub mode: Mode,
    /// The owner that acquires.
    pub owner: Owner,
    /// The longest time for which the caller waits: `None` for as long as it takes, zero if it only tries.
    pub max_wait: Option<Duration>,
}

/// The outcome of an acquisition.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// The caller stopped waiting: it dropped the future.
    Cancelled,
    /// An error, also that of a layer that refused.
    Failed(Error),
    /// The caller holds the lock.
    Granted {
        /// Another holder had to let go first, or another waiter was before it in the queue.
        waited: bool,
    },
    /// The lock was not free, or not in time.
    NotFree,
    /// The caller holds the lock, because its owner held it already.
    Reentered,
}

/// The end of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// It was lost before it was given back.
    Lost(LossReason),
    /// It was given back.
    Released,
}

/// The outcome of a renewal.
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

/// An event: something that a client did or learnt by itself, without a call of a user.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ClientEvent {
    /// An owner holds a lock no more.
    HoldEnded {
        /// The key of the lock.
        key: Key,
        /// The owner that held it.
        owner: Owner,
        /// The mode in which it was held at the end.
        mode: Mode,
        /// The time from the owner's first acquisition until it had given back its last one, or until the loss.
        held: Duration,
        /// The way in which the hold ended.
        end: End,
    },
    /// A grant went from one owner of this process to the next, without the store.
    HandedOver {
        /// The key of the lock.
        key: Key,
    },
    /// Renewals began.
    Renewing {
        /// The number of grants.
        grants: usize,
        /// The delay of the latest of them: more than a moment if the process had no time for its tasks.
        lag: Duration,
    },
    /// A renewal has ended.
    Renewed {
        /// The key of the lock.
        key: Key,
        /// The outcome of the renewal.
        outcome: Renewed,
    },
    /// A grant or, if `held` is false, a place in the queue, which the store had of this client for a key, has been given back.
    ReleaseEnded {
        /// The key of the lock.
        key: Key,
        /// True for a grant, false for a place in the queue.
        held: bool,
        /// The time from the decision until now.
        took: Duration,
        /// The number of attempts that failed before.
        failures: u32,
        /// False if the store did not confirm it within one lease, and frees the lock by itself.
        confirmed: bool,
    },
    /// A request to the store has ended.
    Requested {
        /// The kind of request, in the words of the engine.
        operation: &'static str,
        /// The time since it was sent.
        took: Duration,
        /// The kind of error, if it failed.
        error: Option<ErrorKind>,
    },
}

impl ClientEvent {
    /// Returns the key that it belongs to, if it belongs to one.
    pub fn key(&self) -> Option<&Key> {
        match self {
            Self::HoldEnded { key, .. }
            | Self::HandedOver { key }
            | Self::Renewed { key, .. }
            | Self::ReleaseEnded { key, .. } => Some(key),
            Self::Renewing { .. } | Self::Requested { .. } => None,
        }
    }
}
