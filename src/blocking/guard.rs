//! The value that a caller keeps for one acquisition.

use std::ops::Deref;
use std::time::Duration;

use super::tied::Tied;

use crate::{Lease, LossReason, Result, Unlocked};

/// A lock that is held; as [`ylock::Guard`](crate::Guard). Dropping it gives it back, in the background and on whatever thread that happens.
///
/// A guard can be moved to another thread. Everything that can be asked about the lock is on [`Lease`], to which a guard dereferences.
///
/// # Examples
/// One thread acquires the lock, another one works under it and gives it back:
/// ```
/// # use ylock::blocking::Ylock;
/// # fn main() -> ylock::Result<()> {
/// let guard = Ylock::in_memory().locks("users").write("alice").wait()?;
/// let worker = std::thread::spawn(move || {
///     assert!(guard.is_valid());
///     guard.unlock()
/// });
/// assert!(worker.join().unwrap()?.is_released());
/// # Ok(()) }
/// ```
#[must_use = "the lock is given back as soon as its guard is dropped: keep it in a variable while you work, or use `run`"]
#[derive(Debug)]
pub struct Guard(pub(super) Tied<crate::Guard>);

impl Guard {
    /// Returns a view of this lock, to pass around.
    pub fn lease(&self) -> Lease {
        self.0.value.lease()
    }

    /// Gives the lock back and waits until the store, or the next local waiter, has it; as [`ylock::Guard::unlock`](crate::Guard::unlock).
    ///
    /// # Errors
    /// As [`ylock::Guard::unlock`](crate::Guard::unlock); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime: then the lock is
    /// given back in the background.
    #[doc(alias = "runlock")]
    pub fn unlock(self) -> Result<Unlocked> {
        self.0.finish(crate::Guard::unlock)
    }

    /// Gives up writing and goes on reading, without a moment in between in which another writer could get in; as
    /// [`ylock::Guard::downgrade`](crate::Guard::downgrade).
    ///
    /// # Fairness
    /// Readers that wait enter at once, unless a writer waits before them.
    ///
    /// # Reentrancy
    /// As with [`ylock::Guard::downgrade`](crate::Guard::downgrade): no caller waits for itself here.
    ///
    /// # Cancel safety
    /// Nothing can be cancelled; it waits for the answer of the store only.
    ///
    /// # If the lock is lost
    /// The guard that is returned says so, as the one before.
    ///
    /// # Errors
    /// [`Lost`](crate::ErrorKind::Lost) if the lock is no longer held, and [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime. With
    /// every error the lock is given back.
    ///
    /// # Examples
    /// An import writes the prices and checks them afterwards: pages may be shown meanwhile, but no second import comes in between.
    /// ```
    /// # use ylock::blocking::Ylock;
    /// # fn main() -> ylock::Result<()> {
    /// let prices = Ylock::in_memory().locks("prices");
    ///
    /// let reading = prices.write("2026").wait()?.downgrade()?;
    /// assert!(prices.read("2026").now().wait()?.is_some()); // a page
    /// assert!(prices.write("2026").now().wait()?.is_none()); // another import
    /// # drop(reading); Ok(()) }
    /// ```
    pub fn downgrade(self) -> Result<Self> {
        let of = self.0.tie(());
        let reading = self.0.finish(crate::Guard::downgrade)?;
        Ok(Self(of.tie(reading)))
    }

    /// Waits until the lock is lost, but at most this long, and returns why it was; `None` if it is held when the time is over.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    ///
    /// # Examples
    /// A worker that only looks from time to time whether it may go on:
    /// ```
    /// # use std::time::Duration;
    /// # use ylock::blocking::Ylock;
    /// # fn main() -> ylock::Result<()> {
    /// let guard = Ylock::in_memory().locks("jobs").write("clean up").wait()?;
    /// while guard.wait_lost(Duration::from_millis(20))?.is_none() {
    ///     println!("one more folder is cleaned up");
    ///     # break;
    /// }
    /// # Ok(()) }
    /// ```
    pub fn wait_lost(&self, time: Duration) -> Result<Option<LossReason>> {
        self.0.wait(within(time, self.0.value.lost()))
    }
}

impl Deref for Guard {
    type Target = Lease;

    fn deref(&self) -> &Lease {
        &self.0.value
    }
}

/// Waits for a future, but at most this long. A timer is made inside the runtime in which it is polled.
pub(super) async fn within<F: Future>(time: Duration, future: F) -> Option<F::Output> {
    tokio::time::timeout(time, future).await.ok()
}
