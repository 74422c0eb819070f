//! What follows from a decision, done after the lock of the shard is released: waking somebody may run its drop,
//! and that locks the shard again.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::Keeper;
use super::entry::Waiter;
use super::hold::{Acquired, Hold};
use super::renewal::Turn;
use crate::error::{Error, Result};
use crate::guard::Unlocked;
use crate::key::Key;
use crate::mode::Mode;

/// What somebody who waits is told.
pub(super) type Reply = Result<Option<Acquired>>;

/// Why somebody is not granted, without an error.
pub(super) enum Ungranted {
    NotFree,
}

#[derive(Default)]
pub(super) struct Effects {
    grants: Vec<(oneshot::Sender<Reply>, Arc<Hold>, Mode, bool)>,
    refusals: Vec<(oneshot::Sender<Reply>, Result<()>)>,
    pub(super) shown: Vec<(oneshot::Sender<Result<()>>, Result<()>)>,
    pub(super) done: Vec<(oneshot::Sender<Result<Unlocked>>, Result<Unlocked>)>,
    /// Start the entry's driver.
    pub(super) drive: bool,
    /// When to look at the grant for its renewal.
    pub(super) renew: Option<Turn>,
}

impl Effects {
    pub(super) fn grant(&mut self, waiter: Waiter, hold: Arc<Hold>, reentrant: bool) {
        self.grants.push((waiter.reply, hold, waiter.mode, reentrant));
    }

    pub(super) fn fail(&mut self, waiter: Waiter, error: Error) {
        self.refusals.push((waiter.reply, Err(error)));
    }

    pub(super) fn answer(&mut self, waiter: Option<Waiter>, answer: Ungranted) {
        let Ungranted::NotFree = answer;
        self.refusals.extend(waiter.map(|waiter| (waiter.reply, Ok(()))));
    }

    /// Does everything.
    pub(super) fn happen(self, keeper: &Arc<Keeper>, key: &Key) {
        if let Some(turn) = self.renew {
            keeper.schedule.push(key, turn);
        }
        for (reply, hold, mode, reentrant) in self.grants {
            let acquired = Acquired { hold, mode, reentrant, keeper: Arc::clone(keeper), spent: false };
            // Whoever stopped waiting just now gets it back in the error, and dropping that gives it back.
            drop(reply.send(Ok(Some(acquired))));
        }
        for (reply, refusal) in self.refusals {
            drop(reply.send(refusal.map(|()| None)));
        }
        for (sender, result) in self.shown {
            drop(sender.send(result));
        }
        for (sender, result) in self.done {
            drop(sender.send(result));
        }
        if self.drive {
            keeper.drive(key);
        }
    }
}
