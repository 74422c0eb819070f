//! Fine-grained locks: names in a group.

use std::future::Future;
use std::panic::Location;
use std::sync::Arc;

use crate::acquire::Acquire;
use crate::election::Election;
use crate::error::Result;
use crate::guard::Guard;
use crate::handle::Handle;
use crate::key::Key;
use crate::lock::Lock;
use crate::mode::Mode;
use crate::name::Name;
use crate::once_per::{Completed, JobLease, JobOutcome, once_per};
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
/// assert!(users.read("alice").now().await?.is_none());
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

    /// Acquires the lock exclusively: alone, once every holder has given it back and every earlier waiter has had its turn.
    ///
    /// Who waits for whom, what happens when the future is dropped or the lock is lost, and the errors: see [`Acquire`].
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
    #[doc(alias = "acquire")]
    #[track_caller]
    pub fn write(&self, name: impl Name) -> Acquire<Guard> {
        Acquire::one(&self.terms, self.key(name), Mode::Write, Location::caller())
    }

    /// Acquires the lock to share it with other readers, once no writer holds it and every writer that came earlier has had its turn.
    ///
    /// See [`Acquire`], as for [`write`](Self::write).
    ///
    /// # Examples
    /// Reports read the prices together; an import waits for all of them, and they for it:
    /// ```
    /// # use ylock::Ylock;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let prices = Ylock::in_memory().locks("prices");
    /// let (one_report, another) = (prices.read("2026").await?, prices.read("2026").await?);
    /// assert!(prices.write("2026").now().await?.is_none()); // the import
    /// # drop((one_report, another)); Ok(()) }
    /// ```
    #[doc(alias = "rlock")]
    #[track_caller]
    pub fn read(&self, name: impl Name) -> Acquire<Guard> {
        Acquire::one(&self.terms, self.key(name), Mode::Read, Location::caller())
    }

    /// Runs `work` unless it was run in this period before, by whichever client: at most once per period, also if it takes less time than the
    /// clocks of the clients differ.
    ///
    /// The period is the one in which the call is made, by the wall clock of this client; `work` is told which one that is
    /// ([`JobLease::run`]). The store keeps which run was the last one; it is
    /// written down before the work begins, under the write lock of the name. So the lock of a job belongs to the job: give jobs a group of their own.
    ///
    /// Not run is the work of a client whose clock is behind the one of the client that has run it. A clock that is ahead begins the period early, for
    /// all. The call waits if another one runs an *earlier* period for longer than that; if this period is begun elsewhere meanwhile, the wait
    /// ends. With [`until_done`](Period::until_done) it waits for the end of that run, too, and takes over if its process dies.
    ///
    /// # Fairness
    /// As with [`Acquire`]; which client runs the work is not promised.
    ///
    /// # Reentrancy
    /// Each call is an owner of its own, whatever scope it is in and whichever owner these locks have: two calls of one owner must not run the work
    /// together. That owner is current inside `work`; the same job from within the work is told that it is [running](JobOutcome::RunningElsewhere). A task that
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
    /// Those of [`Acquire::run`], and:
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
    /// # use ylock::{JobOutcome, Period, Ylock};
    /// # async fn send_reminders() -> Result<usize, std::io::Error> { Ok(3) }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let jobs = Ylock::in_memory().locks("jobs");
    /// let hourly = Period::of(Duration::from_secs(3600)).until_done();
    /// match jobs.once_per("reminders", hourly, |_| send_reminders()).await? {
    ///     JobOutcome::Ran(Ok(count)) => println!("{count} reminders sent"),
    ///     JobOutcome::Ran(Err(error)) => eprintln!("not sent: {error}"),
    ///     JobOutcome::RunningElsewhere(run) | JobOutcome::AlreadyRun(run) => println!("{} does it", run.client),
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
    ) -> impl Future<Output = Result<JobOutcome<F::Output>>>
    where
        W: FnOnce(JobLease) -> F,
        F: Future,
        F::Output: Completed,
    {
        once_per(&self.terms, self.key(name), period.into(), work)
    }

    fn key(&self, name: impl Name) -> Result<Key> {
        named(Arc::clone(&self.group), name)
    }
}
