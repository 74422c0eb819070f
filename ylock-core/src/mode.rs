//! The mode in which a lock is held.

use std::fmt;

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
