//! Several locks at once, for synchronous code.

use super::acquire::Acquire;
use super::guards::Guards;
use super::tied::Tied;
use crate::{Name, Options, Owner, Result};

/// Several locks that are acquired at once: all of them, or none; as [`ylock::MultiLock`](crate::MultiLock).
///
/// # Examples
/// ```
/// # use ylock::blocking::Ylock;
/// # fn main() -> ylock::Result<()> {
/// let ylock = Ylock::in_memory();
///
/// let set = ylock.multi_lock().write("users", "alice").write("users", "bob").read("rates", "eur").acquire().wait()?;
/// assert!(set.is_valid() && set.token("users", "alice").is_some());
/// assert!(ylock.lock("users", "bob").write().now().wait()?.is_none());
/// assert!(set.unlock()?.is_released());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "it acquires nothing until you call `acquire`"]
pub struct MultiLock(Tied<crate::MultiLock>);

impl MultiLock {
    pub(super) fn new(many: Tied<crate::MultiLock>) -> Self {
        Self(many)
    }

    /// Returns the same set and one more lock, to be acquired exclusively.
    pub fn write(self, group: impl Name, name: impl Name) -> Self {
        Self(self.0.map(|many| many.write(group, name)))
    }

    /// Returns the same set and one more lock, to be shared with other readers.
    pub fn read(self, group: impl Name, name: impl Name) -> Self {
        Self(self.0.map(|many| many.read(group, name)))
    }

    /// Returns the same set, always acquired for this owner.
    pub fn owned_by(self, owner: &Owner) -> Self {
        Self(self.0.map(|many| many.owned_by(owner)))
    }

    /// Returns the same set with other options, for all of its locks; what they leave open stays as it is.
    pub fn with_options(self, options: Options) -> Self {
        Self(self.0.map(|many| many.with_options(options)))
    }

    /// Returns the same set with other options, if the engine supports them.
    ///
    /// # Errors
    /// As [`ylock::Locks::try_with_options`](crate::Locks::try_with_options).
    pub fn try_with_options(self, options: Options) -> Result<Self> {
        let many = self.0.value.clone().try_with_options(options)?;
        Ok(Self(self.0.tie(many)))
    }

    /// Returns the options of the locks.
    pub fn options(&self) -> &Options {
        self.0.value.options()
    }

    /// Acquires all locks; see [`crate::MultiLock::acquire`].
    #[track_caller]
    pub fn acquire(&self) -> Acquire<Guards> {
        Acquire::new(self.0.tie(self.0.value.acquire()))
    }
}
