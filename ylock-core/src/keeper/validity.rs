//! How long a grant may be relied on, and the one signal that it is lost.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::Notify;

use crate::engine::{AcquisitionId, Grant, LossReason, valid_until};
use crate::environment::{Environment, Moment};
use crate::key::Key;

/// Ended for good. No clock ever shows a moment before it, so a comparison with it always says "over".
const OVER: u64 = 0;

/// The validity of one grant, shared by everybody who holds under it.
#[derive(Debug)]
pub(crate) struct Validity {
    pub(crate) key: Key,
    pub(crate) id: AcquisitionId,
    environment: Arc<dyn Environment>,
    lease: Duration,
    /// Nanoseconds of the environment's clock, or [`OVER`]. Once `OVER`, never anything else: whoever sees that the
    /// moment has passed writes `OVER` before it says so, and a renewal only ever replaces a moment that
    /// has not passed.
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

    /// How much longer the grant may be relied on; zero for good once it is zero.
    pub(crate) fn remaining(&self) -> Duration {
        let until = self.until.load(Ordering::Acquire);
        let now = self.environment.now();
        let remaining = Moment::from_nanos(until).since(now);
        // A renewal may have won the race for a moment that passed since `until` was read: look again.
        if remaining.is_zero() && until != OVER && !self.replace(until, OVER) {
            return self.remaining();
        }
        remaining
    }

    /// When the validity ends unless it is renewed; [`Moment::ZERO`] if it has ended.
    pub(crate) fn until(&self) -> Moment {
        Moment::from_nanos(self.until.load(Ordering::Acquire))
    }

    /// Prolongs the validity to one lease after `sent`. Answers `false`, and changes nothing, if it has ended: a
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

    /// Ends the validity because the lock is lost; the first reason is kept.
    pub(crate) fn lose(&self, reason: LossReason) {
        self.finish();
        if self.lost.set(reason).is_ok() {
            self.lost_signal.notify_waiters();
        }
    }

    /// Ends the validity because the grant is given back.
    pub(crate) fn finish(&self) {
        self.until.store(OVER, Ordering::Release);
    }

    pub(crate) fn loss(&self) -> Option<LossReason> {
        self.lost.get().copied()
    }

    /// Ends when the lock is lost.
    pub(crate) async fn lost(&self) -> LossReason {
        loop {
            let signal = self.lost_signal.notified();
            if let Some(reason) = self.loss() {
                return reason;
            }
            signal.await;
        }
    }

    fn end_of_lease(&self, sent: Moment) -> Moment {
        valid_until(sent, self.lease)
    }

    fn replace(&self, from: u64, to: u64) -> bool {
        self.until.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}
