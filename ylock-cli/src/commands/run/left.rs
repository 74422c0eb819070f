//! What `ylock run` has of the store, and leaves behind if it must end before that is given back.

use std::cell::Cell;
use std::time::{Duration, SystemTime};

use humantime::format_duration;

use crate::output::time_of_day;

/// What the store has of this process.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    Nothing,
    /// A place in the queue, or a grant of which the answer is on its way.
    Place,
    Lock,
    Permit,
}

/// The same, with the time since which nothing prolongs it.
pub(super) struct Leaves {
    what: Cell<Left>,
    since: Cell<SystemTime>,
}

impl Leaves {
    pub(super) fn nothing() -> Self {
        Self { what: Cell::new(Left::Nothing), since: Cell::new(SystemTime::now()) }
    }

    pub(super) fn now(&self, what: Left) {
        self.what.set(what);
        self.begin_to_go();
    }

    /// Notes that it is given back from now on, and not renewed any more.
    pub(super) fn begin_to_go(&self) {
        self.since.set(SystemTime::now());
    }

    /// Returns what to say of it when this process ends now.
    pub(super) fn say(&self, lease: Duration) -> Option<String> {
        let what = match self.what.get() {
            Left::Nothing => return None,
            Left::Place => "its place in the queue may stay",
            Left::Lock => "the lock may stay held",
            Left::Permit => "the permit may stay held",
        };
        // The last renewal came before that.
        let over = self.since.get().checked_add(lease).map(time_of_day).unwrap_or_default();
        Some(format!("{what} until its lease of {} is over, at {over}", format_duration(lease)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_said_with_the_time_at_which_it_is_over() {
        let leaves = Leaves::nothing();
        let lease = Duration::from_secs(30);
        assert_eq!(leaves.say(lease), None);
        leaves.now(Left::Lock);
        leaves.since.set(SystemTime::UNIX_EPOCH + Duration::from_secs(12 * 3600 + 155));
        let said = leaves.say(lease).unwrap();
        assert_eq!(said, "the lock may stay held until its lease of 30s is over, at 12:03:05 UTC");
    }
}
