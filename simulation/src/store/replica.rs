//! One node: its data, its clock, and whether it is up.

use std::collections::BTreeMap;

use ylock_core::Key;

use super::cells::Cells;
use crate::clocks::START;

#[derive(Debug)]
pub(super) struct Replica {
    pub(super) is_up: bool,
    /// What its clock is wrong by, in microseconds.
    clock_offset: i64,
    data: BTreeMap<(String, String), Cells>,
    /// What is kept for nodes that were down: for whom, of which lock, and what.
    pub(super) hints: Vec<(usize, Key, Cells)>,
}

impl Replica {
    pub(super) fn new(clock_offset: i64) -> Self {
        Self { is_up: true, clock_offset, data: BTreeMap::new(), hints: Vec::new() }
    }

    /// Its wall clock, in whole seconds.
    pub(super) fn second(&self, now: u64) -> i64 {
        (START + i64::try_from(now / 1_000).unwrap_or(i64::MAX) + self.clock_offset).div_euclid(1_000_000)
    }

    pub(super) fn apply(&mut self, key: &Key, cells: &Cells) {
        let place = (key.group().to_owned(), key.name().to_owned());
        self.data.entry(place).or_default().merge(cells);
    }

    pub(super) fn read(&self, key: &Key) -> Cells {
        self.data.get(&(key.group().to_owned(), key.name().to_owned())).cloned().unwrap_or_default()
    }
}
