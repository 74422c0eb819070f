//! The end of a validity, in one word that several threads look at and change.
//!
//! The types of the word come from the module above: the tests of the test kit put those of `loom` there, and try every order of the threads.

use std::time::Duration;

use super::{AtomicU64, Moment, Ordering};

/// Ended for good, because the lease ran out.
const OVER: u64 = 0;
/// Ended for good, because it was given back or lost. No moment, as [`OVER`]: a clock that is paused may show an earlier one.
const FINISHED: u64 = 1;

/// The moment at which a validity ends.
#[derive(Debug)]
pub(super) struct Until {
    /// Nanoseconds of the environment's clock, [`OVER`] or [`FINISHED`]. Once one of those, never a moment again: a caller that
    /// sees that the moment has passed writes `OVER` before it says so, and a renewal only ever replaces a moment
    /// that has not passed.
    word: AtomicU64,
}

impl Until {
    pub(super) fn new(end: Moment) -> Self {
        Self { word: AtomicU64::new(end.as_nanos()) }
    }

    /// Returns how much time is left; zero for good once it is zero.
    pub(super) fn remaining(&self, now: impl Fn() -> Moment) -> Duration {
        loop {
            let until = self.word.load(Ordering::Acquire);
            if until <= FINISHED {
                return Duration::ZERO;
            }
            let remaining = Moment::from_nanos(until).since(now());
            // A renewal may have won the race for a moment that passed since `until` was read: then it is looked at again.
            if !remaining.is_zero() || self.replace(until, OVER) {
                return remaining;
            }
        }
    }

    /// Returns the moment; [`Moment::ZERO`] if it is known to have passed.
    pub(super) fn get(&self) -> Moment {
        match self.word.load(Ordering::Acquire) {
            OVER | FINISHED => Moment::ZERO,
            until => Moment::from_nanos(until),
        }
    }

    /// Returns whether the moment is known to have passed, and was not brought about by [`finish`](Self::finish).
    pub(super) fn is_over(&self) -> bool {
        self.word.load(Ordering::Acquire) == OVER
    }

    /// Puts the moment off. Returns `false`, and changes nothing, if it has passed.
    pub(super) fn extend(&self, end: Moment, now: impl Fn() -> Moment) -> bool {
        loop {
            let until = self.word.load(Ordering::Acquire);
            if until <= FINISHED || Moment::from_nanos(until) <= now() {
                return false;
            }
            if end.as_nanos() <= until || self.replace(until, end.as_nanos()) {
                return true;
            }
        }
    }

    /// Ends the validity now.
    pub(super) fn finish(&self) {
        // An exchange, as each other change: loom gives these one order, and takes a plain store for one that may come before a renewal which
        // it replaces.
        self.word.swap(FINISHED, Ordering::AcqRel);
    }

    fn replace(&self, from: u64, to: u64) -> bool {
        self.word.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}
