//! One coarse lock.

use std::future::Future;
use std::time::Duration;

use crate::acquire::{acquire, acquire_or_time_out, run};
use crate::error::Result;
use crate::guard::Guard;
use crate::key::Key;
use crate::lease::Lease;
use crate::locks::Locks;
use crate::mode::{Mode, Wait};
use crate::options::Options;
use crate::owner::Owner;

/// One lock: a fixed name in a group. Every method is the one of [`Locks`] with the name filled in.
///
/// # Examples
/// ```
/// # use ylock_core::Ylock;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock_core::Result<()> {
/// let nightly = Ylock::in_memory().lock("jobs", "nightly");
/// match nightly.try_write().await? {
///     Some(guard) => { guard.unlock().await?; }
///     None => println!("another process does it tonight"),
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Lock {
    locks: Locks,
    /// A bad name is reported by the first acquisition.
    key: Result<Key>,
}

impl Lock {
    pub(crate) fn new(locks: Locks, key: Result<Key>) -> Self {
        Self { locks, key }
    }

    /// The group and the name.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) if one of them is outside its limits.
    pub fn key(&self) -> Result<&Key> {
        self.key.as_ref().map_err(Clone::clone)
    }

    /// The same lock, always acquired for this owner.
    #[must_use]
    pub fn owned_by(&self, owner: &Owner) -> Self {
        Self { locks: self.locks.owned_by(owner), key: self.key.clone() }
    }

    /// The same lock with other options.
    #[must_use]
    pub fn with_options(&self, options: Options) -> Self {
        Self { locks: self.locks.with_options(options), key: self.key.clone() }
    }

    /// See [`Locks::write`].
    ///
    /// # Errors
    /// See [`Locks::write`].
    #[doc(alias = "lock")]
    pub async fn write(&self) -> Result<Guard> {
        acquire_or_time_out(&self.locks, self.key.clone(), Mode::Write).await
    }

    /// See [`Locks::try_write`].
    ///
    /// # Errors
    /// See [`Locks::write`].
    #[doc(alias = "try_lock")]
    pub async fn try_write(&self) -> Result<Option<Guard>> {
        acquire(&self.locks, self.key.clone(), Mode::Write, Wait::No).await
    }

    /// See [`Locks::write_within`].
    ///
    /// # Errors
    /// See [`Locks::write`].
    pub async fn write_within(&self, time: Duration) -> Result<Option<Guard>> {
        acquire(&self.locks, self.key.clone(), Mode::Write, Wait::For(time)).await
    }

    /// See [`Locks::read`].
    ///
    /// # Errors
    /// See [`Locks::write`].
    #[doc(alias = "rlock")]
    pub async fn read(&self) -> Result<Guard> {
        acquire_or_time_out(&self.locks, self.key.clone(), Mode::Read).await
    }

    /// See [`Locks::try_read`].
    ///
    /// # Errors
    /// See [`Locks::write`].
    #[doc(alias = "try_rlock")]
    pub async fn try_read(&self) -> Result<Option<Guard>> {
        acquire(&self.locks, self.key.clone(), Mode::Read, Wait::No).await
    }

    /// See [`Locks::read_within`].
    ///
    /// # Errors
    /// See [`Locks::write`].
    pub async fn read_within(&self, time: Duration) -> Result<Option<Guard>> {
        acquire(&self.locks, self.key.clone(), Mode::Read, Wait::For(time)).await
    }

    /// See [`Locks::run`].
    ///
    /// # Errors
    /// See [`Locks::run`].
    pub async fn run<W, F>(&self, work: W) -> Result<F::Output>
    where
        W: FnOnce(Lease) -> F,
        F: Future,
    {
        run(&self.locks, self.key.clone(), Mode::Write, work).await
    }

    /// See [`Locks::run_read`].
    ///
    /// # Errors
    /// See [`Locks::run`].
    pub async fn run_read<W, F>(&self, work: W) -> Result<F::Output>
    where
        W: FnOnce(Lease) -> F,
        F: Future,
    {
        run(&self.locks, self.key.clone(), Mode::Read, work).await
    }
}
