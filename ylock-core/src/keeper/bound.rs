//! The bound on how long one owner's hold may last.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::validity::Validity;
use crate::environment::Moment;

/// The bound on one hold; see [`Options::with_max_hold`](crate::Options::with_max_hold).
#[derive(Debug)]
pub(super) struct Bound {
    since: Moment,
    longest: Duration,
    /// A look has found that the hold had lasted too long while its lease had not ended. From then on that is why it is lost, whatever becomes of
    /// the lease; and if the lease has ended first, this is never set. So all that ask are told one reason.
    is_reached: AtomicBool,
}

impl Bound {
    pub(super) fn new(since: Moment, longest: Duration) -> Self {
        Self { since, longest, is_reached: AtomicBool::new(false) }
    }

    /// Returns the moment from which the hold may not be relied on.
    pub(super) fn end(&self) -> Moment {
        self.since.plus(self.longest)
    }

    /// Returns how long the hold has lasted.
    pub(super) fn lasted(&self, now: Moment) -> Duration {
        now.since(self.since)
    }

    pub(super) fn longest(&self) -> Duration {
        self.longest
    }

    /// Returns whether the hold has lasted too long, and its lease had not ended by then. Once it has, that is for good.
    pub(super) fn is_reached(&self, validity: &Validity, now: Moment) -> bool {
        if self.is_reached.load(Ordering::Acquire) {
            return true;
        }
        // A lease that has lapsed is asked before, and stays so: neither can become the reason after the other.
        let is_reached = self.end() <= now && validity.is_valid_at(now);
        if is_reached {
            self.is_reached.store(true, Ordering::Release);
        }
        is_reached
    }
}
