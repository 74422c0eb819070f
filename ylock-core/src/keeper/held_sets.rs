//! Which owners hold sets of locks, and up to which key.
//!
//! Who takes several locks waits for them in the order of their keys, so that no ring of waiters can close. An owner that holds one set and
//! waits for a key before the last of that set would break this order; and so would one that acquires two sets at the same time, of which one is
//! granted while the other waits.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;

use super::Keeper;
use crate::key::Key;
use crate::owner::Owner;

/// For each owner that holds sets the last key of each. Nothing is kept for other owners.
#[derive(Debug, Default)]
pub(super) struct HeldSets(Mutex<HashMap<Owner, Vec<Key>>>);

/// The owners that are acquiring a set.
#[derive(Debug, Default)]
pub(super) struct AcquiringSets(Mutex<HashSet<Owner>>);

/// One of them; no longer when this is dropped.
#[derive(Debug)]
pub(crate) struct AcquiringSet<'a> {
    all: &'a AcquiringSets,
    owner: Owner,
}

impl Drop for AcquiringSet<'_> {
    fn drop(&mut self) {
        self.all.0.lock().remove(&self.owner);
    }
}

/// A set that an owner holds. All its guards share it; with the last of them it is forgotten.
#[derive(Debug)]
pub(crate) struct HeldSet {
    keeper: Arc<Keeper>,
    owner: Owner,
    last: Key,
}

impl Keeper {
    /// Notes that the owner holds a set whose last key is this.
    pub(crate) fn hold_set(self: &Arc<Self>, owner: Owner, last: Key) -> Arc<HeldSet> {
        self.held_sets.0.lock().entry(owner).or_default().push(last.clone());
        Arc::new(HeldSet { keeper: Arc::clone(self), owner, last })
    }

    /// Notes that the owner acquires a set. Returns nothing if it is acquiring another one.
    pub(crate) fn acquire_set(&self, owner: Owner) -> Option<AcquiringSet<'_>> {
        let all = &self.acquiring_sets;
        let is_first = all.0.lock().insert(owner);
        // Not made where it is not the first: its end would be that of the other one.
        is_first.then(|| AcquiringSet { all, owner })
    }

    /// Returns the last of all keys of all sets that the owner holds.
    pub(crate) fn last_of_sets(&self, owner: Owner) -> Option<Key> {
        self.held_sets.0.lock().get(&owner)?.iter().max().cloned()
    }

    /// Returns whether the owner holds this key, so that it need not wait for it.
    pub(crate) fn is_held_by(&self, key: &Key, owner: Owner) -> bool {
        self.shard(key).lock().get(key).is_some_and(|entry| {
            entry.holders.iter().any(|holder| holder.hold.owner == owner && holder.hold.is_valid())
        })
    }
}

impl Drop for HeldSet {
    fn drop(&mut self) {
        let mut owners = self.keeper.held_sets.0.lock();
        let Some(sets) = owners.get_mut(&self.owner) else { return };
        if let Some(place) = sets.iter().position(|last| *last == self.last) {
            sets.swap_remove(place);
        }
        if sets.is_empty() {
            owners.remove(&self.owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryEngine;

    #[test]
    fn an_owner_is_remembered_for_as_long_as_it_holds_sets_and_up_to_the_last_key() {
        let (keeper, owner) = (Keeper::new(Arc::new(MemoryEngine::new())), Owner::new());
        let key = |name: &str| Key::new("group", name).unwrap();
        let sets = ["b", "c", "c", "a"].map(|name| keeper.hold_set(owner, key(name)));
        let lasts = sets.map(|set| {
            let last = keeper.last_of_sets(owner);
            drop(set);
            last.unwrap().name().to_owned()
        });
        assert_eq!(lasts, ["c", "c", "c", "a"]);
        assert_eq!((keeper.last_of_sets(owner), keeper.last_of_sets(Owner::new())), (None, None));
        assert!(keeper.held_sets.0.lock().is_empty());
    }
}
