//! A holder that is inside, as the oracle is told.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use ylock_core::environment::Environment;
use ylock_core::{Lease, Mode};

use super::Process;
use super::sets::Sets;
use crate::belief::Belief;
use crate::oracle::{Entry, Hold};

/// An entry; dropping it leaves. Kept beside a guard and dropped before it, because no holder relies on what it gives back.
pub(super) struct Inside {
    process: Arc<Process>,
    lease: Lease,
    entry: Entry,
    token: u64,
    /// The value that it has read of what the lock protects. Nothing for an acquisition within another one of the same owner: those two
    /// do not exclude each other.
    read: Option<u64>,
    mode: Mode,
}

impl Inside {
    /// Enters, if the lock is still held by the time that the oracle can be told.
    pub(super) fn enter(process: &Arc<Process>, lease: &Lease) -> Option<Self> {
        Self::believe(process, lease, Belief::Says(lease.clone()))
    }

    /// Enters, with this belief in place of what the lease says.
    pub(super) fn believe(process: &Arc<Process>, lease: &Lease, belief: Belief) -> Option<Self> {
        let oracle = &process.shared.oracle;
        let given = lease.token().and_then(|token| u64::try_from(token.get()).ok());
        let Some(token) = oracle.token(given) else {
            oracle.complain(
                "a lock without the token that the store gives, or with one that it does not".to_owned(),
            );
            return None;
        };
        let hold = Hold {
            key: lease.key().clone(),
            mode: lease.mode(),
            owner: lease.owner(),
            token,
            clocks: Arc::clone(&process.clocks),
            belief,
            resumes: process.shared.sets != Sets::None,
            permit: None,
        };
        let entry = oracle.enter(hold)?;
        let read = if entry.reentrant { None } else { oracle.read(lease.key(), token) };
        let (process, lease, mode) = (Arc::clone(process), lease.clone(), lease.mode());
        Some(Self { process, lease, entry, token, read, mode })
    }

    /// Works for a while, or until it is told that the lock is lost. Returns whether it may go on.
    pub(super) async fn work(&self, time: Duration) -> bool {
        let lost = std::pin::pin!(self.lease.lost());
        let is_lost = match select(lost, self.process.clocks.sleep(time)).await {
            Either::Left(_) => true,
            Either::Right(_) => false,
        };
        let relies = self.process.shared.oracle.relies(self.entry.number);
        if is_lost && relies {
            self.process.shared.oracle.complain("a lock that is lost is valid".to_owned());
        }
        relies
    }

    /// Writes what the lock protects: also when the lock was lost meanwhile, as a task does that did not look.
    pub(super) fn write(&mut self) {
        if let (Some(read), Mode::Write) = (self.read.take(), self.mode) {
            self.process.shared.oracle.write(self.lease.key(), self.token, read);
        }
    }

    /// Goes on as a reader: it will not write any more.
    pub(super) fn downgrade(&mut self) {
        self.mode = Mode::Read;
        self.process.shared.oracle.downgrade(self.entry.number);
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.process.shared.oracle.leave(self.entry.number);
    }
}
