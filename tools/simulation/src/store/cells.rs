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
    /// The deletion of the row: hides every cell of the slot that is not newer.
    Deleted,
    Acquisition,
    Mode,
    State,
    Ticket,
    Owner,
    Since,
    Lease,
    Heartbeat,
    NextAcquisition,
    NextOwner,
    NextMode,
    NextTicket,
    HintAddress,
    HintKey,
    ClaimToken,
    ClaimMode,
    Revoked,
}

impl Column {
    /// The cells that a client writes of its row with one stamp.
    pub(super) const OF_ROW: [Self; 14] = [
        Self::Acquisition,
        Self::Mode,
        Self::State,
        Self::Ticket,
        Self::Owner,
        Self::Since,
        Self::Lease,
        Self::Heartbeat,
        Self::NextAcquisition,
        Self::NextOwner,
        Self::NextMode,
        Self::NextTicket,
        Self::HintAddress,
        Self::HintKey,
    ];
}

/// A value; their order is that of Cassandra, which compares bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Value {
    Text(&'static str),
    /// The bytes of a number with a sign: a negative one is larger than every other.
    Number(u64),
    Identity(u128),
    Token(StoreToken),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) stamp: i64,
    pub(super) life: Life,
    pub(super) value: Value,
}

/// The life of a cell, in seconds of the clock of the node that counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// Without a TTL.
    Unbounded,
    /// Written in this second, and alive until that one.
    Expiring { written: i64, until: i64 },
    /// Deleted in this second; or expired, and then it counts as deleted when it was written.
    Tombstone { deleted: i64 },
}

impl Life {
    /// Returns the life of what is written in this second, with a TTL.
    pub(super) fn of(second: i64, ttl: u32) -> Self {
        Self::Expiring { written: second, until: second + i64::from(ttl) }
    }

    fn is_over(self, second: i64) -> bool {
        match self {
            Self::Unbounded => false,
            Self::Expiring { until, .. } => until <= second,
            Self::Tombstone { .. } => true,
        }
    }

    /// Ranks as `Cells.resolveRegular` of Cassandra 5.0 does: a tombstone beats a cell that expires, and that one a cell that does not.
    /// Of two that expire, or two tombstones, the later end wins. Of two that end together, the one with the shorter TTL, which was written
    /// later.
    fn rank(self) -> (u8, i64, i64) {
        match self {
            Self::Unbounded => (0, 0, 0),
            Self::Expiring { written, until } => (1, until, written),
            Self::Tombstone { deleted } => (2, deleted, 0),
        }
    }
}

impl Cell {
    /// Returns whether this cell wins: by the larger timestamp; then by the stronger life; then by the larger value.
    fn beats(&self, other: &Self) -> bool {
        (self.stamp, self.life.rank(), self.value) > (other.stamp, other.life.rank(), other.value)
    }

    /// Returns what a replica makes of the cell in this second: as `AbstractCell.purge`, a cell that has ended becomes a tombstone, and
    /// nothing when that is older than `gc_grace`. It counts from when the cell was *written*.
    fn aged(self, second: i64, gc_grace: i64) -> Option<Self> {
        let ended = match self.life {
            Life::Expiring { written, until } if until <= second => written,
            Life::Tombstone { deleted } => deleted,
            _ => return Some(self),
        };
        let tombstone = Self { life: Life::Tombstone { deleted: ended }, ..self };
        (ended >= second - gc_grace).then_some(tombstone)
    }
}

/// The cells that one replica has of one partition. Row by row, and replicas that have the same share it: to copy and to compare every
/// cell at every look would take most of a run's time.
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

    /// Returns the cells as a replica has them when it has read, or compacted, in this second.
    pub(super) fn aged(&self, second: i64, gc_grace: i64) -> Self {
        let age = |cell: Option<Cell>| cell.and_then(|cell| cell.aged(second, gc_grace));
        let rows = self.rows.iter().filter_map(|(slot, columns)| {
            // What a deletion hides goes with it, and does not come back when the deletion is forgotten.
            let deleted = columns[Column::Deleted as usize].map(|deleted| deleted.stamp);
            let mut aged = columns.map(|cell| age(cell.filter(|cell| Some(cell.stamp) > deleted)));
            aged[Column::Deleted as usize] = age(columns[Column::Deleted as usize]);
            let columns = if aged == **columns { Arc::clone(columns) } else { Arc::new(aged) };
            aged.iter().any(Option::is_some).then_some((*slot, columns))
        });
        Self { last_write: age(self.last_write), last_read: age(self.last_read), rows: rows.collect() }
    }

    /// Merges what another replica has.
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

    /// Returns the rows of which anything is there, also what does not live any more.
    pub(super) fn slots(&self) -> impl Iterator<Item = Slot> {
        self.rows.keys().copied()
    }

    /// Returns the value, if it lives in this second and its row was not deleted since.
    pub(super) fn live(&self, name: Name, second: i64) -> Option<Value> {
        self.living(name, second).map(|cell| cell.value)
    }

    /// Returns the timestamp of a cell that lives.
    pub(super) fn written(&self, name: Name, second: i64) -> Option<i64> {
        self.living(name, second).map(|cell| cell.stamp)
    }

    fn living(&self, name: Name, second: i64) -> Option<Cell> {
        let (cell, deleted) = match name {
            Name::LastWrite => (self.last_write, None),
            Name::LastRead => (self.last_read, None),
            Name::Of(slot, column) => {
                let columns = self.rows.get(&slot)?;
                (columns[column as usize], columns[Column::Deleted as usize])
            }
        };
        let cell = cell?;
        let lives = !cell.life.is_over(second) && deleted.is_none_or(|deleted| cell.stamp > deleted.stamp);
        lives.then_some(cell)
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

/// Returns whether nothing is lost when `cell` takes the place of what is known.
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
