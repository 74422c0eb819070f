//! The outcome of giving a lock back.

/// The outcome of giving a lock back.
///
/// The compiler warns a program that does not look at it:
/// ```compile_fail
/// # #![deny(unused_must_use)]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
/// let guard = ylock::Ylock::in_memory().locks("orders").write("4711").await?;
/// guard.unlock().await?; // was the lock held until now?
/// # Ok(()) }
/// ```
///
/// # Examples
/// ```
/// # #![deny(unused_must_use)]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
/// let guard = ylock::Ylock::in_memory().locks("orders").write("4711").await?;
/// if !guard.unlock().await?.is_released() {
///     eprintln!("order 4711: the lock was lost before the work ended");
/// }
/// # Ok(()) }
/// ```
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
