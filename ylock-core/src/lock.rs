//! A single lock, with a fixed name.

use std::future::Future;
use std::time::Duration;

use crate::acquire::{acquire, acquire_or_time_out, run, run_after};
use crate::election::Election;
use crate::error::Result;
use crate::guard::Guard;
use crate::key::Key;
use crate::lease::Lease;
use crate::mode::{Mode, Wait};
use crate::once_per::{Done, OncePer, Scheduled, once_per};
use crate::options::Options;
use crate::owner::Owner;
use crate::period::Period;
use crate::terms::Terms;

/// One lock: a fixed name in a group. Every method is the one of [`Locks`](crate::Locks) with the name filled in, where more is said of each.
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

    /// Returns the election of a leader that stands on this lock; see [`Locks::election`](crate::Locks::election).
    pub fn election(&self) -> Election {
        Election::new(self.terms.clone(), self.key.clone())
    }

    /// Acquires the lock exclusively; waits for its turn.
    ///
    /// # Fairness
    /// As with [`Locks::write`](crate::Locks::write).
    ///
    /// # Reentrancy
    /// As with [`Locks::write`](crate::Locks::write). A task that holds the lock itself under another owner waits for itself, for ever;
    /// after a second the log warns.
    ///
    /// # Cancel safety
    /// As with [`Locks::write`](crate::Locks::write).
    ///
    /// # If the lock is lost
    /// The guard says so, as with [`Locks::write`](crate::Locks::write).
    ///
    /// # Errors
    /// Those of [`Locks::write`](crate::Locks::write).
    ///
    /// # Examples
    /// Only one process at a time changes the database's tables when a new version starts:
    /// ```
    /// # use ylock::Ylock;
    /// # async fn migrate() {}
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let migration = Ylock::in_memory().lock("jobs", "migration");
    ///
    /// let guard = migration.write().await?;
    /// migrate().await;
    /// if !guard.unlock().await?.is_released() {
    ///     eprintln!("the lock was lost while the tables were changed");
    /// }
    /// # Ok(()) }
    /// ```
    #[doc(alias = "lock")]
    #[track_caller]
    pub fn write(&self) -> impl Future<Output = Result<Guard>> {
        acquire_or_time_out(&self.terms, self.key.clone(), Mode::Write)
    }

    /// Acquires the lock exclusively if that is possible now; otherwise returns `None`.
    ///
    /// Does not wait for another holder. A guard that is thrown away gives the lock back at once.
    ///
    /// # Fairness
    /// As with [`Locks::try_write`](crate::Locks::try_write).
    ///
    /// # Reentrancy
    /// As with [`Locks::try_write`](crate::Locks::try_write). A task that holds the lock itself under another owner does not wait for
    /// itself: it gets `None`.
    ///
    /// # Cancel safety
    /// As with [`Locks::try_write`](crate::Locks::try_write).
    ///
    /// # If the lock is lost
    /// The guard says so, as with [`Locks::try_write`](crate::Locks::try_write).
    ///
    /// # Errors
    /// Those of [`Locks::try_write`](crate::Locks::try_write).
    ///
    /// # Examples
    /// A button that starts a backup does nothing while one is running:
    /// ```
    /// # use ylock::Ylock;
    /// # async fn back_up() {}
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let backup = Ylock::in_memory().lock("jobs", "backup");
    ///
    /// let answer = match backup.try_write().await? {
    ///     Some(_running) => {
    ///         back_up().await;
    ///         "done"
    ///     } // given back here
    ///     None => "a backup is running already",
    /// };
    /// # assert_eq!(answer, "done"); Ok(()) }
    /// ```
    #[doc(alias = "try_lock")]
    #[track_caller]
    pub fn try_write(&self) -> impl Future<Output = Result<Option<Guard>>> {
        acquire(&self.terms, self.key.clone(), Mode::Write, Wait::No)
    }

    /// Acquires the lock exclusively if its turn comes within `time`; otherwise returns `None`.
    ///
    /// # Fairness
    /// As with [`Locks::write_within`](crate::Locks::write_within).
    ///
    /// # Reentrancy
    /// As with [`Locks::write_within`](crate::Locks::write_within). A task that holds the lock itself under another owner waits for itself
    /// until the time is over, and gets `None`.
    ///
    /// # Cancel safety
    /// As with [`Locks::write_within`](crate::Locks::write_within).
    ///
    /// # If the lock is lost
    /// The guard says so, as with [`Locks::write_within`](crate::Locks::write_within).
    ///
    /// # Errors
    /// Those of [`Locks::write_within`](crate::Locks::write_within).
    ///
    /// # Examples
    /// A user edits the settings, unless another user does for longer than a moment:
    /// ```
    /// # use std::time::Duration;
    /// # use ylock::Ylock;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let settings = Ylock::in_memory().lock("pages", "settings");
    ///
    /// let Some(editing) = settings.write_within(Duration::from_millis(200)).await? else {
    ///     println!("another user is editing the settings");
    ///     return Ok(());
    /// };
    /// # drop(editing); Ok(()) }
    /// ```
    #[track_caller]
    pub fn write_within(&self, time: Duration) -> impl Future<Output = Result<Option<Guard>>> {
        acquire(&self.terms, self.key.clone(), Mode::Write, Wait::For(time))
    }

    /// Acquires the lock to share it with other readers; waits for its turn.
    ///
    /// # Fairness
    /// As with [`Locks::read`](crate::Locks::read).
    ///
    /// # Reentrancy
    /// As with [`Locks::read`](crate::Locks::read). A task that holds the lock as the writer under another owner waits for itself, for
    /// ever; after a second the log warns.
    ///
    /// # Cancel safety
    /// As with [`Locks::read`](crate::Locks::read).
    ///
    /// # If the lock is lost
    /// The guard says so, as with [`Locks::read`](crate::Locks::read).
    ///
    /// # Errors
    /// Those of [`Locks::read`](crate::Locks::read).
    ///
    /// # Examples
    /// A request uses the catalogue, and is not disturbed by other requests, only by an update:
    /// ```
    /// # use ylock::Ylock;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let catalogue = Ylock::in_memory().lock("data", "catalogue");
    ///
    /// let (one_request, another) = (catalogue.read().await?, catalogue.read().await?);
    /// assert!(catalogue.try_write().await?.is_none()); // the update comes when both are done
    /// # drop((one_request, another)); Ok(()) }
    /// ```
    #[doc(alias = "rlock")]
    #[track_caller]
    pub fn read(&self) -> impl Future<Output = Result<Guard>> {
        acquire_or_time_out(&self.terms, self.key.clone(), Mode::Read)
    }

    /// Acquires the lock for reading if that is possible now; otherwise returns `None`.
    ///
    /// Does not wait for another holder. A guard that is thrown away gives the lock back at once.
    ///
    /// # Fairness
    /// As with [`Locks::try_read`](crate::Locks::try_read).
    ///
    /// # Reentrancy
    /// As with [`Locks::try_read`](crate::Locks::try_read). A task that holds the lock as the writer under another owner does not wait for
    /// itself: it gets `None`.
    ///
    /// # Cancel safety
    /// As with [`Locks::try_read`](crate::Locks::try_read).
    ///
    /// # If the lock is lost
    /// The guard says so, as with [`Locks::try_read`](crate::Locks::try_read).
    ///
    /// # Errors
    /// Those of [`Locks::try_read`](crate::Locks::try_read).
    ///
    /// # Examples
    /// A search goes on without the catalogue while that is being updated:
    /// ```
    /// # use ylock::Ylock;
    /// # async fn search() -> Vec<&'static str> { vec!["a book"] }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let catalogue = Ylock::in_memory().lock("data", "catalogue");
    ///
    /// let found = match catalogue.try_read().await? {
    ///     Some(_reading) => search().await,
    ///     None => Vec::new(),
    /// };
    /// # assert_eq!(found, ["a book"]); Ok(()) }
    /// ```
    #[doc(alias = "try_rlock")]
    #[track_caller]
    pub fn try_read(&self) -> impl Future<Output = Result<Option<Guard>>> {
        acquire(&self.terms, self.key.clone(), Mode::Read, Wait::No)
    }

    /// Acquires the lock for reading if its turn comes within `time`; otherwise returns `None`.
    ///
    /// # Fairness
    /// As with [`Locks::read_within`](crate::Locks::read_within).
    ///
    /// # Reentrancy
    /// As with [`Locks::read_within`](crate::Locks::read_within). A task that holds the lock as the writer under another owner waits for
    /// itself until the time is over, and gets `None`.
    ///
    /// # Cancel safety
    /// As with [`Locks::read_within`](crate::Locks::read_within).
    ///
    /// # If the lock is lost
    /// The guard says so, as with [`Locks::read_within`](crate::Locks::read_within).
    ///
    /// # Errors
    /// Those of [`Locks::read_within`](crate::Locks::read_within).
    ///
    /// # Examples
    /// A search waits a moment for an update to end:
    /// ```
    /// # use std::time::Duration;
    /// # use ylock::Ylock;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let catalogue = Ylock::in_memory().lock("data", "catalogue");
    /// let updating = catalogue.write().await?;
    ///
    /// let reading = catalogue.read_within(Duration::from_millis(50)).await?;
    /// assert!(reading.is_none()); // "try again later"
    /// # drop(updating); Ok(()) }
    /// ```
    #[track_caller]
    pub fn read_within(&self, time: Duration) -> impl Future<Output = Result<Option<Guard>>> {
        acquire(&self.terms, self.key.clone(), Mode::Read, Wait::For(time))
    }

    /// Runs `work` while holding the lock exclusively, and stops it if the lock is lost.
    ///
    /// # Fairness
    /// As with [`Locks::run`](crate::Locks::run).
    ///
    /// # Reentrancy
    /// As with [`Locks::run`](crate::Locks::run). A task that holds the lock itself under another owner waits for itself, for ever; after a
    /// second the log warns.
    ///
    /// # Cancel safety
    /// As with [`Locks::run`](crate::Locks::run).
    ///
    /// # If the lock is lost
    /// `work` is dropped, and the result is an error of kind [`Lost`](crate::ErrorKind::Lost), as with [`Locks::run`](crate::Locks::run).
    ///
    /// # Errors
    /// Those of [`Locks::run`](crate::Locks::run).
    ///
    /// # Examples
    /// The newsletter is sent by one process at a time, which stops if it loses the lock:
    /// ```
    /// # use ylock::Ylock;
    /// # async fn send_what_is_left() -> usize { 3 }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let newsletter = Ylock::in_memory().lock("jobs", "newsletter");
    ///
    /// let sent = newsletter.run(|_| send_what_is_left()).await?;
    /// println!("{sent} letters sent");
    /// # Ok(()) }
    /// ```
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
    /// # Fairness
    /// As with [`Locks::try_run`](crate::Locks::try_run).
    ///
    /// # Reentrancy
    /// As with [`Locks::try_run`](crate::Locks::try_run). A task that holds the lock itself under another owner does not wait for itself:
    /// it gets `None`.
    ///
    /// # Cancel safety
    /// As with [`Locks::try_run`](crate::Locks::try_run).
    ///
    /// # If the lock is lost
    /// `work` is dropped, and the result is an error of kind [`Lost`](crate::ErrorKind::Lost), as with
    /// [`Locks::try_run`](crate::Locks::try_run).
    ///
    /// # Errors
    /// Those of [`Locks::try_run`](crate::Locks::try_run).
    ///
    /// # Examples
    /// Each replica looks for expired sessions once a minute, and leaves it to another replica that is at it:
    /// ```
    /// # use ylock::Ylock;
    /// # async fn expire() -> usize { 3 }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let expiry = Ylock::in_memory().lock("jobs", "expired sessions");
    ///
    /// match expiry.try_run(|_| expire()).await? {
    ///     Some(count) => println!("{count} sessions have expired"),
    ///     None => println!("another replica is at it"),
    /// }
    /// # Ok(()) }
    /// ```
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
    /// # Fairness
    /// As with [`Locks::run_within`](crate::Locks::run_within).
    ///
    /// # Reentrancy
    /// As with [`Locks::run_within`](crate::Locks::run_within). A task that holds the lock itself under another owner waits for itself
    /// until the time is over, and gets `None`.
    ///
    /// # Cancel safety
    /// As with [`Locks::run_within`](crate::Locks::run_within).
    ///
    /// # If the lock is lost
    /// `work` is dropped, and the result is an error of kind [`Lost`](crate::ErrorKind::Lost), as with
    /// [`Locks::run_within`](crate::Locks::run_within).
    ///
    /// # Errors
    /// Those of [`Locks::run_within`](crate::Locks::run_within).
    ///
    /// # Examples
    /// The stock is corrected by hand, if the inventory that is running ends soon:
    /// ```
    /// # use std::time::Duration;
    /// # use ylock::Ylock;
    /// # async fn correct() {}
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let stock = Ylock::in_memory().lock("warehouse", "stock");
    ///
    /// let corrected = stock.run_within(Duration::from_secs(5), |_| correct()).await?;
    /// if corrected.is_none() {
    ///     println!("an inventory is running");
    /// }
    /// # Ok(()) }
    /// ```
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
    /// # Fairness
    /// As with [`Locks::run_read`](crate::Locks::run_read).
    ///
    /// # Reentrancy
    /// As with [`Locks::run_read`](crate::Locks::run_read). A task that holds the lock as the writer under another owner waits for itself,
    /// for ever; after a second the log warns.
    ///
    /// # Cancel safety
    /// As with [`Locks::run_read`](crate::Locks::run_read).
    ///
    /// # If the lock is lost
    /// `work` is dropped, and the result is an error of kind [`Lost`](crate::ErrorKind::Lost), as with
    /// [`Locks::run_read`](crate::Locks::run_read).
    ///
    /// # Errors
    /// Those of [`Locks::run_read`](crate::Locks::run_read).
    ///
    /// # Examples
    /// A report is made from the stock, which no inventory changes meanwhile:
    /// ```
    /// # use ylock::Ylock;
    /// # async fn count() -> usize { 3 }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let stock = Ylock::in_memory().lock("warehouse", "stock");
    ///
    /// let articles = stock.run_read(|_| count()).await?;
    /// # assert_eq!(articles, 3); Ok(()) }
    /// ```
    #[track_caller]
    pub fn run_read<W, F>(&self, work: W) -> impl Future<Output = Result<F::Output>>
    where
        W: FnOnce(Lease) -> F,
        F: Future,
    {
        run(&self.terms, self.key.clone(), Mode::Read, work)
    }

    /// Runs `work` unless it was run in this period before, by whichever client.
    ///
    /// # Fairness
    /// As with [`Locks::once_per`](crate::Locks::once_per).
    ///
    /// # Reentrancy
    /// As with [`Locks::once_per`](crate::Locks::once_per). A task that holds the lock itself under another owner waits for itself, for ever; after
    /// a second the log warns.
    ///
    /// # Cancel safety
    /// As with [`Locks::once_per`](crate::Locks::once_per).
    ///
    /// # If the lock is lost
    /// As with [`Locks::once_per`](crate::Locks::once_per).
    ///
    /// # Errors
    /// Those of [`Locks::once_per`](crate::Locks::once_per).
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
    ) -> impl Future<Output = Result<OncePer<F::Output>>>
    where
        W: FnOnce(Scheduled) -> F,
        F: Future,
        F::Output: Done,
    {
        once_per(&self.terms, self.key.clone(), period.into(), work)
    }
}
