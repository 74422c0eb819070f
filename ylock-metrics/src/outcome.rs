//! The outcomes that metrics tell apart, and counters for them: the values of the label `outcome`.

use metrics::Counter;
use ylock_core::layer::{Outcome, Renewed};
use ylock_core::{ErrorKind, closed_set};

/// The outcome of an acquisition that is no reentry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Acquired {
    AtOnce,
    AfterWaiting,
    NotFree,
    TimedOut,
    Refused,
    Cancelled,
    Failed,
}

closed_set! {
    /// Returns the value of the label.
    pub(crate) Acquired:
        AtOnce = "at_once",
        AfterWaiting = "after_waiting",
        NotFree = "not_free",
        TimedOut = "timed_out",
        Refused = "refused",
        Cancelled = "cancelled",
        Failed = "failed",
}

impl Acquired {
    /// Returns how an acquisition has ended; nothing for a reentry. `tried`: the caller was not ready to wait.
    pub(crate) fn of(outcome: &Outcome, tried: bool) -> Option<Self> {
        Some(match outcome {
            Outcome::Reentered => return None,
            Outcome::Granted { waited: false } => Self::AtOnce,
            Outcome::Granted { waited: true } => Self::AfterWaiting,
            Outcome::NotFree if tried => Self::NotFree,
            Outcome::NotFree => Self::TimedOut,
            Outcome::Cancelled => Self::Cancelled,
            Outcome::Failed(error) if error.kind() == ErrorKind::Refused => Self::Refused,
            _ => Self::Failed,
        })
    }

    pub(crate) fn is_granted(self) -> bool {
        matches!(self, Self::AtOnce | Self::AfterWaiting)
    }
}

/// The outcome of a renewal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Renewal {
    Renewed,
    Failed,
    Lost,
}

closed_set! {
    /// Returns the value of the label.
    pub(crate) Renewal: Renewed = "renewed", Failed = "failed", Lost = "lost"
}

impl Renewal {
    pub(crate) fn of(outcome: &Renewed) -> Self {
        match outcome {
            Renewed::Renewed => Self::Renewed,
            Renewed::Lost(_) => Self::Lost,
            _ => Self::Failed,
        }
    }
}

/// The outcome of a request to the store.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Request {
    Ok,
    Failed,
}

closed_set! {
    /// Returns the value of the label.
    pub(crate) Request: Ok = "ok", Failed = "failed"
}

/// A counter for each value of a closed set.
#[derive(Debug)]
pub(crate) struct Each<T>(Box<[(T, Counter)]>);

impl<T: Copy + PartialEq> Each<T> {
    pub(crate) fn new(all: &[T], counter: impl Fn(T) -> Counter) -> Self {
        Self(all.iter().map(|&value| (value, counter(value))).collect())
    }

    /// Counts this value once more.
    pub(crate) fn count(&self, value: T) {
        if let Some((_, counter)) = self.0.iter().find(|(known, _)| *known == value) {
            counter.increment(1);
        }
    }
}
