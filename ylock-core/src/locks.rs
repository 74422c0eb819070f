//! Fine-grained locks: names in a group.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::acquire::{acquire, acquire_or_time_out, run, run_after};
use crate::election::Election;
use crate::error::Result;
use crate::guard::Guard;
use crate::handle::Handle;
use crate::key::Key;
use crate::lease::Lease;
use crate::lock::Lock;
use crate::mode::{Mode, Wait};
use crate::name::Name;
use crate::once_per::{Done, OncePer, Scheduled, once_per};
use crate::options::Options;
use crate::owner::Owner;
use crate::period::Period;
use crate::purpose::named;
use crate::semaphore::Semaphore;
use crate::terms::Terms;

/// The locks of one group, each with a name: users, orders, files.
///
/// Cheap to clone, and free to make: nothing is kept for a name that is not in use.
///
/// # Fairness
/// Within a process first come, first served; a reader that comes after a waiting writer stays behind it.
/// Between processes see [`Fairness`](crate::Fairness).
///
/// # Examples
/// ```
/// # use ylock::{Unlocked, Ylock};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
/// let users = Ylock::in_memory().locks("users");
///
/// let alice = users.write("alice").await?;
/// assert!(users.try_read("alice").await?.is_none());
/// let bob = users.write("bob").await?; // another name: no conflict
/// assert_eq!(alice.unlock().await?, Unlocked::Released);
/// # drop(bob); Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Locks {
    terms: Terms,
    group: Arc<str>,
}

impl Locks {
    pub(crate) fn new(handle: Handle, group: Arc<str>) -> Self {
        Self { terms: Terms::of(handle), group }
    }

    /// Returns the group: what these locks are for.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// Returns a semaphore of this group: at most `permits` holders at a time, over all processes. All clients must name the same number.
    ///
    /// # Examples
    /// ```
    /// # use ylock::Ylock;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let rendering = Ylock::in_memory().locks("reports").semaphore("render", 2);
    /// let permit = rendering.acquire().await?;
    /// # drop(permit); Ok(()) }
    /// ```
    pub fn semaphore(&self, name: impl Name, permits: u32) -> Semaphore {
        Semaphore::new(self.terms.clone(), self.key(name), permits)
    }

    /// Returns the same locks, always acquired for this owner, whatever scope the caller is in.
    #[must_use]
    pub fn owned_by(&self, owner: &Owner) -> Self {
        Self { terms: self.terms.owned_by(owner), group: Arc::clone(&self.group) }
    }

    /// Returns the same locks with other options; what they leave open stays as it is. Bad options are reported by the first acquisition;
    /// [`try_with_options`](Self::try_with_options) reports them at once.
    #[must_use]
    pub fn with_options(&self, options: Options) -> Self {
        Self { terms: self.terms.with_options(options), group: Arc::clone(&self.group) }
    }

    /// Returns the same locks with other options; what they leave open stays as it is. Fails at once, and not at the first acquisition, if
    /// the engine does not support them, such as a lease that is too short for its request timeout.
    ///
    /// The in-memory engine supports every lease from 100 ms to 24 h, also those that an engine over a network does not support.
    ///
    /// # Errors
    /// [`Config`](crate::ErrorKind::Config) that names the limit and what to change.
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// # use ylock::{Options, Ylock};
    /// # fn main() -> ylock::Result<()> {
    /// let reports = Ylock::in_memory().locks("reports");
    /// let long = reports.try_with_options(Options::default().with_lease(Duration::from_secs(60)))?;
    /// assert!(reports.try_with_options(Options::default().with_lease(Duration::from_millis(1))).is_err());
    /// # assert_eq!(long.options().lease(), Duration::from_secs(60)); Ok(()) }
    /// ```
    pub fn try_with_options(&self, options: Options) -> Result<Self> {
        Ok(Self { terms: self.terms.try_with_options(options)?, group: Arc::clone(&self.group) })
    }

    /// Returns the options of these locks.
    pub fn options(&self) -> &Options {
        self.terms.options()
    }

    /// Returns one of these locks.
    pub fn lock(&self, name: impl Name) -> Lock {
        Lock::new(self.terms.clone(), self.key(name))
    }

    /// Returns the election of a leader that stands on the lock of this name.
    ///
    /// # Examples
    /// ```
    /// # use ylock::Ylock;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let leadership = Ylock::in_memory().locks("elections").election("reminders").campaign().await?;
    /// assert!(leadership.is_leader());
    /// # Ok(()) }
    /// ```
    pub fn election(&self, name: impl Name) -> Election {
        Election::new(self.terms.clone(), self.key(name))
    }

    /// Acquires the lock exclusively; waits until every holder has given it back, and every earlier waiter has had
    /// its turn.
    ///
    /// # Fairness
    /// As the [options](Options::with_fairness) say: by default in the order of arrival, but for a bounded number of
    /// [hand-overs](Options::with_hand_over) inside a process.
    ///
    /// # Reentrancy
    /// Granted at once if the same owner holds it exclusively. An owner that holds it as a reader
    /// gets [`WouldDeadlock`](crate::ErrorKind::WouldDeadlock) at once, because two readers that both want to write would
    /// wait for each other for ever: give the read guard back first.
    ///
    /// A call without an owner is an owner of its own. So a task that holds the lock and acquires it once more without naming the
    /// owner of its guard ([`owned_by`](Self::owned_by), [`Owner::scope`], or work inside [`run`](Self::run)) waits for itself, for ever:
    /// no error, because the guard may be on its way to another task. After a second a warning in the log names both calls.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the queue and leaves nothing behind in the store. The place in the queue is lost.
    ///
    /// # If the lock is lost
    /// The guard says so: [`Lease::lost`], [`Lease::is_valid`]. Work that must stop then is best done by
    /// [`run`](Self::run).
    ///
    /// # Errors
    /// - [`Invalid`](crate::ErrorKind::Invalid): the group or the name is outside its limits, there is no tokio runtime, or the name is in use as
    ///   a [semaphore](crate::Semaphore#a-name-is-a-lock-or-a-semaphore).
    /// - [`Config`](crate::ErrorKind::Config): the engine cannot have the lease of the options.
    /// - [`Unavailable`](crate::ErrorKind::Unavailable): the store has not answered for about one lease, or has not answered the last request
    ///   when a limited wait is over.
    /// - [`TimedOut`](crate::ErrorKind::TimedOut): the options limit the [wait](Options::with_wait), and other owners hold the lock for longer.
    ///   The error says which client held it shortly before, and how many waiters were before the caller, if the store could be asked in time.
    ///   Each other process counts as one waiter, however many of its tasks wait.
    /// - [`WouldDeadlock`](crate::ErrorKind::WouldDeadlock): the owner holds the lock as a reader.
    /// - [`Refused`](crate::ErrorKind::Refused): a [layer](crate::Layer) has refused it.
    /// - [`Closed`](crate::ErrorKind::Closed): [`Ylock::close`](crate::Ylock::close) was called.
    ///
    /// # Examples
    /// An order is charged once, whichever process gets the message first:
    /// ```
    /// # use ylock::Ylock;
    /// # async fn charge(_: &str) {}
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let orders = Ylock::in_memory().locks("orders");
    ///
    /// let guard = orders.write("4711").await?;
    /// charge("4711").await;
    /// if !guard.unlock().await?.is_released() {
    ///     eprintln!("order 4711: the lock was lost while it was charged");
    /// }
    /// # Ok(()) }
    /// ```
    #[doc(alias = "lock")]
    #[track_caller]
    pub fn write(&self, name: impl Name) -> impl Future<Output = Result<Guard>> {
        acquire_or_time_out(&self.terms, self.key(name), Mode::Write)
    }

    /// Acquires the lock exclusively if that is possible now; returns `None` if it is held or waited for.
    ///
    /// Never waits for another holder, only for the answer of the store. The lock is held for as long as the guard lives: one that is thrown
    /// away, as by `try_write(name).await?.is_some()` or `let _ = …`, gives the lock back at once, and what follows is not protected.
    ///
    /// # Fairness
    /// Does not overtake waiters; with [`Unfair`](crate::Fairness::Unfair) it may overtake those of other processes. Of many callers that try
    /// a free name at once, one gets it, unless one of them fails with `Unavailable`; with `protocol=shadow-rows` perhaps none.
    ///
    /// # Reentrancy
    /// As with [`write`](Self::write); a task that holds the lock itself under another owner does not wait for itself: it gets `None`.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind in the store.
    ///
    /// # If the lock is lost
    /// As with [`write`](Self::write).
    ///
    /// # Errors
    /// Those of [`write`](Self::write) but `TimedOut`. While the store does not answer, the call fails with
    /// [`Unavailable`](crate::ErrorKind::Unavailable) after one request timeout of the engine.
    ///
    /// # Examples
    /// One of several replicas fills a cache; the others serve the old value until then:
    /// ```
    /// # use ylock::Ylock;
    /// # async fn fill() {}
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let cache = Ylock::in_memory().locks("cache");
    /// if let Some(_filling) = cache.try_write("front page").await? {
    ///     fill().await;
    /// }
    /// # Ok(()) }
    /// ```
    #[doc(alias = "try_lock")]
    #[track_caller]
    pub fn try_write(&self, name: impl Name) -> impl Future<Output = Result<Option<Guard>>> {
        acquire(&self.terms, self.key(name), Mode::Write, Wait::No)
    }

    /// Acquires the lock exclusively if its turn comes within `time`; otherwise returns `None`: other owners hold it or were first.
    ///
    /// Zero is the same as [`try_write`](Self::try_write).
    ///
    /// # Fairness
    /// As with [`write`](Self::write). The place in the queue is lost when the time is over.
    ///
    /// # Reentrancy
    /// As with [`write`](Self::write); a task that holds the lock itself under another owner waits for itself until the time is over, and gets
    /// `None`. If the time is longer than a second, the log warns.
    ///
    /// # Cancel safety
    /// As with [`write`](Self::write).
    ///
    /// # If the lock is lost
    /// As with [`write`](Self::write).
    ///
    /// # Errors
    /// Those of [`write`](Self::write) but `TimedOut`. If the store has been silent for clearly longer than its answers take when the time
    /// ends, the call fails with [`Unavailable`](crate::ErrorKind::Unavailable): that is not the same as `None`. A time that is shorter than a
    /// few trips to the store may end with `None` on a free lock too.
    ///
    /// # Examples
    /// A web handler tells a document that is being edited from a store that is away:
    /// ```
    /// # use std::time::Duration;
    /// # use ylock::{ErrorKind, Ylock};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let documents = Ylock::in_memory().locks("documents");
    /// let status = match documents.write_within(7, Duration::from_millis(200)).await {
    ///     Ok(Some(_editing)) => 200,
    ///     Ok(None) => 409,
    ///     Err(error) if error.kind() == ErrorKind::Unavailable => 503,
    ///     Err(error) => return Err(error),
    /// };
    /// # assert_eq!(status, 200); Ok(()) }
    /// ```
    #[track_caller]
    pub fn write_within(
        &self,
        name: impl Name,
        time: Duration,
    ) -> impl Future<Output = Result<Option<Guard>>> {
        acquire(&self.terms, self.key(name), Mode::Write, Wait::For(time))
    }

    /// Acquires the lock to share it with other readers; waits for a writer that holds it, and for writers that came
    /// earlier.
    ///
    /// # Fairness
    /// As with [`write`](Self::write). A reader does not overtake a writer that waits, so readers that keep coming starve no writer; with
    /// [`Unfair`](crate::Fairness::Unfair) it may.
    ///
    /// # Reentrancy
    /// Granted at once if the same owner holds the lock, as a reader or as the writer. A task that holds it as the writer under another owner
    /// waits for itself, for ever, and after a second the log warns, as with [`write`](Self::write). So does a task that holds it as a reader,
    /// as soon as a writer waits between its two calls.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the queue and leaves nothing behind in the store. The place in the queue is lost.
    ///
    /// # If the lock is lost
    /// As with [`write`](Self::write).
    ///
    /// # Errors
    /// Those of [`write`](Self::write) but `WouldDeadlock`.
    ///
    /// # Examples
    /// Reports read the prices together; an import waits for all of them, and they for it:
    /// ```
    /// # use ylock::Ylock;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let prices = Ylock::in_memory().locks("prices");
    /// let (one_report, another) = (prices.read("2026").await?, prices.read("2026").await?);
    /// assert!(prices.try_write("2026").await?.is_none()); // the import
    /// # drop((one_report, another)); Ok(()) }
    /// ```
    #[doc(alias = "rlock")]
    #[track_caller]
    pub fn read(&self, name: impl Name) -> impl Future<Output = Result<Guard>> {
        acquire_or_time_out(&self.terms, self.key(name), Mode::Read)
    }

    /// Acquires the lock for reading if that is possible now; returns `None` if a writer holds it or waits for it, or if readers of this client
    /// are just acquiring it.
    ///
    /// Never waits for another holder, only for the answer of the store. A guard that is thrown away gives the lock back at once.
    ///
    /// # Fairness
    /// As with [`try_write`](Self::try_write).
    ///
    /// # Reentrancy
    /// As with [`read`](Self::read); a task that holds the lock as the writer under another owner does not wait for itself: it gets `None`.
    ///
    /// # Cancel safety
    /// As with [`try_write`](Self::try_write).
    ///
    /// # If the lock is lost
    /// As with [`write`](Self::write).
    ///
    /// # Errors
    /// Those of [`try_write`](Self::try_write) but `WouldDeadlock`.
    ///
    /// # Examples
    /// A page says that its figures are being imported, instead of waiting:
    /// ```
    /// # use ylock::Ylock;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let prices = Ylock::in_memory().locks("prices");
    /// let importing = prices.write("2026").await?;
    /// let page = if prices.try_read("2026").await?.is_some() { "the prices" } else { "new prices are being imported" };
    /// # assert_eq!(page, "new prices are being imported"); drop(importing); Ok(()) }
    /// ```
    #[doc(alias = "try_rlock")]
    #[track_caller]
    pub fn try_read(&self, name: impl Name) -> impl Future<Output = Result<Option<Guard>>> {
        acquire(&self.terms, self.key(name), Mode::Read, Wait::No)
    }

    /// Acquires the lock for reading if its turn comes within `time`; otherwise returns `None`.
    ///
    /// Zero is the same as [`try_read`](Self::try_read).
    ///
    /// # Fairness
    /// As with [`read`](Self::read). The place in the queue is lost when the time is over.
    ///
    /// # Reentrancy
    /// As with [`read`](Self::read); a task that waits for itself does so until the time is over, and gets `None`. If the time is longer than a
    /// second, the log warns.
    ///
    /// # Cancel safety
    /// As with [`read`](Self::read).
    ///
    /// # If the lock is lost
    /// As with [`write`](Self::write).
    ///
    /// # Errors
    /// Those of [`write_within`](Self::write_within) but `WouldDeadlock`.
    ///
    /// # Examples
    /// A page waits for an import for as long as a visitor does:
    /// ```
    /// # use std::time::Duration;
    /// # use ylock::Ylock;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let prices = Ylock::in_memory().locks("prices");
    /// let page = match prices.read_within("2026", Duration::from_secs(2)).await? {
    ///     Some(_reading) => "the prices",
    ///     None => "new prices are being imported",
    /// };
    /// # assert_eq!(page, "the prices"); Ok(()) }
    /// ```
    #[track_caller]
    pub fn read_within(
        &self,
        name: impl Name,
        time: Duration,
    ) -> impl Future<Output = Result<Option<Guard>>> {
        acquire(&self.terms, self.key(name), Mode::Read, Wait::For(time))
    }

    /// Runs `work` while holding the lock exclusively, and stops it if the lock is lost.
    ///
    /// # Fairness
    /// As with [`write`](Self::write).
    ///
    /// # Reentrancy
    /// As with [`write`](Self::write). Inside `work` the owner is current: it may acquire the same lock again. A task that holds a guard of the
    /// lock under another owner, and calls `run`, waits for itself, for ever; after a second the log warns.
    ///
    /// # Cancel safety
    /// Dropping the future drops `work` and gives the lock back.
    ///
    /// # If the lock is lost
    /// The future of `work` is dropped, wherever it is, and the result is an error of kind [`Lost`](crate::ErrorKind::Lost). What the work did
    /// until then stays done, so let it send the [token](Lease::token) with everything that must not happen twice. Until then the lease is renewed.
    ///
    /// # Errors
    /// Those of [`write`](Self::write), and `Lost`. If `work` ended while the lock was valid its result
    /// is returned even if giving the lock back fails afterwards.
    ///
    /// # Examples
    /// A payment is refused by the database once a later holder has written:
    /// ```
    /// # use ylock::{Token, Ylock};
    /// # async fn pay(_: &str, _: Option<Token>) -> u64 { 12 }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let invoices = Ylock::in_memory().locks("invoices");
    /// let paid = invoices.run("2026-11", |lease| async move { pay("2026-11", lease.token()).await }).await?;
    /// # assert_eq!(paid, 12); Ok(()) }
    /// ```
    #[track_caller]
    pub fn run<W, F>(&self, name: impl Name, work: W) -> impl Future<Output = Result<F::Output>>
    where
        W: FnOnce(Lease) -> F,
        F: Future,
    {
        run(&self.terms, self.key(name), Mode::Write, work)
    }

    /// Runs `work` while holding the lock exclusively, if that is possible now; returns `None`, without any work, if the lock is held or
    /// waited for.
    ///
    /// # Fairness
    /// As with [`try_write`](Self::try_write).
    ///
    /// # Reentrancy
    /// As with [`run`](Self::run); a task that holds the lock itself under another owner does not wait for itself: it gets `None`.
    ///
    /// # Cancel safety
    /// As with [`run`](Self::run).
    ///
    /// # If the lock is lost
    /// As with [`run`](Self::run).
    ///
    /// # Errors
    /// Those of [`try_write`](Self::try_write), and `Lost`.
    ///
    /// # Examples
    /// A job that every replica starts at midnight runs in one of them at a time; a replica that starts it after the end of the first run repeats it:
    /// ```
    /// # use ylock::Ylock;
    /// # async fn clean_up() {}
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let jobs = Ylock::in_memory().locks("jobs");
    /// if jobs.try_run("clean up", |_| clean_up()).await?.is_none() {
    ///     println!("another replica is at it");
    /// }
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn try_run<W, F>(&self, name: impl Name, work: W) -> impl Future<Output = Result<Option<F::Output>>>
    where
        W: FnOnce(Lease) -> F,
        F: Future,
    {
        run_after(&self.terms, self.key(name), Wait::No, work)
    }

    /// Runs `work` while holding the lock exclusively, if its turn comes within `time`; otherwise returns `None`, without any work. The
    /// time bounds the wait, not the work.
    ///
    /// # Fairness
    /// As with [`write_within`](Self::write_within).
    ///
    /// # Reentrancy
    /// As with [`run`](Self::run); a task that holds the lock itself under another owner waits for itself until the time is over, and gets
    /// `None`. If the time is longer than a second, the log warns.
    ///
    /// # Cancel safety
    /// As with [`run`](Self::run).
    ///
    /// # If the lock is lost
    /// As with [`run`](Self::run).
    ///
    /// # Errors
    /// Those of [`write_within`](Self::write_within), and `Lost`.
    ///
    /// # Examples
    /// A user asks for a report that is being made already, and is told so after a moment:
    /// ```
    /// # use std::time::Duration;
    /// # use ylock::Ylock;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let reports = Ylock::in_memory().locks("reports");
    /// let writing = reports.write("monthly").await?;
    ///
    /// let made = reports.run_within("monthly", Duration::from_millis(50), |_| async { "a report" }).await?;
    /// assert!(made.is_none()); // it is still being made for another user
    /// # drop(writing); Ok(()) }
    /// ```
    #[track_caller]
    pub fn run_within<W, F>(
        &self,
        name: impl Name,
        time: Duration,
        work: W,
    ) -> impl Future<Output = Result<Option<F::Output>>>
    where
        W: FnOnce(Lease) -> F,
        F: Future,
    {
        run_after(&self.terms, self.key(name), Wait::For(time), work)
    }

    /// Runs `work` while holding the lock as a reader, and stops it if the lock is lost.
    ///
    /// # Fairness
    /// As with [`read`](Self::read).
    ///
    /// # Reentrancy
    /// As with [`read`](Self::read): a task that holds the lock as the writer under another owner waits for itself, for ever, and after a second
    /// the log warns. Inside `work` the owner is current: it may read under the same lock again.
    ///
    /// # Cancel safety
    /// As with [`run`](Self::run).
    ///
    /// # If the lock is lost
    /// As with [`run`](Self::run).
    ///
    /// # Errors
    /// Those of [`read`](Self::read), and `Lost`.
    ///
    /// # Examples
    /// An export reads prices that no import changes meanwhile:
    /// ```
    /// # use ylock::Ylock;
    /// # async fn export() -> usize { 3 }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let prices = Ylock::in_memory().locks("prices");
    /// let rows = prices.run_read("2026", |_| export()).await?;
    /// # assert_eq!(rows, 3); Ok(()) }
    /// ```
    #[track_caller]
    pub fn run_read<W, F>(&self, name: impl Name, work: W) -> impl Future<Output = Result<F::Output>>
    where
        W: FnOnce(Lease) -> F,
        F: Future,
    {
        run(&self.terms, self.key(name), Mode::Read, work)
    }

    /// Runs `work` unless it was run in this period before, by whichever client: at most once per period, also if it takes less time than the
    /// clocks of the clients differ.
    ///
    /// The period is the one in which the call is made, by the wall clock of this client; `work` is told which one that is
    /// ([`Scheduled::run`]). The store keeps which run was the last one; it is
    /// written down before the work begins, under the write lock of the name. So the lock of a job belongs to the job: give jobs a group of their own.
    ///
    /// Not run is the work of a client whose clock is behind the one of the client that has run it. A clock that is ahead begins the period early, for
    /// all. The call waits if another one runs an *earlier* period for longer than that; if this period is begun elsewhere meanwhile, the wait
    /// ends. With [`until_done`](Period::until_done) it waits for the end of that run, too, and takes over if its process dies.
    ///
    /// # Fairness
    /// As with [`run`](Self::run); which client runs the work is not promised.
    ///
    /// # Reentrancy
    /// Each call is an owner of its own, whatever scope it is in and whichever owner these locks have: two calls of one owner must not run the work
    /// together. That owner is current inside `work`; the same job from within the work is told that it is [running](OncePer::Running). A task that
    /// holds the lock itself, and calls this, waits for itself, for ever; after a second the log warns.
    ///
    /// # Cancel safety
    /// Dropping the future drops `work` and gives the lock back. If the work had begun, or was just about to, the period is used up; with
    /// [`until_done`](Period::until_done) it is not.
    ///
    /// # If the lock is lost
    /// The future of `work` is dropped, and the result is an error of kind [`Lost`](crate::ErrorKind::Lost). The period is used up; with
    /// [`until_done`](Period::until_done) the work is begun again, by another client or by the next call. What it did until then stays done.
    ///
    /// # Errors
    /// Those of [`run`](Self::run), and:
    /// - [`Invalid`](crate::ErrorKind::Invalid): the period is outside its [limits](Period::SHORTEST).
    /// - [`Config`](crate::ErrorKind::Config): the last run is of a period that begins in more than one period from now. One of the clocks is
    ///   wrong, or the clients name different periods. Also if the wall clock of this client was never set.
    /// - [`Unavailable`](crate::ErrorKind::Unavailable) or [`Indeterminate`](crate::ErrorKind::Indeterminate): the store has not confirmed, until the lock
    ///   was lost, that the run begins. The work was not begun, and the period may be used up.
    /// - [`Unexpected`](crate::ErrorKind::Unexpected): the store has a run of the same period under a larger token, as after it was set up anew.
    ///
    /// # Examples
    /// Every replica calls this once a minute, and one of them sends the reminders of each hour; if that fails, the next call tries again:
    /// ```
    /// # use std::time::Duration;
    /// # use ylock::{OncePer, Period, Ylock};
    /// # async fn send_reminders() -> Result<usize, std::io::Error> { Ok(3) }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let jobs = Ylock::in_memory().locks("jobs");
    /// let hourly = Period::of(Duration::from_secs(3600)).until_done();
    /// match jobs.once_per("reminders", hourly, |_| send_reminders()).await? {
    ///     OncePer::Ran(Ok(count)) => println!("{count} reminders sent"),
    ///     OncePer::Ran(Err(error)) => eprintln!("not sent: {error}"),
    ///     OncePer::Running(run) | OncePer::AlreadyRun(run) => println!("{} does it", run.client),
    /// }
    /// # let again = jobs.once_per("reminders", hourly, |_| send_reminders()).await?;
    /// # assert!(again.other().is_some_and(|run| run.is_done));
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn once_per<W, F>(
        &self,
        name: impl Name,
        period: impl Into<Period>,
        work: W,
    ) -> impl Future<Output = Result<OncePer<F::Output>>>
    where
        W: FnOnce(Scheduled) -> F,
        F: Future,
        F::Output: Done,
    {
        once_per(&self.terms, self.key(name), period.into(), work)
    }

    fn key(&self, name: impl Name) -> Result<Key> {
        named(Arc::clone(&self.group), name)
    }
}
