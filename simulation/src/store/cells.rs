//! Cells and how Cassandra reconciles two versions of one.

use std::collections::BTreeMap;

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

/// What one replica has of one partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cells(BTreeMap<Name, Cell>);

impl Cells {
    pub(super) fn put(&mut self, name: Name, cell: Cell) {
        let known = self.0.entry(name).or_insert(cell);
        if cell.beats(known) {
            *known = cell;
        }
    }

    /// What is in either.
    pub(super) fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|(name, cell)| self.put(*name, *cell));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Name, &Cell)> {
        self.0.iter()
    }

    /// The value, if it lives in this second and its row was not deleted since.
    pub(super) fn live(&self, name: Name, second: i64) -> Option<Value> {
        let cell = self.0.get(&name)?;
        let deleted = match name {
            Name::Of(slot, _) => self.0.get(&Name::Of(slot, Column::Deleted)).map(|cell| cell.stamp),
            Name::LastWrite | Name::LastRead => None,
        };
        let lives = cell.expires > second && deleted.is_none_or(|stamp| cell.stamp > stamp);
        lives.then_some(cell.value)
    }
}
