//! The texts of the statements that are sent for locks.
//!
//! A row is written with `UPDATE`, not `INSERT`: an insert leaves a marker that keeps the row alive after its cells have expired.

use super::columns::{self, Part};

/// So many rows a page of locks has at most: few enough to come at once, beside what is sent for locks.
pub(super) const PAGE: usize = 500;

/// Returns the statement that writes these parts of a row.
pub(super) fn write(table: &str, parts: &[Part]) -> String {
    let (cells, row) = (columns::set(parts), columns::are(columns::KEY_OF_ROW));
    format!("UPDATE {table} USING TIMESTAMP ? AND TTL ? SET {cells} WHERE {row}")
}

/// Returns the statement that writes a part of the whole partition.
pub(super) fn write_static(table: &str, part: Part) -> String {
    let (cell, lock) = (columns::set(&[part]), columns::are(&[Part::Lock]));
    format!("UPDATE {table} USING TIMESTAMP ? AND TTL ? SET {cell} WHERE {lock}")
}

/// Returns the statement that removes a row.
pub(super) fn erase(table: &str) -> String {
    format!("DELETE FROM {table} USING TIMESTAMP ? WHERE {}", columns::are(columns::KEY_OF_ROW))
}

/// Returns the statement that deletes what a client writes of its row with one timestamp, but neither its token nor a revocation.
pub(super) fn bury(table: &str) -> String {
    let (cells, row) = (columns::names(columns::ROW), columns::are(columns::KEY_OF_ROW));
    format!("DELETE {cells} FROM {table} USING TIMESTAMP ? WHERE {row}")
}

/// Returns the statement that reads a partition, and when each claim was written: the claim may come from a later write than its row.
pub(super) fn read(table: &str) -> String {
    let (read, lock) = (columns::names(columns::READ), columns::are(&[Part::Lock]));
    format!("SELECT {read}, WRITETIME(claim_token) AS claim_stamp FROM {table} WHERE {lock}")
}

/// Returns the statement that reads the next rows of the table, in the order of the ring: which client takes part in which lock. A partition
/// without rows counts as one row, if something of it is left.
///
/// Only the state is wanted, but a client that reads a part of a row damages it: a coordinator repairs what was asked for and nothing else. If its clock is ahead, it takes a
/// row for ended, and writes that to replicas which do not have it: for a coordinator whose clock is behind the rest of the row would still be there.
pub(super) fn keys(table: &str) -> String {
    let (lock, row) = (columns::names(&[Part::Lock]), columns::names(columns::ROW));
    format!(
        "SELECT {lock}, {row}, TOKEN({lock}) AS position FROM {table} WHERE TOKEN({lock}) > ? LIMIT {PAGE}"
    )
}

/// Returns the statement that reads the last run of a job.
pub(super) fn read_run(table: &str) -> String {
    let (run, lock) = (columns::names(&[Part::LastRun]), columns::are(&[Part::Lock]));
    // Only what belongs to the whole partition: not the rows of clients, nor what is left of them.
    format!("SELECT DISTINCT {run} FROM {table} WHERE {lock}")
}

/// Returns the statement that reads the last tokens, and no row, as does [`read_run`].
pub(super) fn read_last_tokens(table: &str) -> String {
    let (tokens, lock) = (columns::names(&[Part::LastWrite, Part::LastRead]), columns::are(&[Part::Lock]));
    format!("SELECT DISTINCT {tokens} FROM {table} WHERE {lock}")
}

/// Returns the statement that reads the global time.
pub(super) fn read_time(table: &str) -> String {
    format!("SELECT {} FROM {table} WHERE {}", columns::names(&[Part::LastWrite]), place_of_time())
}

/// Returns the statement that writes the global time.
pub(super) fn write_time(table: &str) -> String {
    let (cell, place) = (columns::set(&[Part::LastWrite]), place_of_time());
    format!("UPDATE {table} USING TIMESTAMP ? SET {cell} WHERE {place}")
}

/// No lock has an empty group; and the largest token of a partition is just what a global time is.
fn place_of_time() -> String {
    columns::is_partition("", "global time")
}

#[cfg(test)]
mod tests {
    use scylla::deserialize::row::DeserializeRow;
    use scylla::frame::response::result::{ColumnSpec, ColumnType, NativeType, TableSpec};
    use scylla::serialize::row::{RowSerializationContext, SerializeRow};
    use scylla::serialize::writers::RowWriter;
    use ylock_core::engine::AcquisitionId;
    use ylock_core::{Key, Mode, StoreToken};

    use super::*;
    use crate::algorithm::rows_for_tests::row;
    use crate::algorithm::store::{Claim, Slot, State, TimedClaim, Write};
    use crate::driver::columns::COLUMNS;
    use crate::driver::page::Listed;
    use crate::driver::rows::Cells;
    use crate::driver::values::{self, ClaimValues, RowValues};

    /// Clients of all versions share the table.
    #[test]
    fn the_statements_are_these() {
        let row = "lock_group = ? AND lock_name = ? AND slot = ?";
        for (made, meant) in [
            (
                write("t", columns::ROW),
                format!(
                    "UPDATE t USING TIMESTAMP ? AND TTL ? SET acquisition = ?, mode = ?, state = ?, ticket = ?, owner = ?, client = ?, \
                     since = ?, lease_millis = ?, heartbeat = ?, next_acquisition = ?, next_owner = ?, next_mode = ?, next_ticket = ?, \
                     hint_address = ?, hint_key = ? \
                     WHERE {row}"
                ),
            ),
            (
                write("t", &[Part::Claim]),
                format!("UPDATE t USING TIMESTAMP ? AND TTL ? SET claim_token = ?, claim_mode = ? WHERE {row}"),
            ),
            (
                write("t", &[Part::Revocation]),
                format!("UPDATE t USING TIMESTAMP ? AND TTL ? SET revoked = ? WHERE {row}"),
            ),
            (
                write_static("t", Part::LastRead),
                "UPDATE t USING TIMESTAMP ? AND TTL ? SET last_read_token = ? WHERE lock_group = ? AND lock_name = ?".to_owned(),
            ),
            (
                bury("t"),
                format!(
                    "DELETE acquisition, mode, state, ticket, owner, client, since, lease_millis, heartbeat, next_acquisition, \
                     next_owner, next_mode, next_ticket, hint_address, hint_key FROM t USING TIMESTAMP ? WHERE {row}"
                ),
            ),
            (erase("t"), format!("DELETE FROM t USING TIMESTAMP ? WHERE {row}")),
            (
                read("t"),
                "SELECT slot, acquisition, mode, state, ticket, owner, client, since, lease_millis, heartbeat, next_acquisition, \
                 next_owner, next_mode, next_ticket, hint_address, hint_key, claim_token, claim_mode, revoked, last_write_token, \
                 last_read_token, WRITETIME(claim_token) AS claim_stamp FROM t \
                 WHERE lock_group = ? AND lock_name = ?"
                    .to_owned(),
            ),
            (
                write_static("t", Part::LastRun),
                "UPDATE t USING TIMESTAMP ? AND TTL ? SET last_run = ? WHERE lock_group = ? AND lock_name = ?".to_owned(),
            ),
            (
                read_run("t"),
                "SELECT DISTINCT last_run FROM t WHERE lock_group = ? AND lock_name = ?".to_owned(),
            ),
            (
                read_last_tokens("t"),
                "SELECT DISTINCT last_write_token, last_read_token FROM t WHERE lock_group = ? AND lock_name = ?"
                    .to_owned(),
            ),
            (
                keys("t"),
                "SELECT lock_group, lock_name, acquisition, mode, state, ticket, owner, client, since, lease_millis, heartbeat, \
                 next_acquisition, next_owner, next_mode, next_ticket, hint_address, hint_key, \
                 TOKEN(lock_group, lock_name) AS position FROM t WHERE TOKEN(lock_group, lock_name) > ? LIMIT 500"
                    .to_owned(),
            ),
            (
                read_time("t"),
                "SELECT last_write_token FROM t WHERE lock_group = '' AND lock_name = 'global time'".to_owned(),
            ),
            (
                write_time("t"),
                "UPDATE t USING TIMESTAMP ? SET last_write_token = ? WHERE lock_group = '' AND lock_name = 'global time'".to_owned(),
            ),
        ] {
            assert_eq!(made, meant);
        }
    }

    /// As a server describes a column.
    fn described(name: &str) -> ColumnSpec<'static> {
        let cql_type = match name {
            "[timestamp]" | "claim_stamp" | "position" | "partition key token" => "bigint",
            "[ttl]" => "int",
            name => COLUMNS.iter().find(|column| column.name == name).expect(name).cql_type,
        };
        let native = match cql_type {
            "bigint" => NativeType::BigInt,
            "int" => NativeType::Int,
            "text" => NativeType::Text,
            "uuid" => NativeType::Uuid,
            other => panic!("{other}"),
        };
        ColumnSpec::owned(name.to_owned(), ColumnType::Native(native), TableSpec::borrowed("keyspace", "t"))
    }

    /// Binds the values to the statement as the driver does, which compares names and types with what a server has said.
    fn binds(cql: &str, values: &impl SerializeRow) {
        let words: Vec<&str> = cql.split([' ', ',']).filter(|word| !word.is_empty()).collect();
        let places = (0..words.len()).filter(|&place| words[place] == "?");
        let bound = places.map(|place| match words[place - 1] {
            "TIMESTAMP" => described("[timestamp]"),
            "TTL" => described("[ttl]"),
            ">" => described("partition key token"),
            _ => described(words[place - 2]),
        });
        let bound: Vec<_> = bound.collect();
        let context = RowSerializationContext::from_specs(&bound);
        let bytes = &mut Vec::new();
        values
            .serialize(&context, &mut RowWriter::new(bytes))
            .unwrap_or_else(|error| panic!("{cql}: {error}"));
    }

    #[test]
    fn what_is_written_fits_the_columns() {
        let key = Key::new("group", "name").unwrap();
        let (slot, id) = (Slot::from_u128(1), AcquisitionId::from_u128(2));
        let row = row(2, Mode::Write, State::Held, 3);
        let claim = Claim { token: StoreToken::new(7).unwrap(), mode: Mode::Write };
        let timed = TimedClaim { claim, ttl: 8 };
        let all = Write { stamp: 9, row, row_ttl: 10, claim: Some(timed), used: Some(timed) };
        binds(&write("t", columns::ROW), &RowValues::new(&key, slot, &all, true));
        binds(&write("t", &[Part::Claim]), &ClaimValues::new(&key, slot, 9, timed));
        binds(&write("t", &[Part::Revocation]), &values::revoke(&key, slot, id, 9, 10));
        for part in [Part::LastRead, Part::LastWrite] {
            binds(&write_static("t", part), &values::used(&key, timed));
        }
        binds(&write_static("t", Part::LastRun), &values::run(&key, "a run", 9, 10));
        binds(&read_run("t"), &(key.group(), key.name()));
        binds(&read_last_tokens("t"), &(key.group(), key.name()));
        binds(&keys("t"), &(7i64,));
        binds(&erase("t"), &values::erase(&key, slot, 9));
        binds(&bury("t"), &values::bury(&key, slot, 9));
        binds(&read("t"), &(key.group(), key.name()));
        binds(&write_time("t"), &(11i64, 11i64));
    }

    /// A part of a row that is read is repaired alone, and may end before the rest.
    #[test]
    fn who_reads_cells_of_a_row_reads_all_that_are_written_together() {
        for statement in [read("t"), read_last_tokens("t"), keys("t"), read_run("t"), read_time("t")] {
            let (asked, _) = statement.split_once(" FROM ").unwrap();
            let asked: Vec<_> = asked.split([' ', ',']).collect();
            let row = columns::names(columns::ROW);
            let count = row.split(", ").filter(|cell| asked.contains(cell)).count();
            assert!([0, row.split(", ").count()].contains(&count), "{statement}");
        }
    }

    #[test]
    fn what_is_read_fits_the_columns() {
        let names = columns::names(columns::READ);
        let read: Vec<_> = names.split(", ").chain(["claim_stamp"]).map(described).collect();
        <Cells<'_> as DeserializeRow<'_, '_>>::type_check(&read).unwrap();
        let names = columns::names(columns::ROW);
        let read: Vec<_> = ["lock_group", "lock_name"]
            .into_iter()
            .chain(names.split(", "))
            .chain(["position"])
            .map(described)
            .collect();
        <Listed<'_> as DeserializeRow<'_, '_>>::type_check(&read).unwrap();
    }
}
