//! A single lock, with a fixed name, for synchronous code.

use std::time::Duration;

use super::election::Election;
use super::guard::Guard;
use super::outside::Outside;
use super::tied::Tied;
use crate::{Done, Key, Lease, OncePer, Options, Owner, Period, Result, Scheduled};

/// One lock: a fixed name in a group; as [`ylock::Lock`](crate::Lock). Every method is the one of [`Locks`](super::Locks) with the name filled in.
#[derive(Clone, Debug)]
pub struct Lock(Tied<crate::Lock>);

impl Lock {
    pub(super) fn new(lock: Tied<crate::Lock>) -> Self {
        Self(lock)
    }

    /// Returns the group and the name.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) if one of them is outside its limits.
    pub fn key(&self) -> Result<&Key> {
        self.0.value.key()
    }

    /// Returns the same lock, always acquired for this owner.
    #[must_use]
    pub fn owned_by(&self, owner: &Owner) -> Self {
        Self(self.0.tie(self.0.value.owned_by(owner)))
    }

    /// Returns the options of this lock.
    pub fn options(&self) -> &Options {
        self.0.value.options()
    }

    /// Returns the same lock with other options; what they leave open stays as it is.
    #[must_use]
    pub fn with_options(&self, options: Options) -> Self {
        Self(self.0.tie(self.0.value.with_options(options)))
    }

    /// Returns the same lock with other options, if the engine supports them.
    ///
    /// # Errors
    /// As [`ylock::Locks::try_with_options`](crate::Locks::try_with_options).
    pub fn try_with_options(&self, options: Options) -> Result<Self> {
        Ok(Self(self.0.tie(self.0.value.try_with_options(options)?)))
    }

    /// Returns the election of a leader that stands on this lock.
    pub fn election(&self) -> Election {
        Election::new(self.0.tie(self.0.value.election()))
    }

    /// Acquires the lock exclusively; waits until every holder has given it back, and every earlier waiter has had its turn.
    ///
    /// # Fairness
    /// As with [`ylock::Lock::write`](crate::Lock::write).
    ///
    /// # Reentrancy
    /// As with [`ylock::Lock::write`](crate::Lock::write); a thread that holds the lock itself under another owner waits for itself, for ever, and
    /// after a second the log warns.
    ///
    /// # Cancel safety
    /// Nothing can be cancelled: to wait for a limited time use [`write_within`](Self::write_within), or the [wait](Options::with_wait) of the
    /// options.
    ///
    /// # If the lock is lost
    /// The guard says so: [`Lease::is_valid`], [`Guard::wait_lost`].
    ///
    /// # Errors
    /// As [`ylock::Lock::write`](crate::Lock::write); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    ///
    /// # Examples
    /// Only one process at a time changes the database's tables when a new version starts:
    /// ```
    /// # use ylock::blocking::Ylock;
    /// # fn migrate() {}
    /// # fn main() -> ylock::Result<()> {
    /// let migration = Ylock::in_memory().lock("jobs", "migration");
    ///
    /// let guard = migration.write()?;
    /// migrate();
    /// if !guard.unlock()?.is_released() {
    ///     eprintln!("the lock was lost while the tables were changed");
    /// }
    /// # Ok(()) }
    /// ```
    #[doc(alias = "lock")]
    #[track_caller]
    pub fn write(&self) -> Result<Guard> {
        self.0.acquire(self.0.value.write()).map(Guard)
    }

    /// Acquires the lock exclusively if that is possible now; returns `None` if it is held or waited for. A guard that is thrown away gives the
    /// lock back at once.
    ///
    /// # Fairness
    /// As with [`ylock::Lock::try_write`](crate::Lock::try_write).
    ///
    /// # Reentrancy
    /// As with [`ylock::Lock::try_write`](crate::Lock::try_write).
    ///
    /// # Cancel safety
    /// Nothing can be cancelled; it waits for the answer of the store only.
    ///
    /// # If the lock is lost
    /// The guard says so: [`Lease::is_valid`], [`Guard::wait_lost`].
    ///
    /// # Errors
    /// As [`ylock::Lock::try_write`](crate::Lock::try_write); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    ///
    /// # Examples
    /// A button that starts a backup does nothing while one is running:
    /// ```
    /// # use ylock::blocking::Ylock;
    /// # fn back_up() {}
    /// # fn main() -> ylock::Result<()> {
    /// let backup = Ylock::in_memory().lock("jobs", "backup");
    ///
    /// match backup.try_write()? {
    ///     Some(_running) => back_up(),
    ///     None => println!("a backup is running already"),
    /// }
    /// # Ok(()) }
    /// ```
    #[doc(alias = "try_lock")]
    #[track_caller]
    pub fn try_write(&self) -> Result<Option<Guard>> {
        Ok(self.0.try_acquire(self.0.value.try_write())?.map(Guard))
    }

    /// Acquires the lock exclusively if its turn comes within `time`; otherwise returns `None`. Zero is the same as [`try_write`](Self::try_write).
    ///
    /// # Fairness
    /// As with [`ylock::Lock::write_within`](crate::Lock::write_within).
    ///
    /// # Reentrancy
    /// As with [`ylock::Lock::write_within`](crate::Lock::write_within); a thread that holds the lock itself under another owner waits for itself
    /// until the time is over, and gets `None`.
    ///
    /// # Cancel safety
    /// Nothing can be cancelled; the wait ends with the time.
    ///
    /// # If the lock is lost
    /// The guard says so: [`Lease::is_valid`], [`Guard::wait_lost`].
    ///
    /// # Errors
    /// As [`ylock::Lock::write_within`](crate::Lock::write_within); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    ///
    /// # Examples
    /// A user edits the settings, unless another user does for longer than a moment:
    /// ```
    /// # use ylock::blocking::Ylock;
    /// # use std::time::Duration;
    /// # fn main() -> ylock::Result<()> {
    /// let settings = Ylock::in_memory().lock("pages", "settings");
    ///
    /// let Some(editing) = settings.write_within(Duration::from_millis(200))? else {
    ///     println!("another user is editing the settings");
    ///     return Ok(());
    /// };
    /// # drop(editing);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn write_within(&self, time: Duration) -> Result<Option<Guard>> {
        Ok(self.0.try_acquire(self.0.value.write_within(time))?.map(Guard))
    }

    /// Acquires the lock to share it with other readers; waits for a writer that holds it, and for writers that came earlier.
    ///
    /// # Fairness
    /// As with [`ylock::Lock::read`](crate::Lock::read).
    ///
    /// # Reentrancy
    /// As with [`ylock::Lock::read`](crate::Lock::read); a thread that holds the lock as the writer under another owner waits for itself, for ever,
    /// and after a second the log warns.
    ///
    /// # Cancel safety
    /// Nothing can be cancelled: to wait for a limited time use [`read_within`](Self::read_within), or the [wait](Options::with_wait) of the options.
    ///
    /// # If the lock is lost
    /// The guard says so: [`Lease::is_valid`], [`Guard::wait_lost`].
    ///
    /// # Errors
    /// As [`ylock::Lock::read`](crate::Lock::read); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    ///
    /// # Examples
    /// A request uses the catalogue, and is not disturbed by other requests, only by an update:
    /// ```
    /// # use ylock::blocking::Ylock;
    /// # fn main() -> ylock::Result<()> {
    /// let catalogue = Ylock::in_memory().lock("data", "catalogue");
    ///
    /// let (one_request, another) = (catalogue.read()?, catalogue.read()?);
    /// assert!(catalogue.try_write()?.is_none()); // the update comes when both are done
    /// # drop((one_request, another));
    /// # Ok(()) }
    /// ```
    #[doc(alias = "rlock")]
    #[track_caller]
    pub fn read(&self) -> Result<Guard> {
        self.0.acquire(self.0.value.read()).map(Guard)
    }

    /// Acquires the lock for reading if that is possible now; otherwise returns `None`. A guard that is thrown away gives the lock back at once.
    ///
    /// # Fairness
    /// As with [`ylock::Lock::try_read`](crate::Lock::try_read).
    ///
    /// # Reentrancy
    /// As with [`ylock::Lock::try_read`](crate::Lock::try_read).
    ///
    /// # Cancel safety
    /// Nothing can be cancelled; it waits for the answer of the store only.
    ///
    /// # If the lock is lost
    /// The guard says so: [`Lease::is_valid`], [`Guard::wait_lost`].
    ///
    /// # Errors
    /// As [`ylock::Lock::try_read`](crate::Lock::try_read); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    ///
    /// # Examples
    /// A search goes on without the catalogue while that is being updated:
    /// ```
    /// # use ylock::blocking::Ylock;
    /// # fn search() -> Vec<&'static str> { vec!["a book"] }
    /// # fn main() -> ylock::Result<()> {
    /// let catalogue = Ylock::in_memory().lock("data", "catalogue");
    ///
    /// let found = match catalogue.try_read()? {
    ///     Some(_reading) => search(),
    ///     None => Vec::new(),
    /// };
    /// # assert_eq!(found, ["a book"]);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "try_rlock")]
    #[track_caller]
    pub fn try_read(&self) -> Result<Option<Guard>> {
        Ok(self.0.try_acquire(self.0.value.try_read())?.map(Guard))
    }

    /// Acquires the lock for reading if its turn comes within `time`; otherwise returns `None`. Zero is the same as [`try_read`](Self::try_read).
    ///
    /// # Fairness
    /// As with [`ylock::Lock::read_within`](crate::Lock::read_within).
    ///
    /// # Reentrancy
    /// As with [`ylock::Lock::read_within`](crate::Lock::read_within).
    ///
    /// # Cancel safety
    /// Nothing can be cancelled; the wait ends with the time.
    ///
    /// # If the lock is lost
    /// The guard says so: [`Lease::is_valid`], [`Guard::wait_lost`].
    ///
    /// # Errors
    /// As [`ylock::Lock::read_within`](crate::Lock::read_within); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    ///
    /// # Examples
    /// A search waits a moment for an update to end:
    /// ```
    /// # use ylock::blocking::Ylock;
    /// # use std::time::Duration;
    /// # fn main() -> ylock::Result<()> {
    /// let catalogue = Ylock::in_memory().lock("data", "catalogue");
    /// let updating = catalogue.write()?;
    ///
    /// let reading = catalogue.read_within(Duration::from_millis(50))?;
    /// assert!(reading.is_none()); // "try again later"
    /// # drop(updating);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn read_within(&self, time: Duration) -> Result<Option<Guard>> {
        Ok(self.0.try_acquire(self.0.value.read_within(time))?.map(Guard))
    }

    /// Runs `work` while holding the lock exclusively, on the thread of the caller.
    ///
    /// # Fairness
    /// As with [`ylock::Lock::run`](crate::Lock::run).
    ///
    /// # Reentrancy
    /// As with [`ylock::Lock::run`](crate::Lock::run): inside `work` the owner is current, so the work may acquire the same lock again.
    ///
    /// # Cancel safety
    /// Nothing can be cancelled: to wait for a limited time use [`run_within`](Self::run_within), or the [wait](Options::with_wait) of the options.
    ///
    /// # If the lock is lost
    /// `work` goes on to its end: it may ask [`Lease::check`] between its steps. Then the result is an error of kind
    /// [`Lost`](crate::ErrorKind::Lost), and the output of the work is dropped. What it did stays done, so let it send the [token](Lease::token).
    ///
    /// # Errors
    /// As [`ylock::Lock::run`](crate::Lock::run); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    ///
    /// # Examples
    /// The newsletter is sent by one process at a time:
    /// ```
    /// # use ylock::blocking::Ylock;
    /// # fn send_what_is_left() -> usize { 3 }
    /// # fn main() -> ylock::Result<()> {
    /// let newsletter = Ylock::in_memory().lock("jobs", "newsletter");
    /// let sent = newsletter.run(|_| send_what_is_left())?;
    /// println!("{sent} letters sent");
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn run<T>(&self, work: impl FnOnce(Lease) -> T) -> Result<T> {
        let outside = Outside::new();
        self.0.work(self.0.value.run(|lease| outside.call(move || work(lease))), &outside)
    }

    /// Runs `work` while holding the lock exclusively, if that is possible now; returns `None`, without any work, if the lock is held or waited for.
    ///
    /// # Fairness
    /// As with [`ylock::Lock::try_run`](crate::Lock::try_run).
    ///
    /// # Reentrancy
    /// As with [`run`](Self::run).
    ///
    /// # Cancel safety
    /// Nothing can be cancelled; it waits for the answer of the store only.
    ///
    /// # If the lock is lost
    /// As with [`run`](Self::run).
    ///
    /// # Errors
    /// As [`ylock::Lock::try_run`](crate::Lock::try_run); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    ///
    /// # Examples
    /// Each replica looks for expired sessions once a minute, and leaves it to another replica that is at it:
    /// ```
    /// # use ylock::blocking::Ylock;
    /// # fn expire() -> usize { 3 }
    /// # fn main() -> ylock::Result<()> {
    /// let expiry = Ylock::in_memory().lock("jobs", "expired sessions");
    /// match expiry.try_run(|_| expire())? {
    ///     Some(count) => println!("{count} sessions have expired"),
    ///     None => println!("another replica is at it"),
    /// }
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn try_run<T>(&self, work: impl FnOnce(Lease) -> T) -> Result<Option<T>> {
        let outside = Outside::new();
        self.0.work(self.0.value.try_run(|lease| outside.call(move || work(lease))), &outside)
    }

    /// Runs `work` while holding the lock exclusively, if its turn comes within `time`; otherwise returns `None`, without any work. The time bounds
    /// the wait, not the work.
    ///
    /// # Fairness
    /// As with [`ylock::Lock::run_within`](crate::Lock::run_within).
    ///
    /// # Reentrancy
    /// As with [`run`](Self::run).
    ///
    /// # Cancel safety
    /// Nothing can be cancelled; the wait ends with the time.
    ///
    /// # If the lock is lost
    /// As with [`run`](Self::run).
    ///
    /// # Errors
    /// As [`ylock::Lock::run_within`](crate::Lock::run_within); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    ///
    /// # Examples
    /// The stock is corrected by hand, if the inventory that is running ends soon:
    /// ```
    /// # use ylock::blocking::Ylock;
    /// # use std::time::Duration;
    /// # fn correct() {}
    /// # fn main() -> ylock::Result<()> {
    /// let stock = Ylock::in_memory().lock("warehouse", "stock");
    /// if stock.run_within(Duration::from_secs(5), |_| correct())?.is_none() {
    ///     println!("an inventory is running");
    /// }
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn run_within<T>(&self, time: Duration, work: impl FnOnce(Lease) -> T) -> Result<Option<T>> {
        let outside = Outside::new();
        self.0.work(self.0.value.run_within(time, |lease| outside.call(move || work(lease))), &outside)
    }

    /// Runs `work` while holding the lock as a reader, on the thread of the caller.
    ///
    /// # Fairness
    /// As with [`ylock::Lock::run_read`](crate::Lock::run_read).
    ///
    /// # Reentrancy
    /// As with [`ylock::Lock::run_read`](crate::Lock::run_read): inside `work` the owner is current.
    ///
    /// # Cancel safety
    /// As with [`run`](Self::run).
    ///
    /// # If the lock is lost
    /// As with [`run`](Self::run).
    ///
    /// # Errors
    /// As [`ylock::Lock::run_read`](crate::Lock::run_read); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    ///
    /// # Examples
    /// A report is made from the stock, which no inventory changes meanwhile:
    /// ```
    /// # use ylock::blocking::Ylock;
    /// # fn count() -> usize { 3 }
    /// # fn main() -> ylock::Result<()> {
    /// let stock = Ylock::in_memory().lock("warehouse", "stock");
    /// let articles = stock.run_read(|_| count())?;
    /// # assert_eq!(articles, 3);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn run_read<T>(&self, work: impl FnOnce(Lease) -> T) -> Result<T> {
        let outside = Outside::new();
        self.0.work(self.0.value.run_read(|lease| outside.call(move || work(lease))), &outside)
    }

    /// Runs `work`, on the thread of the caller, unless it was run in this period before, by whichever client.
    ///
    /// # Fairness
    /// As with [`ylock::Lock::once_per`](crate::Lock::once_per).
    ///
    /// # Reentrancy
    /// As with [`ylock::Lock::once_per`](crate::Lock::once_per): each call is an owner of its own.
    ///
    /// # Cancel safety
    /// Nothing can be cancelled; with the [wait](Options::with_wait) of the options the lock is waited for only so long.
    ///
    /// # If the lock is lost
    /// `work` goes on to its end; then the result is an error of kind [`Lost`](crate::ErrorKind::Lost). The period is used up; with
    /// [`until_done`](Period::until_done) the work is begun again, by another client, perhaps while this one is still at it, or by the next call.
    ///
    /// # Errors
    /// As [`ylock::Lock::once_per`](crate::Lock::once_per); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    ///
    /// # Examples
    /// Every replica calls this once a minute, and one of them sends the reminders of each hour:
    /// ```
    /// # use std::time::Duration;
    /// # use ylock::blocking::Ylock;
    /// # use ylock::{OncePer, Period};
    /// # fn send_reminders() -> Result<usize, std::io::Error> { Ok(3) }
    /// # fn main() -> ylock::Result<()> {
    /// let reminders = Ylock::in_memory().lock("jobs", "reminders");
    /// let hourly = Period::of(Duration::from_secs(3600)).until_done();
    /// match reminders.once_per(hourly, |_| send_reminders())? {
    ///     OncePer::Ran(Ok(count)) => println!("{count} reminders sent"),
    ///     OncePer::Ran(Err(error)) => eprintln!("not sent: {error}"),
    ///     OncePer::Running(run) | OncePer::AlreadyRun(run) => println!("{} does it", run.client),
    /// }
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn once_per<T: Done>(
        &self,
        period: impl Into<Period>,
        work: impl FnOnce(Scheduled) -> T,
    ) -> Result<OncePer<T>> {
        let outside = Outside::new();
        let run = self.0.value.once_per(period, |scheduled| outside.call(move || work(scheduled)));
        self.0.work(run, &outside)
    }
}
