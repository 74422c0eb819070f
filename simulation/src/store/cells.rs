//! Cells and how Cassandra reconciles two versions of one.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use ylock_core::StoreToken;
use ylock_engine_cassandra::algorithm::store::Slot;

/// The name of a cell in one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Name {
    LastWrite,
    LastRead,
    Of(Slot, Column),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Column {
    /// That the row was deleted: hides every cell of the slot that is not newer.
    Deleted,
    Acquisition,
    Mode,
    State,
    Ticket,
    Owner,
    Since,
    Lease,
    Next,
    ClaimToken,
    ClaimMode,
    Revoked,
}

/// A value; their order is that of Cassandra, as far as it matters for ties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Value {
    Text(&'static str),
    Number(i64),
    Identity(u128),
    Token(StoreToken),
    /// Identity, owner, mode and ticket of somebody who waits behind a hold; zeros for nobody.
    Next(u128, u128, &'static str, i64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) stamp: i64,
    /// The second from which on it does not live any more, by whoever's clock reads it.
    pub(super) expires: i64,
    pub(super) value: Value,
}

impl Cell {
    /// The larger timestamp wins; then the one that lives longer; then the larger value.
    fn beats(&self, other: &Self) -> bool {
        (self.stamp, self.expires, self.value) > (other.stamp, other.expires, other.value)
    }
}

/// What one replica has of one partition. Row by row, and replicas that have the same share it: to copy and to compare every cell
/// at every look would take most of a run's time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cells {
    last_write: Option<Cell>,
    last_read: Option<Cell>,
    rows: BTreeMap<Slot, Arc<Columns>>,
}

/// The cells of one row, by the number of their column.
type Columns = [Option<Cell>; COLUMNS];

const COLUMNS: usize = Column::Revoked as usize + 1;

impl Cells {
    pub(super) fn put(&mut self, name: Name, cell: Cell) {
        let known = match name {
            Name::LastWrite => &mut self.last_write,
            Name::LastRead => &mut self.last_read,
            Name::Of(slot, column) => &mut Arc::make_mut(self.rows.entry(slot).or_default())[column as usize],
        };
        reconcile(known, Some(cell));
    }

    /// What is in either.
    pub(super) fn merge(&mut self, other: &Self) {
        reconcile(&mut self.last_write, other.last_write);
        reconcile(&mut self.last_read, other.last_read);
        for (slot, columns) in &other.rows {
            match self.rows.entry(*slot) {
                Entry::Vacant(place) => drop(place.insert(Arc::clone(columns))),
                Entry::Occupied(mut known) => merge_row(known.get_mut(), columns),
            }
        }
    }

    /// The rows of which anything is there, also what does not live any more.
    pub(super) fn slots(&self) -> impl Iterator<Item = Slot> {
        self.rows.keys().copied()
    }

    /// The value, if it lives in this second and its row was not deleted since.
    pub(super) fn live(&self, name: Name, second: i64) -> Option<Value> {
        let (cell, deleted) = match name {
            Name::LastWrite => (self.last_write, None),
            Name::LastRead => (self.last_read, None),
            Name::Of(slot, column) => {
                let columns = self.rows.get(&slot)?;
                (columns[column as usize], columns[Column::Deleted as usize])
            }
        };
        let cell = cell?;
        let lives = cell.expires > second && deleted.is_none_or(|deleted| cell.stamp > deleted.stamp);
        lives.then_some(cell.value)
    }
}

fn merge_row(known: &mut Arc<Columns>, other: &Arc<Columns>) {
    if Arc::ptr_eq(known, other) {
        return;
    }
    if known.iter().zip(other.iter()).all(|(known, cell)| is_covered(known, cell)) {
        *known = Arc::clone(other);
        return;
    }
    let known = Arc::make_mut(known);
    known.iter_mut().zip(other.iter()).for_each(|(known, cell)| reconcile(known, *cell));
}

/// Whether nothing is lost when `cell` takes the place of what is known.
fn is_covered(known: &Option<Cell>, cell: &Option<Cell>) -> bool {
    match (known, cell) {
        (None, _) => true,
        (Some(known), Some(cell)) => !known.beats(cell),
        (Some(_), None) => false,
    }
}

fn reconcile(known: &mut Option<Cell>, cell: Option<Cell>) {
    match (&known, cell) {
        (_, None) => {}
        (Some(known), Some(cell)) if !cell.beats(known) => {}
        (_, Some(cell)) => *known = Some(cell),
    }
}
