//! What follows from a decision, done after the lock of the shard is released: waking somebody may run its drop,
//! and that locks the shard again.

use std::sync::Arc;

use tokio::sync::{Notify, oneshot};

use super::Keeper;
use super::entry::Waiter;
use super::hold::{Acquired, Hold, Way};
use super::renewal::Turn;
use super::validity::Validity;
use crate::contact::Contact;
use crate::error::{Error, Result};
use crate::guard::Unlocked;
use crate::key::Key;
use crate::layer::Happened;
use crate::mode::Mode;

/// What somebody who waits is told.
pub(super) type Reply = Result<Option<Acquired>>;

/// Why somebody is not granted, without an error.
pub(super) enum Ungranted {
    NotFree,
}

#[derive(Default)]
pub(super) struct Effects {
    grants: Vec<(oneshot::Sender<Reply>, Arc<Hold>, Mode, Way)>,
    refusals: Vec<(oneshot::Sender<Reply>, Result<()>)>,
    pub(super) shown: Vec<(oneshot::Sender<Result<()>>, Result<()>)>,
    pub(super) done: Vec<(oneshot::Sender<Result<Unlocked>>, Result<Unlocked>)>,
    /// Those grants that are lost: whoever waits for that is woken.
    pub(super) lost: Vec<Arc<Validity>>,
    /// Requests that nobody waits for any more.
    pub(super) cancelled: Vec<Arc<Notify>>,
    /// What the layers are told. Empty if nobody watches.
    pub(super) happened: Vec<Happened>,
    /// Who has just come: it is granted at once if it is granted by the same change.
    pub(super) arriving: Option<u64>,
    /// Start the entry's driver.
    pub(super) drive: Option<Arc<Contact>>,
    /// When to look at the grant for its renewal.
    pub(super) renew: Option<Turn>,
}

impl Effects {
    /// Those of somebody's arrival.
    pub(super) fn for_arrival(number: u64) -> Self {
        Self { arriving: Some(number), ..Self::default() }
    }

    pub(super) fn grant(&mut self, waiter: Waiter, hold: Arc<Hold>, way: Way) {
        self.grants.push((waiter.reply, hold, waiter.mode, way));
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
            keeper.schedule.push(key, turn, keeper.len());
        }
        for cancel in self.cancelled {
            cancel.notify_one();
        }
        for validity in self.lost {
            validity.ring();
        }
        for (reply, hold, mode, way) in self.grants {
            let acquired = Acquired { hold, mode, way, keeper: Arc::clone(keeper), spent: false };
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
        if let Some(contact) = self.drive {
            keeper.drive(key, contact);
        }
        // Last: a layer may be slow, and nobody should wait for it.
        for happened in self.happened {
            keeper.tell(&happened);
        }
    }
}
