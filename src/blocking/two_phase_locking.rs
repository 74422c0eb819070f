//! What a closure takes its locks with, one after the other.

use super::tied::Tied;
use crate::{Lease, Name, Result};

/// What the closure of [`two_phase_locking`](super::Ylock::two_phase_locking) takes locks with; as [`ylock::TwoPhaseLocking`](crate::TwoPhaseLocking).
#[derive(Clone, Debug)]
pub struct TwoPhaseLocking(Tied<crate::TwoPhaseLocking>);

impl TwoPhaseLocking {
    pub(super) fn new(locking: Tied<crate::TwoPhaseLocking>) -> Self {
        Self(locking)
    }

    /// Takes one more lock exclusively, and returns its lease. It is given back when the closure has ended.
    ///
    /// # Fairness
    /// As with [`ylock::TwoPhaseLocking::write`](crate::TwoPhaseLocking::write).
    ///
    /// # Reentrancy
    /// As with [`ylock::TwoPhaseLocking::write`](crate::TwoPhaseLocking::write).
    ///
    /// # Cancel safety
    /// Nothing can be cancelled.
    ///
    /// # If the lock is lost
    /// The closure goes on; see [`two_phase_locking`](super::Ylock::two_phase_locking).
    ///
    /// # Errors
    /// As [`ylock::TwoPhaseLocking::write`](crate::TwoPhaseLocking::write); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    #[track_caller]
    pub fn write(&self, group: impl Name, name: impl Name) -> Result<Lease> {
        self.0.wait(self.0.value.write(group, name))?
    }

    /// Takes one more lock to share it with other readers, and returns its lease.
    ///
    /// # Fairness
    /// As with [`ylock::TwoPhaseLocking::read`](crate::TwoPhaseLocking::read).
    ///
    /// # Reentrancy
    /// As with [`ylock::TwoPhaseLocking::read`](crate::TwoPhaseLocking::read).
    ///
    /// # Cancel safety
    /// Nothing can be cancelled.
    ///
    /// # If the lock is lost
    /// As with [`write`](Self::write).
    ///
    /// # Errors
    /// As [`ylock::TwoPhaseLocking::read`](crate::TwoPhaseLocking::read); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    #[track_caller]
    pub fn read(&self, group: impl Name, name: impl Name) -> Result<Lease> {
        self.0.wait(self.0.value.read(group, name))?
    }
}
