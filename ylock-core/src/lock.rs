//! A single lock, with a fixed name.

use std::future::Future;
use std::panic::Location;

use crate::acquire::Acquire;
use crate::election::Election;
use crate::error::Result;
use crate::guard::Guard;
use crate::key::Key;
use crate::mode::Mode;
use crate::once_per::{Completed, JobLease, JobOutcome, once_per};
use crate::options::Options;
use crate::owner::Owner;
use crate::period::Period;
use crate::terms::Terms;

/// One lock: a fixed name in a group. Every method is that of [`Locks`](crate::Locks) with the name filled in.
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
/// let worked = closing.write().now().run(|_| async {
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

    /// Returns the election of a leader that stands on this lock; see [`Locks::election`](crate::Locks::election).
    pub fn election(&self) -> Election {
        Election::new(self.terms.clone(), self.key.clone())
    }

    /// Acquires the lock exclusively; see [`Locks::write`](crate::Locks::write).
    ///
    /// # Examples
    /// Only one process at a time changes the database's tables when a new version starts:
    /// ```
    /// # use ylock::Ylock;
    /// # async fn migrate() {}
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let migration = Ylock::in_memory().lock("jobs", "migration");
    /// migration.write().run(|_| migrate()).await?;
    /// # Ok(()) }
    /// ```
    #[doc(alias = "lock")]
    #[doc(alias = "acquire")]
    #[track_caller]
    pub fn write(&self) -> Acquire<Guard> {
        Acquire::one(&self.terms, self.key.clone(), Mode::Write, Location::caller())
    }

    /// Acquires the lock to share it with other readers; see [`Locks::read`](crate::Locks::read).
    #[doc(alias = "rlock")]
    #[track_caller]
    pub fn read(&self) -> Acquire<Guard> {
        Acquire::one(&self.terms, self.key.clone(), Mode::Read, Location::caller())
    }

    /// Runs `work` unless it was run in this period before, by whichever client; see [`Locks::once_per`](crate::Locks::once_per).
    ///
    /// # Examples
    /// Every replica starts this at midnight, and again whenever it starts itself; the accounts of each day are closed once:
    /// ```
    /// # use std::time::Duration;
    /// # use ylock::Ylock;
    /// # async fn close_accounts() {}
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// const DAY: Duration = Duration::from_secs(24 * 3600);
    /// let closing = Ylock::in_memory().lock("jobs", "close the day's accounts");
    ///
    /// assert_eq!(closing.once_per(DAY, |_| close_accounts()).await?.ran(), Some(()));
    /// let again = closing.once_per(DAY, |_| close_accounts()).await?;
    /// assert!(again.other().is_some_and(|run| run.is_done));
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn once_per<W, F>(
        &self,
        period: impl Into<Period>,
        work: W,
    ) -> impl Future<Output = Result<JobOutcome<F::Output>>>
    where
        W: FnOnce(JobLease) -> F,
        F: Future,
        F::Output: Completed,
    {
        once_per(&self.terms, self.key.clone(), period.into(), work)
    }
}
