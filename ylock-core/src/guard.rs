//! The value that a caller keeps for one acquisition.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::engine::LossReason;
use crate::environment::Moment;
use crate::error::Result;
use crate::keeper::{Acquired, HeldSet};
use crate::layer::{Acquisition, End, Layers};
use crate::lease::Lease;
use crate::mode::Mode;
use crate::unlocked::Unlocked;

/// A lock that is held. Dropping it gives it back.
///
/// A drop only begins the release, in the background. As the last act of a program it may come to nothing, because the process ends before
/// the release is sent: then the next holder waits until the lease is over. [`Ylock::close`](crate::Ylock::close) waits for the release.
///
/// A guard can be moved to another task or thread, and guards of one owner can be given back in any order.
/// Everything that can be asked about the lock is on [`Lease`], to which a guard dereferences.
#[must_use = "the lock is given back as soon as its guard is dropped: keep it in a variable while you work, or use `run`"]
pub struct Guard {
    lease: Lease,
    acquired: Acquired,
    watch: Option<Box<Watch>>,
    /// The set that it belongs to: as long as one of its guards lives, the owner must not wait for a key before the set's last.
    of_set: Option<Arc<HeldSet>>,
}

/// The facts that the layers are told at the end.
struct Watch {
    layers: Layers,
    acquisition: Acquisition,
    since: Moment,
    /// Another lock without which this one is worth nothing: the loss of it counts as one of this.
    with: Option<Lease>,
}

impl Guard {
    pub(crate) fn new(acquired: Acquired) -> Self {
        Self {
            lease: Lease::new(Arc::clone(&acquired.hold), acquired.mode),
            acquired,
            watch: None,
            of_set: None,
        }
    }

    pub(crate) fn watched(mut self, layers: Layers, acquisition: Acquisition, since: Moment) -> Self {
        self.watch = Some(Box::new(Watch { layers, acquisition, since, with: None }));
        self
    }

    /// Returns the same guard, which the layers are told to be lost also if this other lock is.
    pub(crate) fn watched_with(mut self, other: &Lease) -> Self {
        if let Some(watch) = &mut self.watch {
            watch.with = Some(other.clone());
        }
        self
    }

    /// Returns the same guard, as one of a set.
    pub(crate) fn of_set(mut self, set: &Arc<HeldSet>) -> Self {
        self.of_set = Some(Arc::clone(set));
        self
    }

    /// Returns a view of this lock, to pass around.
    pub fn lease(&self) -> Lease {
        self.lease.clone()
    }

    /// Gives the lock back and waits until the store, or the next local waiter, has it.
    ///
    /// Returns [`Unlocked::WasLost`] if the lock was lost before. Giving back one of several acquisitions of the same
    /// owner keeps the lock and returns at once.
    ///
    /// # Fairness
    /// Where thousands of locks are given back at once, an engine may send a few releases at a time, about in the order in which the locks
    /// were given back (Cassandra does). A release that a waiter of this client waits for goes at once. If the lease ends while the release
    /// waits, the answer is still [`Unlocked::Released`]: the lock was held until it was given back, as far as this client knows.
    ///
    /// # Cancel safety
    /// The lock is given back also if this future is dropped.
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable) or [`Indeterminate`](crate::ErrorKind::Indeterminate) if the store did not
    /// confirm it for one lease from the first request on, without the time for which it waited for other releases. Then the store frees
    /// the lock by itself when its lease ends there.
    #[doc(alias = "runlock")]
    pub async fn unlock(mut self) -> Result<Unlocked> {
        self.tell_layers();
        let done = self.acquired.unlock();
        drop(self);
        done.await
    }

    /// Gives up writing and goes on reading, without a moment in between in which another writer could get in.
    /// Returns when the store shows it, so that readers elsewhere may enter.
    ///
    /// The guard of a reader is returned as it is. If the same owner has other write guards of this lock, the lock
    /// stays exclusive until they are given back.
    ///
    /// # Fairness
    /// Readers that wait enter at once, unless a writer waits before them.
    ///
    /// # Reentrancy
    /// Waits for no other holder, so a task never waits for itself here. Afterwards the owner is a reader, unless it has other write guards: to
    /// write again it gives this guard back first, otherwise it gets [`WouldDeadlock`](crate::ErrorKind::WouldDeadlock).
    ///
    /// # Cancel safety
    /// If this future is dropped the lock is given back.
    ///
    /// # If the lock is lost
    /// The guard that is returned says so, as the one before.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`](crate::ErrorKind::Lost) if the lock is no longer held.
    ///
    /// # Examples
    /// An import writes the prices and checks them afterwards: pages may be shown meanwhile, but no second import comes in between.
    /// ```
    /// # use ylock::Ylock;
    /// # async fn import() {}
    /// # async fn check() {}
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let prices = Ylock::in_memory().locks("prices");
    ///
    /// let writing = prices.write("2026").await?;
    /// import().await;
    /// let reading = writing.downgrade().await?;
    /// assert!(prices.read("2026").now().await?.is_some()); // a page
    /// assert!(prices.write("2026").now().await?.is_none()); // another import
    /// check().await;
    /// # drop(reading); Ok(()) }
    /// ```
    pub async fn downgrade(mut self) -> Result<Self> {
        if self.lease.mode() == Mode::Write {
            let shown = self.acquired.downgrade()?;
            self.lease = Lease::new(Arc::clone(&self.acquired.hold), Mode::Read);
            if let Some(watch) = &mut self.watch {
                watch.acquisition.mode = Mode::Read;
            }
            shown.await.unwrap_or(Ok(()))?;
        }
        Ok(self)
    }

    /// Tells the layers, once, how this hold ends; before it is given back, because afterwards it cannot be told whether it
    /// was valid until then.
    fn tell_layers(&mut self) {
        let Some(watch) = self.watch.take() else { return };
        let with = watch.with.as_ref();
        let end = match self.lease.loss().or_else(|| with.and_then(Lease::loss)) {
            Some(reason) => End::Lost(reason),
            None if self.lease.is_valid() && with.is_none_or(Lease::is_valid) => End::Released,
            None => End::Lost(LossReason::Lapsed),
        };
        let held = self.acquired.keeper.environment().now().since(watch.since);
        watch.layers.ended(&watch.acquisition, end, held);
    }
}

impl Deref for Guard {
    type Target = Lease;

    fn deref(&self) -> &Lease {
        &self.lease
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("key", self.key())
            .field("mode", &self.mode())
            .field("owner", &self.owner())
            .field("token", &self.token())
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.tell_layers();
    }
}
