//! Fine-grained locks: names in a group, for synchronous code.

use super::acquire::Acquire;
use super::election::Election;
use super::guard::Guard;
use super::lock::Lock;
use super::outside::Outside;
use super::semaphore::Semaphore;
use super::tied::Tied;
use crate::{Completed, JobLease, JobOutcome, Name, Options, Owner, Period, Result};

/// The locks of one group, each with a name; as [`ylock::Locks`](crate::Locks).
///
/// Cheap to clone, and free to make. An acquisition waits on the thread of its caller; see the [module](super).
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

    /// Acquires the lock exclusively; see [`crate::Locks::write`].
    #[doc(alias = "lock")]
    #[doc(alias = "acquire")]
    #[track_caller]
    pub fn write(&self, name: impl Name) -> Acquire<Guard> {
        Acquire::new(self.0.tie(self.0.value.write(name)))
    }

    /// Acquires the lock to share it with other readers; see [`crate::Locks::read`].
    #[doc(alias = "rlock")]
    #[track_caller]
    pub fn read(&self, name: impl Name) -> Acquire<Guard> {
        Acquire::new(self.0.tie(self.0.value.read(name)))
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
    /// Nothing can be cancelled; with a [longest wait](Options::with_max_wait) in the options the lock is waited for only so long.
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
    /// # use ylock::{JobOutcome, Period};
    /// # fn send_reminders() -> Result<usize, std::io::Error> { Ok(3) }
    /// # fn main() -> ylock::Result<()> {
    /// let jobs = Ylock::in_memory().locks("jobs");
    /// let hourly = Period::of(Duration::from_secs(3600)).until_done();
    /// match jobs.once_per("reminders", hourly, |_| send_reminders())? {
    ///     JobOutcome::Ran(Ok(count)) => println!("{count} reminders sent"),
    ///     JobOutcome::Ran(Err(error)) => eprintln!("not sent: {error}"),
    ///     JobOutcome::RunningElsewhere(run) | JobOutcome::AlreadyRun(run) => println!("{} does it", run.client),
    /// }
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn once_per<T: Completed>(
        &self,
        name: impl Name,
        period: impl Into<Period>,
        work: impl FnOnce(JobLease) -> T,
    ) -> Result<JobOutcome<T>> {
        let outside = Outside::new();
        let run = self.0.value.once_per(name, period, |scheduled| outside.call(move || work(scheduled)));
        self.0.work(run, &outside)
    }
}
