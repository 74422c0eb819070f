//! What a closure takes its locks with, one after the other.

use super::tied::Tied;
use crate::{Lease, Name, Result};

/// What the closure of [`growing`](super::Ylock::growing) takes locks with; as [`ylock::Growing`](crate::Growing).
#[derive(Clone, Debug)]
pub struct Growing(Tied<crate::Growing>);

impl Growing {
    pub(super) fn new(growing: Tied<crate::Growing>) -> Self {
        Self(growing)
    }

    /// Takes one more lock exclusively, and returns its lease. It is given back when the closure has ended.
    ///
    /// # Fairness
    /// As with [`ylock::Growing::write`](crate::Growing::write).
    ///
    /// # Reentrancy
    /// As with [`ylock::Growing::write`](crate::Growing::write).
    ///
    /// # Cancel safety
    /// Nothing can be cancelled.
    ///
    /// # If the lock is lost
    /// The closure goes on; see [`growing`](super::Ylock::growing).
    ///
    /// # Errors
    /// As [`ylock::Growing::write`](crate::Growing::write); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    #[track_caller]
    pub fn write(&self, group: impl Name, name: impl Name) -> Result<Lease> {
        self.0.wait(self.0.value.write(group, name))?
    }

    /// Takes one more lock to share it with other readers, and returns its lease.
    ///
    /// # Fairness
    /// As with [`ylock::Growing::read`](crate::Growing::read).
    ///
    /// # Reentrancy
    /// As with [`ylock::Growing::read`](crate::Growing::read).
    ///
    /// # Cancel safety
    /// Nothing can be cancelled.
    ///
    /// # If the lock is lost
    /// As with [`write`](Self::write).
    ///
    /// # Errors
    /// As [`ylock::Growing::read`](crate::Growing::read); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    #[track_caller]
    pub fn read(&self, group: impl Name, name: impl Name) -> Result<Lease> {
        self.0.wait(self.0.value.read(group, name))?
    }
}
