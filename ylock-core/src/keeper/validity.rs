//! The validity of a grant, and the one signal that it is lost.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::bound::Bound;
use crate::bell::Bell;
use crate::engine::{Grant, LossReason, valid_until};
use crate::environment::{Environment, Moment};
use crate::key::Key;
use until::Until;

mod until;

/// The validity of one grant, shared by all of its holders.
#[derive(Debug)]
pub(crate) struct Validity {
    pub(crate) key: Key,
    environment: Arc<dyn Environment>,
    until: Until,
    lost: OnceLock<LossReason>,
    lost_bell: Bell,
}

impl Validity {
    pub(crate) fn new(grant: &Grant, environment: Arc<dyn Environment>) -> Self {
        Self {
            key: grant.key.clone(),
            environment,
            until: Until::new(valid_until(grant.sent, grant.lease)),
            lost: OnceLock::new(),
            lost_bell: Bell::default(),
        }
    }

    /// Returns the present moment of its clock.
    pub(super) fn now(&self) -> Moment {
        self.environment.now()
    }

    /// Returns whether it may be relied on at `now`, which was read just before. Once it may not, that is for good.
    pub(super) fn is_valid_at(&self, now: Moment) -> bool {
        !self.until.remaining(|| now).is_zero()
    }

    /// Returns how much longer the grant may be relied on; zero for good once it is zero.
    pub(crate) fn remaining(&self) -> Duration {
        self.until.remaining(|| self.environment.now())
    }

    /// Returns the moment at which the validity ends unless it is renewed; [`Moment::ZERO`] if it has ended.
    pub(crate) fn until(&self) -> Moment {
        self.until.get()
    }

    /// Prolongs the validity to one `lease` after `sent`. Returns `false`, and changes nothing, if it has ended: a
    /// lapsed grant never becomes valid again.
    pub(crate) fn extend(&self, sent: Moment, lease: Duration) -> bool {
        self.until.extend(valid_until(sent, lease), || self.environment.now())
    }

    /// Ends the validity because the lock is lost; the first reason is kept. Callers that wait for that are told by [`ring`](Self::ring).
    pub(crate) fn lose(&self, reason: LossReason) {
        self.finish();
        _ = self.lost.set(reason);
    }

    /// Wakes the callers that wait for the loss of the grant, or of one hold under it, each whatever
    /// the wakers of the others do. Not while a shard is locked: to wake a caller may be to drop its
    /// guard.
    pub(crate) fn ring(&self) {
        self.lost_bell.ring();
    }

    /// Ends the validity because the grant is given back.
    pub(crate) fn finish(&self) {
        self.until.finish();
    }

    pub(crate) fn loss(&self) -> Option<LossReason> {
        self.lost.get().copied()
    }

    /// Returns the time that is left of this one within the bound.
    pub(super) fn up_to(&self, bound: Option<&Bound>, remaining: Duration) -> Duration {
        bound.map_or(remaining, |bound| remaining.min(bound.end().since(self.now())))
    }

    /// Waits until the lock is lost, or until a hold under it has reached this bound, and returns
    /// why.
    pub(super) async fn lost(&self, bound: Option<&Bound>) -> LossReason {
        loop {
            let signal = self.lost_bell.listen();
            // First: what was lost because of its bound is not lost once more when the grant is.
            if bound.is_some_and(|bound| bound.is_reached(self, self.now())) {
                return LossReason::HeldTooLong;
            }
            let remaining = self.remaining();
            if let Some(reason) = self.loss() {
                return reason;
            }
            if remaining.is_zero() && self.until.is_over() {
                self.lose(LossReason::Lapsed);
                self.ring();
                continue;
            }
            // Given back: only a loss that is just being written down can still ring.
            if remaining.is_zero() {
                signal.await;
                continue;
            }
            tokio::select! {
                // Either order is right: both lead to the same look.
                biased;
                () = signal => {}
                // The end is seen without another task's help: the task that renews may not be
                // running.
                () = self.environment.sleep(self.up_to(bound, remaining)) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
