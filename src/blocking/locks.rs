//! Fine-grained locks: names in a group, for synchronous code.

use std::time::Duration;

use super::election::Election;
use super::guard::Guard;
use super::lock::Lock;
use super::outside::Outside;
use super::semaphore::Semaphore;
use super::tied::Tied;
use crate::{Done, Lease, Name, OncePer, Options, Owner, Period, Result, Scheduled};

/// The locks of one group, each with a name; as [`ylock::Locks`](crate::Locks).
///
/// Cheap to clone, and free to make. Every method that acquires waits on the thread of its caller; see the [module](super).
#[derive(Clone, Debug)]
pub struct Locks(Tied<crate::Locks>);

impl Locks {
    pub(super) fn new(locks: Tied<crate::Locks>) -> Self {
        Self(locks)
    }

    /// Returns the group: what these locks are for.
    pub fn group(&self) -> &str {
        self.0.value.group()
    }

    /// Returns a semaphore of this group; as [`ylock::Locks::semaphore`](crate::Locks::semaphore).
    pub fn semaphore(&self, name: impl Name, permits: u32) -> Semaphore {
        Semaphore::new(self.0.tie(self.0.value.semaphore(name, permits)))
    }

    /// Returns the same locks, always acquired for this owner, whatever scope the caller is in.
    #[must_use]
    pub fn owned_by(&self, owner: &Owner) -> Self {
        Self(self.0.tie(self.0.value.owned_by(owner)))
    }

    /// Returns the same locks with other options; what they leave open stays as it is. Bad options are reported by the first acquisition.
    #[must_use]
    pub fn with_options(&self, options: Options) -> Self {
        Self(self.0.tie(self.0.value.with_options(options)))
    }

    /// Returns the same locks with other options, if the engine supports them.
    ///
    /// # Errors
    /// As [`ylock::Locks::try_with_options`](crate::Locks::try_with_options).
    pub fn try_with_options(&self, options: Options) -> Result<Self> {
        Ok(Self(self.0.tie(self.0.value.try_with_options(options)?)))
    }

    /// Returns the options of these locks.
    pub fn options(&self) -> &Options {
        self.0.value.options()
    }

    /// Returns one of these locks.
    pub fn lock(&self, name: impl Name) -> Lock {
        Lock::new(self.0.tie(self.0.value.lock(name)))
    }

    /// Returns the election of a leader that stands on the lock of this name.
    pub fn election(&self, name: impl Name) -> Election {
        Election::new(self.0.tie(self.0.value.election(name)))
    }

    /// Acquires the lock exclusively; waits until every holder has given it back, and every earlier waiter has had its turn.
    ///
    /// # Fairness
    /// As with [`ylock::Locks::write`](crate::Locks::write).
    ///
    /// # Reentrancy
    /// As with [`ylock::Locks::write`](crate::Locks::write); a thread that holds the lock itself under another owner waits for itself, for ever,
    /// and after a second the log warns.
    ///
    /// # Cancel safety
    /// Nothing can be cancelled: to wait for a limited time use [`write_within`](Self::write_within), or the [wait](Options::with_wait) of the
    /// options.
    ///
    /// # If the lock is lost
    /// The guard says so: [`Lease::is_valid`], [`Guard::wait_lost`].
    ///
    /// # Errors
    /// As [`ylock::Locks::write`](crate::Locks::write); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    ///
    /// # Examples
    /// An order is charged once, whichever process gets the message first:
    /// ```
    /// # use ylock::blocking::Ylock;
    /// # fn charge(_: &str) {}
    /// # fn main() -> ylock::Result<()> {
    /// let orders = Ylock::in_memory().locks("orders");
    ///
    /// let guard = orders.write("4711")?;
    /// charge("4711");
    /// if !guard.unlock()?.is_released() {
    ///     eprintln!("order 4711: the lock was lost while it was charged");
    /// }
    /// # Ok(()) }
    /// ```
    #[doc(alias = "lock")]
    #[track_caller]
    pub fn write(&self, name: impl Name) -> Result<Guard> {
        self.0.acquire(self.0.value.write(name)).map(Guard)
    }

    /// Acquires the lock exclusively if that is possible now; returns `None` if it is held or waited for. A guard that is thrown away gives the
    /// lock back at once.
    ///
    /// # Fairness
    /// As with [`ylock::Locks::try_write`](crate::Locks::try_write).
    ///
    /// # Reentrancy
    /// As with [`ylock::Locks::try_write`](crate::Locks::try_write).
    ///
    /// # Cancel safety
    /// Nothing can be cancelled; it waits for the answer of the store only.
    ///
    /// # If the lock is lost
    /// The guard says so: [`Lease::is_valid`], [`Guard::wait_lost`].
    ///
    /// # Errors
    /// As [`ylock::Locks::try_write`](crate::Locks::try_write); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    ///
    /// # Examples
    /// One of several replicas fills a cache; the others serve the old value until then:
    /// ```
    /// # use ylock::blocking::Ylock;
    /// # fn fill() {}
    /// # fn main() -> ylock::Result<()> {
    /// let cache = Ylock::in_memory().locks("cache");
    /// if let Some(_filling) = cache.try_write("front page")? {
    ///     fill();
    /// }
    /// # Ok(()) }
    /// ```
    #[doc(alias = "try_lock")]
    #[track_caller]
    pub fn try_write(&self, name: impl Name) -> Result<Option<Guard>> {
        Ok(self.0.try_acquire(self.0.value.try_write(name))?.map(Guard))
    }

    /// Acquires the lock exclusively if its turn comes within `time`; otherwise returns `None`. Zero is the same as [`try_write`](Self::try_write).
    ///
    /// # Fairness
    /// As with [`ylock::Locks::write_within`](crate::Locks::write_within).
    ///
    /// # Reentrancy
    /// As with [`ylock::Locks::write_within`](crate::Locks::write_within); a thread that holds the lock itself under another owner waits for itself
    /// until the time is over, and gets `None`.
    ///
    /// # Cancel safety
    /// Nothing can be cancelled; the wait ends with the time.
    ///
    /// # If the lock is lost
    /// The guard says so: [`Lease::is_valid`], [`Guard::wait_lost`].
    ///
    /// # Errors
    /// As [`ylock::Locks::write_within`](crate::Locks::write_within); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    ///
    /// # Examples
    /// A handler tells a document that is being edited from a store that is away:
    /// ```
    /// # use ylock::blocking::Ylock;
    /// # use std::time::Duration;
    /// # use ylock::ErrorKind;
    /// # fn main() -> ylock::Result<()> {
    /// let documents = Ylock::in_memory().locks("documents");
    /// let status = match documents.write_within(7, Duration::from_millis(200)) {
    ///     Ok(Some(_editing)) => 200,
    ///     Ok(None) => 409,
    ///     Err(error) if error.kind() == ErrorKind::Unavailable => 503,
    ///     Err(error) => return Err(error),
    /// };
    /// # assert_eq!(status, 200);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn write_within(&self, name: impl Name, time: Duration) -> Result<Option<Guard>> {
        Ok(self.0.try_acquire(self.0.value.write_within(name, time))?.map(Guard))
    }

    /// Acquires the lock to share it with other readers; waits for a writer that holds it, and for writers that came earlier.
    ///
    /// # Fairness
    /// As with [`ylock::Locks::read`](crate::Locks::read).
    ///
    /// # Reentrancy
    /// As with [`ylock::Locks::read`](crate::Locks::read); a thread that holds the lock as the writer under another owner waits for itself, for
    /// ever, and after a second the log warns.
    ///
    /// # Cancel safety
    /// Nothing can be cancelled: to wait for a limited time use [`read_within`](Self::read_within), or the [wait](Options::with_wait) of the options.
    ///
    /// # If the lock is lost
    /// The guard says so: [`Lease::is_valid`], [`Guard::wait_lost`].
    ///
    /// # Errors
    /// As [`ylock::Locks::read`](crate::Locks::read); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    ///
    /// # Examples
    /// Reports read the prices together; an import waits for all of them, and they for it:
    /// ```
    /// # use ylock::blocking::Ylock;
    /// # fn main() -> ylock::Result<()> {
    /// let prices = Ylock::in_memory().locks("prices");
    /// let (one_report, another) = (prices.read("2026")?, prices.read("2026")?);
    /// assert!(prices.try_write("2026")?.is_none()); // the import
    /// # drop((one_report, another));
    /// # Ok(()) }
    /// ```
    #[doc(alias = "rlock")]
    #[track_caller]
    pub fn read(&self, name: impl Name) -> Result<Guard> {
        self.0.acquire(self.0.value.read(name)).map(Guard)
    }

    /// Acquires the lock for reading if that is possible now; otherwise returns `None`. A guard that is thrown away gives the lock back at once.
    ///
    /// # Fairness
    /// As with [`ylock::Locks::try_read`](crate::Locks::try_read).
    ///
    /// # Reentrancy
    /// As with [`ylock::Locks::try_read`](crate::Locks::try_read).
    ///
    /// # Cancel safety
    /// Nothing can be cancelled; it waits for the answer of the store only.
    ///
    /// # If the lock is lost
    /// The guard says so: [`Lease::is_valid`], [`Guard::wait_lost`].
    ///
    /// # Errors
    /// As [`ylock::Locks::try_read`](crate::Locks::try_read); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    ///
    /// # Examples
    /// A page says that its figures are being imported, instead of waiting:
    /// ```
    /// # use ylock::blocking::Ylock;
    /// # fn main() -> ylock::Result<()> {
    /// let prices = Ylock::in_memory().locks("prices");
    /// let importing = prices.write("2026")?;
    /// let page = if prices.try_read("2026")?.is_some() { "the prices" } else { "new prices are being imported" };
    /// # assert_eq!(page, "new prices are being imported"); drop(importing);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "try_rlock")]
    #[track_caller]
    pub fn try_read(&self, name: impl Name) -> Result<Option<Guard>> {
        Ok(self.0.try_acquire(self.0.value.try_read(name))?.map(Guard))
    }

    /// Acquires the lock for reading if its turn comes within `time`; otherwise returns `None`. Zero is the same as [`try_read`](Self::try_read).
    ///
    /// # Fairness
    /// As with [`ylock::Locks::read_within`](crate::Locks::read_within).
    ///
    /// # Reentrancy
    /// As with [`ylock::Locks::read_within`](crate::Locks::read_within).
    ///
    /// # Cancel safety
    /// Nothing can be cancelled; the wait ends with the time.
    ///
    /// # If the lock is lost
    /// The guard says so: [`Lease::is_valid`], [`Guard::wait_lost`].
    ///
    /// # Errors
    /// As [`ylock::Locks::read_within`](crate::Locks::read_within); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    ///
    /// # Examples
    /// A page waits for an import for as long as a visitor does:
    /// ```
    /// # use ylock::blocking::Ylock;
    /// # use std::time::Duration;
    /// # fn main() -> ylock::Result<()> {
    /// let prices = Ylock::in_memory().locks("prices");
    /// let page = match prices.read_within("2026", Duration::from_secs(2))? {
    ///     Some(_reading) => "the prices",
    ///     None => "new prices are being imported",
    /// };
    /// # assert_eq!(page, "the prices");
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn read_within(&self, name: impl Name, time: Duration) -> Result<Option<Guard>> {
        Ok(self.0.try_acquire(self.0.value.read_within(name, time))?.map(Guard))
    }

    /// Runs `work` while holding the lock exclusively, on the thread of the caller.
    ///
    /// # Fairness
    /// As with [`ylock::Locks::run`](crate::Locks::run).
    ///
    /// # Reentrancy
    /// As with [`ylock::Locks::run`](crate::Locks::run): inside `work` the owner is current, so the work may acquire the same lock again.
    ///
    /// # Cancel safety
    /// Nothing can be cancelled: to wait for a limited time use [`run_within`](Self::run_within), or the [wait](Options::with_wait) of the options.
    ///
    /// # If the lock is lost
    /// `work` goes on to its end: it may ask [`Lease::check`] between its steps. Then the result is an error of kind
    /// [`Lost`](crate::ErrorKind::Lost), and the output of the work is dropped. What it did stays done, so let it send the [token](Lease::token).
    ///
    /// # Errors
    /// As [`ylock::Locks::run`](crate::Locks::run); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    ///
    /// # Examples
    /// Letters are sent one by one, until the lock is lost:
    /// ```
    /// # use ylock::blocking::Ylock;
    /// # fn send(_: &str) {}
    /// # fn main() -> ylock::Result<()> {
    /// let newsletters = Ylock::in_memory().locks("newsletters");
    /// newsletters.run("2026-11", |lease| {
    ///     for reader in ["alice", "bob"] {
    ///         lease.check()?;
    ///         send(reader);
    ///     }
    ///     ylock::Result::Ok(())
    /// })??;
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn run<T>(&self, name: impl Name, work: impl FnOnce(Lease) -> T) -> Result<T> {
        let outside = Outside::new();
        self.0.work(self.0.value.run(name, |lease| outside.call(move || work(lease))), &outside)
    }

    /// Runs `work` while holding the lock exclusively, if that is possible now; returns `None`, without any work, if the lock is held or waited for.
    ///
    /// # Fairness
    /// As with [`ylock::Locks::try_run`](crate::Locks::try_run).
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
    /// As [`ylock::Locks::try_run`](crate::Locks::try_run); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    ///
    /// # Examples
    /// Each replica looks for expired sessions once a minute, and leaves it to another replica that is at it:
    /// ```
    /// # use ylock::blocking::Ylock;
    /// # fn expire() -> usize { 3 }
    /// # fn main() -> ylock::Result<()> {
    /// let jobs = Ylock::in_memory().locks("jobs");
    /// match jobs.try_run("expired sessions", |_| expire())? {
    ///     Some(count) => println!("{count} sessions have expired"),
    ///     None => println!("another replica is at it"),
    /// }
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn try_run<T>(&self, name: impl Name, work: impl FnOnce(Lease) -> T) -> Result<Option<T>> {
        let outside = Outside::new();
        self.0.work(self.0.value.try_run(name, |lease| outside.call(move || work(lease))), &outside)
    }

    /// Runs `work` while holding the lock exclusively, if its turn comes within `time`; otherwise returns `None`, without any work. The time bounds
    /// the wait, not the work.
    ///
    /// # Fairness
    /// As with [`ylock::Locks::run_within`](crate::Locks::run_within).
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
    /// As [`ylock::Locks::run_within`](crate::Locks::run_within); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    ///
    /// # Examples
    /// A user asks for a report that is being made already, and is told so after a moment:
    /// ```
    /// # use ylock::blocking::Ylock;
    /// # use std::time::Duration;
    /// # fn main() -> ylock::Result<()> {
    /// let reports = Ylock::in_memory().locks("reports");
    /// let writing = reports.write("monthly")?;
    ///
    /// let made = reports.run_within("monthly", Duration::from_millis(50), |_| "a report")?;
    /// assert!(made.is_none()); // it is still being made for another user
    /// # drop(writing);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn run_within<T>(
        &self,
        name: impl Name,
        time: Duration,
        work: impl FnOnce(Lease) -> T,
    ) -> Result<Option<T>> {
        let outside = Outside::new();
        self.0.work(self.0.value.run_within(name, time, |lease| outside.call(move || work(lease))), &outside)
    }

    /// Runs `work` while holding the lock as a reader, on the thread of the caller.
    ///
    /// # Fairness
    /// As with [`ylock::Locks::run_read`](crate::Locks::run_read).
    ///
    /// # Reentrancy
    /// As with [`ylock::Locks::run_read`](crate::Locks::run_read): inside `work` the owner is current.
    ///
    /// # Cancel safety
    /// As with [`run`](Self::run).
    ///
    /// # If the lock is lost
    /// As with [`run`](Self::run).
    ///
    /// # Errors
    /// As [`ylock::Locks::run_read`](crate::Locks::run_read); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    ///
    /// # Examples
    /// An export reads prices that no import changes meanwhile:
    /// ```
    /// # use ylock::blocking::Ylock;
    /// # fn export() -> usize { 3 }
    /// # fn main() -> ylock::Result<()> {
    /// let prices = Ylock::in_memory().locks("prices");
    /// let rows = prices.run_read("2026", |_| export())?;
    /// # assert_eq!(rows, 3);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn run_read<T>(&self, name: impl Name, work: impl FnOnce(Lease) -> T) -> Result<T> {
        let outside = Outside::new();
        self.0.work(self.0.value.run_read(name, |lease| outside.call(move || work(lease))), &outside)
    }

    /// Runs `work`, on the thread of the caller, unless it was run in this period before, by whichever client.
    ///
    /// # Fairness
    /// As with [`ylock::Locks::once_per`](crate::Locks::once_per).
    ///
    /// # Reentrancy
    /// As with [`ylock::Locks::once_per`](crate::Locks::once_per): each call is an owner of its own.
    ///
    /// # Cancel safety
    /// Nothing can be cancelled; with the [wait](Options::with_wait) of the options the lock is waited for only so long.
    ///
    /// # If the lock is lost
    /// `work` goes on to its end; then the result is an error of kind [`Lost`](crate::ErrorKind::Lost). The period is used up; with
    /// [`until_done`](Period::until_done) the work is begun again, by another client, perhaps while this one is still at it, or by the next call.
    ///
    /// # Errors
    /// As [`ylock::Locks::once_per`](crate::Locks::once_per); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    ///
    /// # Examples
    /// Every replica calls this once a minute, and one of them sends the reminders of each hour:
    /// ```
    /// # use std::time::Duration;
    /// # use ylock::blocking::Ylock;
    /// # use ylock::{OncePer, Period};
    /// # fn send_reminders() -> Result<usize, std::io::Error> { Ok(3) }
    /// # fn main() -> ylock::Result<()> {
    /// let jobs = Ylock::in_memory().locks("jobs");
    /// let hourly = Period::of(Duration::from_secs(3600)).until_done();
    /// match jobs.once_per("reminders", hourly, |_| send_reminders())? {
    ///     OncePer::Ran(Ok(count)) => println!("{count} reminders sent"),
    ///     OncePer::Ran(Err(error)) => eprintln!("not sent: {error}"),
    ///     OncePer::Running(run) | OncePer::AlreadyRun(run) => println!("{} does it", run.client),
    /// }
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn once_per<T: Done>(
        &self,
        name: impl Name,
        period: impl Into<Period>,
        work: impl FnOnce(Scheduled) -> T,
    ) -> Result<OncePer<T>> {
        let outside = Outside::new();
        let run = self.0.value.once_per(name, period, |scheduled| outside.call(move || work(scheduled)));
        self.0.work(run, &outside)
    }
}
