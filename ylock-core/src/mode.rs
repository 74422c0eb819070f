//! The mode in which a lock is held, and the limit of a caller's wait for it.

use std::fmt;
use std::time::Duration;

/// The mode in which a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "a lock is shared or exclusive; there is no third")]
pub enum Mode {
    /// Shared: any number of owners at once, as long as none writes.
    Read,
    /// Exclusive: one owner.
    Write,
}

impl Mode {
    /// Returns whether two different owners may not hold these modes at the same time.
    pub fn conflicts_with(self, other: Self) -> bool {
        self == Self::Write || other == Self::Write
    }
}

crate::closed_set! {
    /// Returns `read` or `write`, as used in stores and metric labels.
    pub Mode: Read = "read", Write = "write"
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The time for which an acquisition waits for its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "not at all, for a time, or for ever")]
pub enum Wait {
    /// Until the lock is granted.
    Forever,
    /// At most this long. Zero is the same as [`Wait::No`].
    For(Duration),
    /// Not at all.
    No,
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forever => f.write_str("forever"),
            Self::For(time) => write!(f, "{time:?}"),
            Self::No => f.write_str("none"),
        }
    }
}
