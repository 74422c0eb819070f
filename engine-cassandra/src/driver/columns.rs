//! The columns of the table: the one list from which the schema's text, its check and all statements are made.

/// A column of the table, as `system_schema.columns` describes it.
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) part: Part,
    pub(super) cql_type: &'static str,
}

/// The part of a partition that a column belongs to: what is written in one statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The key of the partition: the lock.
    Lock,
    /// The key of a row: the client. One row per client and lock.
    Slot,
    /// Written by the client of the slot, all in one mutation and with one TTL.
    Row,
    /// Written with the row: its timestamp, by which other clients see whether it was written anew.
    Heartbeat,
    /// Written with the row by clients that can be told to look, and left out by others.
    Hints,
    /// Written by the client of the slot too, with a TTL of its own.
    Claim,
    /// Written by other clients.
    Revocation,
    /// The last writer's token, of the whole partition; the largest stays, because the token is the write timestamp.
    LastWrite,
    /// The last reader's token, likewise.
    LastRead,
    /// The last run of the job of this name; the latest stays, because its period is the write timestamp.
    LastRun,
}

/// The parts of a row that its client writes in one statement.
pub(super) const ROW: &[Part] = &[Part::Row, Part::Heartbeat, Part::Hints];
/// The parts that name a row.
pub(super) const KEY_OF_ROW: &[Part] = &[Part::Lock, Part::Slot];
/// The parts that a look reads; the lock is known.
pub(super) const READ: &[Part] = &[
    Part::Slot,
    Part::Row,
    Part::Heartbeat,
    Part::Hints,
    Part::Claim,
    Part::Revocation,
    Part::LastWrite,
    Part::LastRead,
];

const fn column(name: &'static str, part: Part, cql_type: &'static str) -> Column {
    Column { name, part, cql_type }
}

/// All columns, in the order of the `CREATE TABLE`.
pub(super) static COLUMNS: [Column; 24] = [
    column("lock_group", Part::Lock, "text"),
    column("lock_name", Part::Lock, "text"),
    column("slot", Part::Slot, "uuid"),
    column("acquisition", Part::Row, "uuid"),
    column("mode", Part::Row, "text"),
    column("state", Part::Row, "text"),
    column("ticket", Part::Row, "bigint"),
    column("owner", Part::Row, "uuid"),
    column("client", Part::Row, "text"),
    column("since", Part::Row, "bigint"),
    column("lease_millis", Part::Row, "bigint"),
    column("heartbeat", Part::Heartbeat, "bigint"),
    column("next_acquisition", Part::Row, "uuid"),
    column("next_owner", Part::Row, "uuid"),
    column("next_mode", Part::Row, "text"),
    column("next_ticket", Part::Row, "bigint"),
    column("hint_address", Part::Hints, "text"),
    column("hint_key", Part::Hints, "uuid"),
    column("claim_token", Part::Claim, "bigint"),
    column("claim_mode", Part::Claim, "text"),
    column("revoked", Part::Revocation, "uuid"),
    column("last_write_token", Part::LastWrite, "bigint"),
    column("last_read_token", Part::LastRead, "bigint"),
    column("last_run", Part::LastRun, "text"),
];

impl Part {
    /// Returns the kind of its columns, as `system_schema.columns` names it.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Lock => "partition_key",
            Self::Slot => "clustering",
            Self::Row | Self::Heartbeat | Self::Hints | Self::Claim | Self::Revocation => "regular",
            Self::LastWrite | Self::LastRead | Self::LastRun => "static",
        }
    }
}

/// Returns the names of the columns of these parts, in the order of the list, with a comma between them.
pub(super) fn names(parts: &[Part]) -> String {
    of(parts).collect::<Vec<_>>().join(", ")
}

/// Returns what a statement sets in these parts: all of it from bound values.
pub(super) fn set(parts: &[Part]) -> String {
    bound(parts, ", ")
}

/// Returns the condition that these parts have the bound values.
pub(super) fn are(parts: &[Part]) -> String {
    bound(parts, " AND ")
}

/// Returns the condition that names a partition which belongs to no lock of a user.
pub(super) fn is_partition(group: &str, name: &str) -> String {
    let pairs = of(&[Part::Lock]).zip([group, name]);
    pairs.map(|(column, value)| format!("{column} = '{value}'")).collect::<Vec<_>>().join(" AND ")
}

fn bound(parts: &[Part], between: &str) -> String {
    of(parts).map(|name| format!("{name} = ?")).collect::<Vec<_>>().join(between)
}

fn of(parts: &[Part]) -> impl Iterator<Item = &'static str> {
    COLUMNS.iter().filter(|column| parts.contains(&column.part)).map(|column| column.name)
}
