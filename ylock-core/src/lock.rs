//! A single lock, with a fixed name.

use std::future::Future;
use std::time::Duration;

use crate::acquire::{acquire, acquire_or_time_out, run, run_after};
use crate::error::Result;
use crate::guard::Guard;
use crate::key::Key;
use crate::lease::Lease;
use crate::mode::{Mode, Wait};
use crate::options::Options;
use crate::owner::Owner;
use crate::terms::Terms;

/// One lock: a fixed name in a group. Every method is the one of [`Locks`](crate::Locks) with the name filled in.
///
/// # Examples
/// A job that several processes start at night. The lock lets one of them in *at a time*; a process that comes when another has finished
/// gets in as well. So the work first checks whether it is already done:
/// ```
/// # use ylock::Ylock;
/// # struct Db; impl Db { async fn is_closed(&self) -> bool { false } async fn close(&self) {} }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
/// # let accounts = Db;
/// let closing = Ylock::in_memory().lock("jobs", "close the day's accounts");
/// let worked = closing.try_run(|_| async {
///     if !accounts.is_closed().await {
///         accounts.close().await;
///     }
/// });
/// if worked.await?.is_none() {
///     println!("another process is at it");
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Lock {
    terms: Terms,
    /// A bad name is reported by the first acquisition.
    key: Result<Key>,
}

impl Lock {
    pub(crate) fn new(terms: Terms, key: Result<Key>) -> Self {
        Self { terms, key }
    }

    /// Returns the group and the name.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) if one of them is outside its limits.
    pub fn key(&self) -> Result<&Key> {
        self.key.as_ref().map_err(Clone::clone)
    }

    /// Returns the same lock, always acquired for this owner.
    #[must_use]
    pub fn owned_by(&self, owner: &Owner) -> Self {
        Self { terms: self.terms.owned_by(owner), key: self.key.clone() }
    }

    /// Returns the options of this lock.
    pub fn options(&self) -> &Options {
        self.terms.options()
    }

    /// Returns the same lock with other options; what they leave open stays as it is.
    #[must_use]
    pub fn with_options(&self, options: Options) -> Self {
        Self { terms: self.terms.with_options(options), key: self.key.clone() }
    }

    /// Returns the same lock with other options, if the engine supports them; see [`Locks::try_with_options`](crate::Locks::try_with_options).
    ///
    /// # Errors
    /// See [`Locks::try_with_options`](crate::Locks::try_with_options).
    pub fn try_with_options(&self, options: Options) -> Result<Self> {
        Ok(Self { terms: self.terms.try_with_options(options)?, key: self.key.clone() })
    }

    /// Acquires the lock exclusively; waits for its turn.
    ///
    /// [`Locks::write`](crate::Locks::write) says the rest: fairness, reentrancy, cancel safety, loss, with an example.
    ///
    /// # Errors
    /// See [`Locks::write`](crate::Locks::write).
    #[doc(alias = "lock")]
    #[track_caller]
    pub fn write(&self) -> impl Future<Output = Result<Guard>> {
        acquire_or_time_out(&self.terms, self.key.clone(), Mode::Write)
    }

    /// Acquires the lock exclusively if that is possible now; otherwise returns `None`.
    ///
    /// [`Locks::try_write`](crate::Locks::try_write) says the rest: fairness, reentrancy, cancel safety, loss, with an example.
    ///
    /// # Errors
    /// See [`Locks::try_write`](crate::Locks::try_write).
    #[doc(alias = "try_lock")]
    #[track_caller]
    pub fn try_write(&self) -> impl Future<Output = Result<Option<Guard>>> {
        acquire(&self.terms, self.key.clone(), Mode::Write, Wait::No)
    }

    /// Acquires the lock exclusively if its turn comes within `time`; otherwise returns `None`.
    ///
    /// [`Locks::write_within`](crate::Locks::write_within) says the rest: fairness, reentrancy, cancel safety, loss, with an example.
    ///
    /// # Errors
    /// See [`Locks::write_within`](crate::Locks::write_within).
    #[track_caller]
    pub fn write_within(&self, time: Duration) -> impl Future<Output = Result<Option<Guard>>> {
        acquire(&self.terms, self.key.clone(), Mode::Write, Wait::For(time))
    }

    /// Acquires the lock to share it with other readers; waits for its turn.
    ///
    /// [`Locks::read`](crate::Locks::read) says the rest: fairness, reentrancy, cancel safety, loss, with an example.
    ///
    /// # Errors
    /// See [`Locks::read`](crate::Locks::read).
    #[doc(alias = "rlock")]
    #[track_caller]
    pub fn read(&self) -> impl Future<Output = Result<Guard>> {
        acquire_or_time_out(&self.terms, self.key.clone(), Mode::Read)
    }

    /// Acquires the lock for reading if that is possible now; otherwise returns `None`.
    ///
    /// [`Locks::try_read`](crate::Locks::try_read) says the rest: fairness, reentrancy, cancel safety, loss, with an example.
    ///
    /// # Errors
    /// See [`Locks::try_read`](crate::Locks::try_read).
    #[doc(alias = "try_rlock")]
    #[track_caller]
    pub fn try_read(&self) -> impl Future<Output = Result<Option<Guard>>> {
        acquire(&self.terms, self.key.clone(), Mode::Read, Wait::No)
    }

    /// Acquires the lock for reading if its turn comes within `time`; otherwise returns `None`.
    ///
    /// [`Locks::read_within`](crate::Locks::read_within) says the rest: fairness, reentrancy, cancel safety, loss, with an example.
    ///
    /// # Errors
    /// See [`Locks::read_within`](crate::Locks::read_within).
    #[track_caller]
    pub fn read_within(&self, time: Duration) -> impl Future<Output = Result<Option<Guard>>> {
        acquire(&self.terms, self.key.clone(), Mode::Read, Wait::For(time))
    }

    /// Runs `work` while holding the lock exclusively, and stops it if the lock is lost.
    ///
    /// [`Locks::run`](crate::Locks::run) says the rest: fairness, reentrancy, cancel safety, loss, with an example.
    ///
    /// # Errors
    /// See [`Locks::run`](crate::Locks::run).
    #[track_caller]
    pub fn run<W, F>(&self, work: W) -> impl Future<Output = Result<F::Output>>
    where
        W: FnOnce(Lease) -> F,
        F: Future,
    {
        run(&self.terms, self.key.clone(), Mode::Write, work)
    }

    /// Runs `work` while holding the lock exclusively, if that is possible now; otherwise returns `None`, without any work.
    ///
    /// [`Locks::try_run`](crate::Locks::try_run) says the rest: fairness, reentrancy, cancel safety, loss, with an example.
    ///
    /// # Errors
    /// See [`Locks::try_run`](crate::Locks::try_run).
    #[track_caller]
    pub fn try_run<W, F>(&self, work: W) -> impl Future<Output = Result<Option<F::Output>>>
    where
        W: FnOnce(Lease) -> F,
        F: Future,
    {
        run_after(&self.terms, self.key.clone(), Wait::No, work)
    }

    /// Runs `work` while holding the lock exclusively, if its turn comes within `time`; otherwise returns `None`, without any work.
    ///
    /// [`Locks::run_within`](crate::Locks::run_within) says the rest: fairness, reentrancy, cancel safety, loss, with an example.
    ///
    /// # Errors
    /// See [`Locks::run_within`](crate::Locks::run_within).
    #[track_caller]
    pub fn run_within<W, F>(&self, time: Duration, work: W) -> impl Future<Output = Result<Option<F::Output>>>
    where
        W: FnOnce(Lease) -> F,
        F: Future,
    {
        run_after(&self.terms, self.key.clone(), Wait::For(time), work)
    }

    /// Runs `work` while holding the lock as a reader, and stops it if the lock is lost.
    ///
    /// [`Locks::run_read`](crate::Locks::run_read) says the rest: fairness, reentrancy, cancel safety, loss, with an example.
    ///
    /// # Errors
    /// See [`Locks::run_read`](crate::Locks::run_read).
    #[track_caller]
    pub fn run_read<W, F>(&self, work: W) -> impl Future<Output = Result<F::Output>>
    where
        W: FnOnce(Lease) -> F,
        F: Future,
    {
        run(&self.terms, self.key.clone(), Mode::Read, work)
    }
}
