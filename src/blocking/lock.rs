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

    /// Runs `work`, on the thread of the caller, unless it was run in this period before; see [`Locks::once_per`](super::Locks::once_per).
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
