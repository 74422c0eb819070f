//! Semaphores: at most so many holders at a time, for synchronous code.

use std::ops::Deref;
use std::time::Duration;

use super::acquire::Acquire;
use super::guard::within;
use super::tied::Tied;

use crate::{LossReason, Options, PermitLease, Result, Unlocked};

/// A semaphore: at most a given number of holders at a time, over all processes; as [`ylock::Semaphore`](crate::Semaphore).
///
/// # Examples
/// No more than two reports are rendered at a time, on whatever machines:
/// ```
/// # use ylock::blocking::Ylock;
/// # fn render() {}
/// # fn main() -> ylock::Result<()> {
/// let rendering = Ylock::in_memory().locks("reports").semaphore("render", 2);
///
/// let (first, second) = (rendering.acquire().wait()?, rendering.acquire().wait()?);
/// assert!(rendering.acquire().now().wait()?.is_none());
/// render();
/// # drop((first, second)); Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "it acquires nothing until you call `acquire`"]
pub struct Semaphore(Tied<crate::Semaphore>);

impl Semaphore {
    pub(super) fn new(semaphore: Tied<crate::Semaphore>) -> Self {
        Self(semaphore)
    }

    /// Returns how many permits there are.
    pub fn permits(&self) -> u32 {
        self.0.value.permits()
    }

    /// Returns the same semaphore with other options; what they leave open stays as it is.
    pub fn with_options(&self, options: Options) -> Self {
        Self(self.0.tie(self.0.value.with_options(options)))
    }

    /// Returns the same semaphore with other options, if the engine supports them.
    ///
    /// # Errors
    /// As [`ylock::Locks::try_with_options`](crate::Locks::try_with_options).
    pub fn try_with_options(&self, options: Options) -> Result<Self> {
        Ok(Self(self.0.tie(self.0.value.try_with_options(options)?)))
    }

    /// Acquires a permit; see [`crate::Semaphore::acquire`].
    #[track_caller]
    pub fn acquire(&self) -> Acquire<Permit> {
        Acquire::new(self.0.tie(self.0.value.acquire()))
    }
}

/// A permit of a [`Semaphore`] that is held; as [`ylock::Permit`](crate::Permit). Dropping it gives it back, in the background.
///
/// Everything that can be asked about it is on [`PermitLease`], to which it dereferences.
#[must_use = "the permit is given back as soon as it is dropped: keep it in a variable while you work, or use `run`"]
#[derive(Debug)]
pub struct Permit(pub(super) Tied<crate::Permit>);

impl Permit {
    /// Returns a view of this permit, to pass around.
    pub fn lease(&self) -> PermitLease {
        self.0.value.lease()
    }

    /// Gives the permit back and waits until the store has it; as [`ylock::Permit::unlock`](crate::Permit::unlock).
    ///
    /// # Errors
    /// As [`ylock::Permit::unlock`](crate::Permit::unlock); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime: then the permit is
    /// given back in the background.
    pub fn unlock(self) -> Result<Unlocked> {
        self.0.finish(crate::Permit::unlock)
    }

    /// Waits until the permit is lost, but at most this long, and returns why it was; `None` if it is held when the time is over.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    pub fn wait_lost(&self, time: Duration) -> Result<Option<LossReason>> {
        self.0.wait(within(time, self.0.value.lost()))
    }
}

impl Deref for Permit {
    type Target = PermitLease;

    fn deref(&self) -> &PermitLease {
        &self.0.value
    }
}
