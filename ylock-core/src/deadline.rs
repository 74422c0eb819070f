//! Until when a call that needs several locks waits for all of them together.

use std::time::Duration;

use crate::environment::{Environment, Moment};

/// The longest wait of a request that only tries.
pub(crate) const AT_ONCE: Option<Duration> = Some(Duration::ZERO);

/// Returns the message of an acquisition that has waited for as long as its options say. `what` says
/// that it was not granted.
pub(crate) fn timed_out(what: &str, max_wait: Option<Duration>) -> String {
    format!("{what} within the max_wait of the options, {:?}", max_wait.unwrap_or_default())
}

/// Until when a call waits that makes several requests.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Deadline {
    /// It waits for no holder.
    Now,
    At(Moment),
    Never,
}

impl Deadline {
    /// Returns the deadline of a call that begins now.
    pub(crate) fn of(max_wait: Option<Duration>, environment: &dyn Environment) -> Self {
        match max_wait {
            None => Self::Never,
            Some(time) if !time.is_zero() => Self::At(environment.now().plus(time)),
            Some(_) => Self::Now,
        }
    }

    /// Returns whether the call only tries.
    pub(crate) fn is_now(self) -> bool {
        matches!(self, Self::Now)
    }

    /// Returns whether the time of a call that waits is over.
    pub(crate) fn is_over(self, environment: &dyn Environment) -> bool {
        self.left(environment).is_some_and(|left| left.is_zero())
    }

    /// Returns how much is left of the time of a call that waits for a time.
    pub(crate) fn left(self, environment: &dyn Environment) -> Option<Duration> {
        match self {
            Self::At(end) => Some(end.since(environment.now())),
            Self::Now | Self::Never => None,
        }
    }

    /// Returns how long the next request of the call may wait.
    pub(crate) fn max_wait(self, environment: &dyn Environment) -> Option<Duration> {
        match self {
            Self::Never => None,
            Self::At(end) => Some(end.since(environment.now())),
            Self::Now => AT_ONCE,
        }
    }
}
