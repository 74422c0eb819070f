//! One node: its data, its clock, and whether it is up.

use std::collections::BTreeMap;

use ylock_core::Key;

use super::cells::Cells;
use crate::clocks::START;

/// The period at which the commit log is written to the disk, in nanoseconds: Cassandra's default of `commitlog_sync: periodic`.
const SYNC_PERIOD: u64 = 10_000_000_000;

/// The seconds for which a replica keeps a tombstone by default: far less than rows live where they are observed, so that a node which was away
/// often shows what has long been superseded.
const GC_GRACE: i64 = 20;

/// Group and name.
type Lock = (String, String);
type Data = BTreeMap<Lock, Cells>;

#[derive(Debug)]
pub(super) struct Replica {
    pub(super) is_up: bool,
    /// True of a node that never comes back.
    pub(super) is_dead: bool,
    /// True of a node that compacts what it has of a lock with every write to it: as often as a real one ever might.
    pub(super) compacts: bool,
    /// The seconds for which it keeps a tombstone.
    pub(super) gc_grace: i64,
    /// The error of its clock, in microseconds.
    pub(super) clock_offset: i64,
    data: Data,
    /// The data that its commit log has on the disk, and since when.
    durable: (u64, Data),
    /// The writes that are kept for nodes that were down: for which node, of which lock, and what.
    pub(super) hints: Vec<(usize, Key, Cells)>,
}

impl Replica {
    pub(super) fn new(clock_offset: i64) -> Self {
        Self {
            is_up: true,
            is_dead: false,
            compacts: true,
            gc_grace: GC_GRACE,
            clock_offset,
            data: Data::new(),
            durable: (0, Data::new()),
            hints: Vec::new(),
        }
    }

    /// Returns its wall clock, in whole seconds.
    pub(super) fn second(&self, now: u64) -> i64 {
        (START + i64::try_from(now / 1_000).unwrap_or(i64::MAX) + self.clock_offset).div_euclid(1_000_000)
    }

    /// Takes a write, and compacts what it has of this lock: what has ended becomes a tombstone, and old tombstones go.
    pub(super) fn apply(&mut self, key: &Key, cells: &Cells, now: u64) {
        if now / SYNC_PERIOD > self.durable.0 {
            self.durable = (now / SYNC_PERIOD, self.data.clone());
        }
        self.take(&(key.group().to_owned(), key.name().to_owned()), cells, now);
    }

    /// Takes cells from another replica, or from a write.
    pub(super) fn take(&mut self, lock: &Lock, cells: &Cells, now: u64) {
        let second = self.second(now);
        let known = self.data.entry(lock.clone()).or_default();
        known.merge(cells);
        if self.compacts {
            *known = known.aged(second, self.gc_grace);
        }
    }

    /// Forgets all but what was on its disk.
    pub(super) fn forget(&mut self) {
        self.data = self.durable.1.clone();
    }

    /// Returns all that it has.
    pub(super) fn all(&self) -> Vec<(Lock, Cells)> {
        self.data.iter().map(|(lock, cells)| (lock.clone(), cells.clone())).collect()
    }

    /// Returns the locks of which it has something.
    pub(super) fn locks(&self) -> impl Iterator<Item = Key> {
        self.data.keys().filter_map(|(group, name)| Key::new(group.as_str(), name.as_str()).ok())
    }

    /// Returns what it answers of a lock, as of the second that the coordinator says.
    pub(super) fn answer(&self, key: &Key, second: i64) -> Cells {
        self.read(key).aged(second, self.gc_grace)
    }

    pub(super) fn read(&self, key: &Key) -> Cells {
        self.data.get(&(key.group().to_owned(), key.name().to_owned())).cloned().unwrap_or_default()
    }
}
