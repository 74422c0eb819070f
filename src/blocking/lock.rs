//! A single lock, with a fixed name, for synchronous code.

use super::acquire::Acquire;
use super::election::Election;
use super::guard::Guard;
use super::outside::Outside;
use super::tied::Tied;
use crate::{Completed, JobLease, JobOutcome, Key, Options, Owner, Period, Result};

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

    /// Acquires the lock exclusively; see [`crate::Lock::write`].
    #[doc(alias = "lock")]
    #[doc(alias = "acquire")]
    #[track_caller]
    pub fn write(&self) -> Acquire<Guard> {
        Acquire::new(self.0.tie(self.0.value.write()))
    }

    /// Acquires the lock to share it with other readers; see [`crate::Lock::read`].
    #[doc(alias = "rlock")]
    #[track_caller]
    pub fn read(&self) -> Acquire<Guard> {
        Acquire::new(self.0.tie(self.0.value.read()))
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
    /// # use ylock::{JobOutcome, Period};
    /// # fn send_reminders() -> Result<usize, std::io::Error> { Ok(3) }
    /// # fn main() -> ylock::Result<()> {
    /// let reminders = Ylock::in_memory().lock("jobs", "reminders");
    /// let hourly = Period::of(Duration::from_secs(3600)).until_done();
    /// match reminders.once_per(hourly, |_| send_reminders())? {
    ///     JobOutcome::Ran(Ok(count)) => println!("{count} reminders sent"),
    ///     JobOutcome::Ran(Err(error)) => eprintln!("not sent: {error}"),
    ///     JobOutcome::RunningElsewhere(run) | JobOutcome::AlreadyRun(run) => println!("{} does it", run.client),
    /// }
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn once_per<T: Completed>(
        &self,
        period: impl Into<Period>,
        work: impl FnOnce(JobLease) -> T,
    ) -> Result<JobOutcome<T>> {
        let outside = Outside::new();
        let run = self.0.value.once_per(period, |scheduled| outside.call(move || work(scheduled)));
        self.0.work(run, &outside)
    }
}
