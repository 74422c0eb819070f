//! What is known of the nodes of locks: which are there, and which may be empty.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use ylock_core::environment::Moment;

use super::place::Place;

/// The number of locks that are looked at together.
const BATCH: usize = 64;
/// The number of busy locks that are remembered.
const MOST_BUSY: usize = 1_000;

/// The state of the nodes of locks, as far as is known.
#[derive(Debug, Default)]
pub(crate) struct LockNodes(Mutex<Locks>);

#[derive(Debug, Default)]
struct Locks {
    /// The locks whose node may be empty now; `sweep` is when that is looked at.
    emptied: BTreeSet<Place>,
    sweep: Option<Moment>,
    /// The locks whose node was there when it was last heard of. A guess, which saves a request
    /// when it is right.
    busy: BTreeSet<Place>,
}

impl LockNodes {
    /// Returns whether a lock's node is probably there.
    pub(crate) fn is_busy(&self, place: &Place) -> bool {
        self.0.lock().busy.contains(place)
    }

    /// Remembers whether a lock's node is there.
    pub(crate) fn note_busy(&self, place: &Place, busy: bool) {
        let mut locks = self.0.lock();
        if !busy {
            locks.busy.remove(place);
            return;
        }
        if locks.busy.len() >= MOST_BUSY {
            locks.busy.clear();
        }
        locks.busy.insert(place.clone());
    }

    /// Returns how many nodes may be empty.
    pub(crate) fn emptied(&self) -> usize {
        self.0.lock().emptied.len()
    }

    /// Remembers a lock whose node may be empty. Returns whether it is the first one.
    pub(super) fn note_emptied(&self, place: &Place, then: Moment) -> bool {
        let mut locks = self.0.lock();
        locks.emptied.insert(place.clone());
        let is_first = locks.sweep.is_none();
        locks.sweep.get_or_insert(then);
        is_first
    }

    pub(super) fn next_sweep(&self) -> Option<Moment> {
        self.0.lock().sweep
    }

    /// Returns some of the locks to look at, if it is time.
    pub(super) fn sweep(&self, now: Moment) -> Vec<Place> {
        let mut locks = self.0.lock();
        if locks.sweep.is_none_or(|then| then > now) {
            return Vec::new();
        }
        let some: Vec<_> = locks.emptied.iter().take(BATCH).cloned().collect();
        for place in &some {
            locks.emptied.remove(place);
        }
        locks.sweep = locks.sweep.filter(|_| !locks.emptied.is_empty());
        some
    }
}
