//! The validity of a grant, and the one signal that it is lost.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::Notify;

use crate::engine::{AcquisitionId, Grant, LossReason, valid_until};
use crate::environment::{Environment, Moment};
use crate::key::Key;

/// Ended for good, because the lease ran out. No clock ever shows a moment before it, so a comparison with it always says "over".
const OVER: u64 = 0;
/// Ended for good, because it was given back or lost. So early that a comparison with it says "over", too.
const FINISHED: u64 = 1;

/// The validity of one grant, shared by all of its holders.
#[derive(Debug)]
pub(crate) struct Validity {
    pub(crate) key: Key,
    pub(crate) id: AcquisitionId,
    environment: Arc<dyn Environment>,
    lease: Duration,
    /// Nanoseconds of the environment's clock, [`OVER`] or [`FINISHED`]. Once one of those, never a moment again: a caller that
    /// sees that the moment has passed writes `OVER` before it says so, and a renewal only ever replaces a moment
    /// that has not passed.
    until: AtomicU64,
    lost: OnceLock<LossReason>,
    lost_signal: Notify,
}

impl Validity {
    pub(crate) fn new(grant: &Grant, environment: Arc<dyn Environment>) -> Self {
        let mut validity = Self {
            key: grant.key.clone(),
            id: grant.id,
            environment,
            lease: grant.lease,
            until: AtomicU64::new(OVER),
            lost: OnceLock::new(),
            lost_signal: Notify::new(),
        };
        validity.until = AtomicU64::new(validity.end_of_lease(grant.sent).as_nanos());
        validity
    }

    pub(crate) fn is_valid(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// Returns how much longer the grant may be relied on; zero for good once it is zero.
    pub(crate) fn remaining(&self) -> Duration {
        loop {
            let until = self.until.load(Ordering::Acquire);
            let remaining = Moment::from_nanos(until).since(self.environment.now());
            // A renewal may have won the race for a moment that passed since `until` was read: then it is looked at again.
            if !remaining.is_zero() || until <= FINISHED || self.replace(until, OVER) {
                return remaining;
            }
        }
    }

    /// Returns the moment at which the validity ends unless it is renewed; [`Moment::ZERO`] if it has ended.
    pub(crate) fn until(&self) -> Moment {
        match self.until.load(Ordering::Acquire) {
            OVER | FINISHED => Moment::ZERO,
            until => Moment::from_nanos(until),
        }
    }

    /// Prolongs the validity to one lease after `sent`. Returns `false`, and changes nothing, if it has ended: a
    /// lapsed grant never becomes valid again.
    pub(crate) fn extend(&self, sent: Moment) -> bool {
        let new = self.end_of_lease(sent);
        loop {
            let until = self.until.load(Ordering::Acquire);
            if Moment::from_nanos(until) <= self.environment.now() {
                return false;
            }
            if new.as_nanos() <= until || self.replace(until, new.as_nanos()) {
                return true;
            }
        }
    }

    /// Ends the validity because the lock is lost; the first reason is kept. Callers that wait for that are told by [`ring`](Self::ring).
    pub(crate) fn lose(&self, reason: LossReason) {
        self.finish();
        _ = self.lost.set(reason);
    }

    /// Wakes the callers that wait for the loss. Not while a shard is locked: to wake a caller may be to drop its guard.
    pub(crate) fn ring(&self) {
        self.lost_signal.notify_waiters();
    }

    /// Ends the validity because the grant is given back.
    pub(crate) fn finish(&self) {
        self.until.store(FINISHED, Ordering::Release);
    }

    pub(crate) fn loss(&self) -> Option<LossReason> {
        self.lost.get().copied()
    }

    /// Waits until the lock is lost, and returns why.
    pub(crate) async fn lost(&self) -> LossReason {
        loop {
            let signal = self.lost_signal.notified();
            let remaining = self.remaining();
            if let Some(reason) = self.loss() {
                return reason;
            }
            if remaining.is_zero() && self.until.load(Ordering::Acquire) == OVER {
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
                // The end of the lease is seen without another task's help: the task that renews may not be running.
                () = self.environment.sleep(remaining) => {}
            }
        }
    }

    fn end_of_lease(&self, sent: Moment) -> Moment {
        valid_until(sent, self.lease)
    }

    fn replace(&self, from: u64, to: u64) -> bool {
        self.until.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

#[cfg(test)]
mod tests;
