//! Compares the schema of the cluster with what is needed.

use std::time::Duration;

use scylla::DeserializeRow;
use scylla::deserialize::row::DeserializeRow as Decode;
use ylock_core::stored_version::{OtherVersion, named_in};
use ylock_core::{Error, ErrorKind, Result};

use super::meet::Asker;
use super::text;
use crate::driver::columns::{COLUMNS, Column, Part};
use crate::driver::errors;
use crate::options::{CassandraOptions, Rules};

const KEYSPACE: &str = "SELECT durable_writes FROM system_schema.keyspaces WHERE keyspace_name = ?";
const TABLE: &str = "SELECT read_repair, gc_grace_seconds, comment FROM system_schema.tables WHERE keyspace_name = ? AND table_name = ?";
const TABLE_COLUMNS: &str = "SELECT column_name AS name, kind, type FROM system_schema.columns WHERE keyspace_name = ? AND table_name = ?";

/// The state of the schema.
pub(super) enum Found {
    /// Everything, as it must be.
    Fits(Fit),
    /// No keyspace.
    NoKeyspace,
    /// A keyspace without the table.
    NoTable,
    /// A table of that name that cannot be used.
    Wrong(Error),
}

/// A table that can be used.
#[derive(Clone, Copy)]
pub(in crate::driver) struct Fit {
    /// What the table records for its clients.
    pub(in crate::driver) rules: Rules,
    gc_grace_seconds: i32,
}

impl Fit {
    /// Returns whether `gc_grace_seconds` is shorter than a node may show a row of this client's lease.
    pub(super) fn has_short_grace(self, options: &CassandraOptions) -> bool {
        Duration::from_secs(u64::try_from(self.gc_grace_seconds).unwrap_or(0)) < options.longest_shown()
    }
}

#[derive(DeserializeRow)]
struct KeyspaceRow {
    durable_writes: bool,
}

#[derive(DeserializeRow)]
struct TableRow {
    read_repair: String,
    gc_grace_seconds: i32,
    comment: String,
}

#[derive(DeserializeRow)]
struct ColumnRow {
    name: String,
    kind: String,
    #[scylla(rename = "type")]
    cql_type: String,
}

/// Reads the schema and compares it with what is needed.
pub(super) async fn look(asker: Asker<'_>, options: &CassandraOptions) -> Result<Found> {
    let (keyspace, table) = (options.keyspace(), options.table());
    let keyspaces = rows::<KeyspaceRow>(asker, KEYSPACE, &[keyspace]).await?;
    let Some(found) = keyspaces.first() else {
        return Ok(Found::NoKeyspace);
    };
    // Of an empty keyspace too: it would get a table that cannot be used.
    if !found.durable_writes {
        return Ok(Found::Wrong(forgetful(keyspace)));
    }
    let tables = rows::<TableRow>(asker, TABLE, &[keyspace, table]).await?;
    let Some(row) = tables.first() else {
        return Ok(Found::NoTable);
    };
    let columns = rows::<ColumnRow>(asker, TABLE_COLUMNS, &[keyspace, table]).await?;
    // Before the columns, which another version may have others of.
    if named_in(&row.comment) != text::VERSION {
        return Ok(Found::Wrong(other_version(options, &row.comment)));
    }
    // First: the rules in the comment of a table that is not one of ours mean nothing.
    let faults = faults(row, &columns);
    if !faults.is_empty() {
        let is_missing = |needed: &&Column| !columns.iter().any(|column| column.name == needed.name);
        let missing: Vec<_> = COLUMNS.iter().filter(is_missing).collect();
        return Ok(Found::Wrong(wrong(options, &faults, &missing)));
    }
    Ok(match text::rules_in(&row.comment) {
        Err(word) => Found::Wrong(unknown_rule(options, &word)),
        Ok(theirs) if options.rules_beside(theirs) != theirs => Found::Wrong(other_rule(options, theirs)),
        Ok(rules) => Found::Fits(Fit { rules, gc_grace_seconds: row.gc_grace_seconds }),
    })
}

pub(super) async fn rows<R>(asker: Asker<'_>, cql: &str, values: &[&str]) -> Result<Vec<R>>
where
    R: for<'frame, 'metadata> Decode<'frame, 'metadata>,
{
    let answer = asker.ask(cql, values).await.map_err(errors::classify)?;
    let answer = answer.into_rows_result().map_err(errors::answer)?;
    answer.rows::<R>().map_err(errors::answer)?.collect::<Result<_, _>>().map_err(errors::answer)
}

/// Returns everything that does not fit, in words. A column too many does no harm, unless it is part of the key.
fn faults(table: &TableRow, columns: &[ColumnRow]) -> Vec<String> {
    let mut faults: Vec<String> = COLUMNS.iter().filter_map(|needed| fault(needed, columns)).collect();
    for column in columns {
        let key = column.kind == "partition_key" || column.kind == "clustering";
        if key && !COLUMNS.iter().any(|needed| needed.name == column.name) {
            faults.push(format!("column {} must not be part of the key", column.name));
        }
    }
    // Anything else lets two quorum reads, one after the other, go back in time.
    if table.read_repair != "BLOCKING" {
        faults.push(format!("option read_repair is '{}', not 'BLOCKING'", table.read_repair));
    }
    // Then Cassandra keeps no hints, and a node that blinked misses writes until it is read or repaired.
    if table.gc_grace_seconds < 1 {
        faults.push("option gc_grace_seconds is 0".to_owned());
    }
    faults
}

/// Warns of a short grace: a client may wait for a lock that a node shows as held because it has missed the release. No client gets in
/// by that; and where rows are observed, a client that waits does so for no more than a lease, but one that does not wait gets nothing for as
/// long as a node shows the row.
pub(super) fn warn_of_short_grace(fit: Fit, options: &CassandraOptions) {
    if fit.has_short_grace(options) {
        tracing::warn!(
            table = options.table(),
            gc_grace_seconds = fit.gc_grace_seconds,
            shown_seconds = options.longest_shown().as_secs(),
            "gc_grace_seconds is shorter than a node may show a row of this client's lease: one that was down may show a released lock \
             as held until the row ends. Use a shorter lease or max_clock_skew, or run: {}",
            text::grace(options)
        );
    }
}

fn fault(needed: &Column, columns: &[ColumnRow]) -> Option<String> {
    let (Column { name, cql_type, .. }, kind) = (needed, needed.part.kind());
    match columns.iter().find(|column| column.name == *name) {
        None => Some(format!("column {name} ({cql_type}, {kind}) is missing")),
        Some(column) if column.kind != kind || column.cql_type != *cql_type => {
            Some(format!("column {name} is {} ({}), not {cql_type} ({kind})", column.cql_type, column.kind))
        }
        Some(_) => None,
    }
}

/// Returns the error for a table whose rows are those of other clients.
fn other_version(options: &CassandraOptions, comment: &str) -> Error {
    let (keyspace, table) = (options.keyspace(), options.table());
    let other = OtherVersion {
        of: &format!("table {keyspace}.{table}"),
        place: "table=…",
        found: named_in(comment),
        own: text::VERSION,
        remedy: &format!("run DROP TABLE \"{keyspace}\".\"{table}\", which forgets the last runs of jobs"),
    };
    other.refused(crate::NAME)
}

/// Returns the error for a table whose clients go by another rule: a row that one of them still relies on could be gone for the other, or a token
/// forgotten that it counts on.
fn other_rule(options: &CassandraOptions, theirs: Rules) -> Error {
    let (keyspace, table, own) = (options.keyspace(), options.table(), options.rules_beside(theirs));
    let differ = theirs.words().into_iter().zip(own.words()).find(|(theirs, own)| theirs != own);
    let ((name, theirs), (_, asked)) = differ.unwrap_or_default();
    let message = format!(
        "table {keyspace}.{table} is one of {name}={theirs}, and this client has {name}={asked}: connect with {name}={theirs} or without \
         any; or end all clients of the table, and run\n{};\n",
        text::record(options, own)
    );
    Error::new(ErrorKind::Config, message).with_engine(crate::NAME)
}

/// Returns the error for a table whose clients go by a rule that this client does not know.
fn unknown_rule(options: &CassandraOptions, word: &str) -> Error {
    let (keyspace, table) = (options.keyspace(), options.table());
    let message = format!(
        "table {keyspace}.{table} is one of {word}, which this version of ylock does not know: use a later one, or another table. If \
         the comment of the table is wrong, end all clients of the table, and run\n{};\n",
        text::record(options, options.rules())
    );
    Error::new(ErrorKind::Config, message).with_engine(crate::NAME)
}

/// Returns the error for a keyspace without durable writes: a replica that restarts would have forgotten what it has acknowledged, and
/// two holders would be possible.
fn forgetful(keyspace: &str) -> Error {
    let message = format!(
        "keyspace {keyspace} has durable_writes = false: a node that restarts forgets who holds which lock; run\nALTER KEYSPACE \
         \"{keyspace}\" WITH durable_writes = true;\n"
    );
    Error::new(ErrorKind::Config, message).with_engine(crate::NAME)
}

fn wrong(options: &CassandraOptions, faults: &[String], missing: &[&Column]) -> Error {
    let (keyspace, table) = (options.keyspace(), options.table());
    let mut message = format!(
        "table {keyspace}.{table} cannot be used: {}. Alter it, or name another one with table=…",
        faults.join("; ")
    );
    // A part of the key cannot be added.
    for column in missing.iter().filter(|column| !matches!(column.part, Part::Lock | Part::Slot)) {
        message.push_str(&format!("\n{};\n", text::add(options, column)));
    }
    Error::new(ErrorKind::Config, message).with_engine(crate::NAME)
}
