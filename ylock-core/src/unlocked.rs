//! The outcome of giving a lock back.

/// The outcome of giving a lock back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "it was held to the end or it was not")]
#[must_use = "the lock may have been lost before: `is_released()` says whether it was held to the end. To give it back without asking, drop the guard"]
pub enum Unlocked {
    /// It was held until now.
    Released,
    /// It had been lost before: another owner may have held it meanwhile.
    WasLost,
}

impl Unlocked {
    /// Returns whether the lock was held until it was given back.
    pub fn is_released(self) -> bool {
        self == Self::Released
    }
}
