//! The hold that an owner has while its count is above zero, and the acquisition that the keeper hands to a caller.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use super::Keeper;
use super::bound::Bound;
use super::validity::Validity;
use crate::engine::LossReason;
use crate::environment::Moment;
use crate::mode::Mode;
use crate::owner::Owner;
use crate::token::Token;

/// No caller has read that it was granted.
const UNREAD: u8 = 0;
const RECEIVED: u8 = 1;
/// No caller has read it for so long that it was given to others.
const TAKEN_BACK: u8 = 2;

/// The state that all guards of one owner's hold share.
#[derive(Debug)]
pub(crate) struct Hold {
    pub(crate) validity: Arc<Validity>,
    pub(crate) owner: Owner,
    pub(crate) token: Option<Token>,
    /// How long it may last. In a box: most last for as long as their owners want them to, and
    /// there is room for this with each key that is held.
    pub(super) bound: Option<Box<Bound>>,
    /// Whether a caller has it. Changes once, so only one succeeds: the caller that reads its
    /// answer, or the keeper that takes the hold back.
    receipt: AtomicU8,
    /// Of a reader that is a client of a semaphore: the store has shown, after this owner had entered, that the other clients count on the same number of
    /// permits. A client that comes later sees this owner.
    counts_as_others: AtomicBool,
    /// The count has fallen to zero. The grant may live on, for other holders.
    over: AtomicBool,
}

impl Hold {
    pub(super) fn new(
        validity: Arc<Validity>,
        owner: Owner,
        token: Option<Token>,
        bound: Option<Bound>,
    ) -> Self {
        Self {
            validity,
            owner,
            token,
            bound: bound.map(Box::new),
            receipt: AtomicU8::new(UNREAD),
            counts_as_others: AtomicBool::new(false),
            over: AtomicBool::new(false),
        }
    }

    /// Notes that a caller has it. Returns whether that is so: it may have been taken back before.
    pub(crate) fn receive(&self) -> bool {
        self.decide(RECEIVED) == RECEIVED
    }

    /// Takes it back, unless a caller has it. Returns whether it was taken back.
    pub(super) fn take_back(&self) -> bool {
        self.decide(TAKEN_BACK) == TAKEN_BACK
    }

    pub(super) fn is_unread(&self) -> bool {
        self.receipt.load(Ordering::Acquire) == UNREAD
    }

    fn decide(&self, receipt: u8) -> u8 {
        let before = self.receipt.compare_exchange(UNREAD, receipt, Ordering::AcqRel, Ordering::Acquire);
        before.map_or_else(|decided| decided, |_| receipt)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    pub(crate) fn is_valid(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// Returns how much longer it may be relied on; zero for good once it is zero.
    pub(crate) fn remaining(&self) -> Duration {
        if self.is_over() {
            return Duration::ZERO;
        }
        self.validity.up_to(self.bound(), self.validity.remaining())
    }

    /// Returns why it was lost, if it was.
    pub(crate) fn loss(&self) -> Option<LossReason> {
        if self.is_over() {
            return None;
        }
        let is_too_long =
            self.bound().is_some_and(|bound| bound.is_reached(&self.validity, self.validity.now()));
        if is_too_long { Some(LossReason::HeldTooLong) } else { self.validity.loss() }
    }

    /// Waits until it is lost, and returns why. Never ends if it was given back before.
    pub(crate) async fn lost(&self) -> LossReason {
        let reason = self.validity.lost(self.bound()).await;
        if self.is_over() {
            // A later holder lost what was handed on.
            return std::future::pending().await;
        }
        reason
    }

    /// Returns whether it has lasted too long, and its lease had not ended by then. Once it has,
    /// that is for good.
    pub(super) fn is_too_long(&self, now: Moment) -> bool {
        self.bound().is_some_and(|bound| bound.is_reached(&self.validity, now))
    }

    fn bound(&self) -> Option<&Bound> {
        self.bound.as_deref()
    }

    pub(crate) fn counts_as_others(&self) -> bool {
        self.counts_as_others.load(Ordering::Acquire)
    }

    pub(crate) fn note_counts_as_others(&self) {
        self.counts_as_others.store(true, Ordering::Release);
    }

    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Release);
    }
}

/// The way in which an owner got in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// The owner held it already.
    Reentered,
    /// The owner is a new holder.
    New {
        /// Other holders or waiters went first.
        waited: bool,
    },
}

/// One acquisition that was granted. Dropping it gives it back, so that it cannot get lost on its way
/// to a caller that has just stopped waiting.
#[derive(Debug)]
pub(crate) struct Acquired {
    pub(crate) hold: Arc<Hold>,
    pub(crate) mode: Mode,
    pub(crate) admission: Admission,
    pub(crate) keeper: Arc<Keeper>,
    /// Given back by other means; dropping does nothing.
    pub(super) spent: bool,
}

impl Drop for Acquired {
    fn drop(&mut self) {
        if !self.spent {
            drop(self.keeper.release(&self.hold, self.mode, None));
        }
    }
}
