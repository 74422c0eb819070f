//! The guards of a set of locks.

use std::ops::Deref;
use std::time::Duration;

use super::guard::{Guard, within};
use super::tied::Tied;

use crate::{Key, Leases, LossReason, Result, Unlocked};

/// Several locks that are held together; as [`ylock::Guards`](crate::Guards). Dropping it gives all of them back.
///
/// Everything that can be asked about the locks is on [`Leases`], to which it dereferences.
#[must_use = "the locks are given back as soon as their guards are dropped: keep them in a variable while you work, or use `run`"]
#[derive(Debug)]
pub struct Guards(pub(super) Tied<crate::Guards>);

impl Guards {
    /// Returns a view of these locks, to pass around.
    pub fn leases(&self) -> Leases {
        self.0.value.leases()
    }

    /// Returns the guards, each for itself, in the order of their keys.
    pub fn into_guards(self) -> Vec<Guard> {
        let of = self.0.tie(());
        let guards = self.0.map(crate::Guards::into_guards).value;
        guards.into_iter().map(|guard| Guard(of.tie(guard))).collect()
    }

    /// Gives all locks back and waits until the store, or the next local waiters, have them; as
    /// [`ylock::Guards::unlock`](crate::Guards::unlock).
    ///
    /// # Errors
    /// As [`ylock::Guards::unlock`](crate::Guards::unlock); also [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime: then the locks are
    /// given back in the background.
    pub fn unlock(self) -> Result<Unlocked> {
        self.0.finish(crate::Guards::unlock)
    }

    /// Waits until one of the locks is lost, but at most this long, and returns which, and why; `None` if all are held when the time is over.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) inside an async runtime.
    pub fn wait_lost(&self, time: Duration) -> Result<Option<(Key, LossReason)>> {
        self.0.wait(within(time, self.0.value.lost()))
    }
}

impl IntoIterator for Guards {
    type Item = Guard;
    type IntoIter = std::vec::IntoIter<Guard>;

    fn into_iter(self) -> Self::IntoIter {
        self.into_guards().into_iter()
    }
}

impl Deref for Guards {
    type Target = Leases;

    fn deref(&self) -> &Leases {
        &self.0.value
    }
}
