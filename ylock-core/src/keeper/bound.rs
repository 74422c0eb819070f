//! The bound on how long one owner's hold may last.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use super::validity::Validity;
use crate::environment::Moment;

/// No look has come after the end yet.
const OPEN: u8 = 0;
/// At the first look after the end the lease was valid: the hold is lost because of its bound,
/// whatever becomes of the lease.
const REACHED: u8 = 1;
/// At that look the lease was over, or the grant given back or lost.
const TOO_LATE: u8 = 2;

/// The bound on one hold; see [`Options::with_max_hold`](crate::Options::with_max_hold).
#[derive(Debug)]
pub(super) struct Bound {
    since: Moment,
    longest: Duration,
    /// Changes once. Of two looks at the same time the first to write decides, so all that ask are
    /// told one reason.
    state: AtomicU8,
}

impl Bound {
    pub(super) fn new(since: Moment, longest: Duration) -> Self {
        Self { since, longest, state: AtomicU8::new(OPEN) }
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

    /// Returns whether the hold has lasted too long, and nothing else had ended it by then. Once it
    /// has, that is for good.
    pub(super) fn is_reached(&self, validity: &Validity, now: Moment) -> bool {
        let mut state = self.state.load(Ordering::Acquire);
        if state == OPEN && self.end() <= now {
            let seen = if validity.is_valid_at(now) { REACHED } else { TOO_LATE };
            let before = self.state.compare_exchange(OPEN, seen, Ordering::AcqRel, Ordering::Acquire);
            state = before.map_or_else(|decided| decided, |_| seen);
        }
        state == REACHED
    }
}
