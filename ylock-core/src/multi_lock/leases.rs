//! The view that a holder has of a set of locks.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use crate::engine::LossReason;
use crate::error::Result;
use crate::key::Key;
use crate::lease::{Lease, lost};
use crate::name::Name;
use crate::token::Token;

/// A view of several locks that are held together: their tokens, and whether all of them are still held. It does not keep the locks.
///
/// One lock that is lost is the set lost: what was to be done under all of them must stop.
#[derive(Clone, Debug, Default)]
pub struct Leases(Arc<[Lease]>);

impl Leases {
    pub(super) fn new(leases: impl IntoIterator<Item = Lease>) -> Self {
        Self(leases.into_iter().collect())
    }

    /// Returns the leases, in the order of their keys.
    pub fn iter(&self) -> std::slice::Iter<'_, Lease> {
        self.0.iter()
    }

    /// Returns the number of locks.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether it is a set of no locks.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the lease of one of the locks; `None` if the set does not have it.
    pub fn get(&self, group: impl Name, name: impl Name) -> Option<&Lease> {
        let (group, name) = (group.into_name(), name.into_name());
        let place = |lease: &Lease| -> Ordering {
            let key = lease.key();
            (key.group(), key.name()).cmp(&(&*group, &*name))
        };
        self.0.binary_search_by(place).ok().map(|place| &self.0[place])
    }

    /// Returns the fencing token of one of the locks; `None` if the set does not have it, or the engine cannot give a safe one. Each lock has
    /// its own, and those of two locks cannot be compared. See [`Token`] for how to use it.
    pub fn token(&self, group: impl Name, name: impl Name) -> Option<Token> {
        self.get(group, name)?.token()
    }

    /// Returns whether all of the locks are held; see [`Lease::is_valid`].
    pub fn is_valid(&self) -> bool {
        self.0.iter().all(Lease::is_valid)
    }

    /// Returns `Ok` if all of the locks are [valid](Self::is_valid), otherwise the error that names the first one that is not.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`](crate::ErrorKind::Lost).
    pub fn check(&self) -> Result<()> {
        self.0.iter().try_for_each(Lease::check)
    }

    /// Returns for how long all of the locks stay valid without another renewal: the shortest time of them. A set of no locks is valid for
    /// ever.
    pub fn remaining(&self) -> Duration {
        self.0.iter().map(Lease::remaining).min().unwrap_or(Duration::MAX)
    }

    /// Waits until one of the locks is lost, and returns which, and why; before the store gives it to another owner, unless this process was
    /// not running. Locks that were given back are not lost, nor is a set of no locks: then this never ends.
    ///
    /// # Cancel safety
    /// Can be dropped and called again.
    pub async fn lost(&self) -> (Key, LossReason) {
        first_lost(self.iter()).await
    }

    /// Returns the first lock that was lost, and why, if any was.
    pub fn loss(&self) -> Option<(Key, LossReason)> {
        self.0.iter().find_map(|lease| Some((lease.key().clone(), lease.loss()?)))
    }
}

impl<'a> IntoIterator for &'a Leases {
    type Item = &'a Lease;
    type IntoIter = std::slice::Iter<'a, Lease>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Waits until one of the leases is lost.
pub(super) async fn first_lost(leases: impl IntoIterator<Item = &Lease>) -> (Key, LossReason) {
    let each = leases.into_iter().map(|lease| async { (lease.key().clone(), lease.lost().await) });
    match each.collect::<FuturesUnordered<_>>().next().await {
        Some(lost) => lost,
        None => std::future::pending().await,
    }
}

/// Returns the error of a holder of several locks that has lost this one.
pub(super) fn lost_one(leases: &Leases, key: &Key) -> crate::error::Error {
    match leases.iter().find(|lease| lease.key() == key) {
        Some(lease) => lost(lease),
        None => crate::error::Error::new(crate::error::ErrorKind::Lost, "the lock was lost").with_key(key),
    }
}
