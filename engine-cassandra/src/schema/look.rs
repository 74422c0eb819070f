//! What the cluster has of the schema.

use scylla::DeserializeRow;
use scylla::client::session::Session;
use scylla::deserialize::row::DeserializeRow as Decode;
use ylock_core::{Error, ErrorKind, Result};

use super::meet;
use super::text::{COLUMNS, Column};
use crate::driver::errors;
use crate::options::CassandraOptions;

const KEYSPACE: &str = "SELECT keyspace_name AS name FROM system_schema.keyspaces WHERE keyspace_name = ?";
const TABLE: &str = "SELECT read_repair FROM system_schema.tables WHERE keyspace_name = ? AND table_name = ?";
const TABLE_COLUMNS: &str = "SELECT column_name AS name, kind, type FROM system_schema.columns WHERE keyspace_name = ? AND table_name = ?";

/// What there is.
pub(super) enum Found {
    /// Everything, as it must be.
    Fits,
    /// No keyspace.
    NoKeyspace,
    /// A keyspace without the table.
    NoTable,
    /// A table of that name that cannot be used.
    Wrong(Error),
}

#[derive(DeserializeRow)]
struct NameRow {
    #[allow(dead_code, reason = "only whether there is one")]
    name: String,
}

#[derive(DeserializeRow)]
struct TableRow {
    read_repair: String,
}

#[derive(DeserializeRow)]
struct ColumnRow {
    name: String,
    kind: String,
    #[scylla(rename = "type")]
    cql_type: String,
}

/// Reads the schema and compares it with what is needed.
pub(super) async fn look(session: &Session, options: &CassandraOptions) -> Result<Found> {
    let (keyspace, table) = (options.keyspace(), options.table());
    if rows::<NameRow>(session, KEYSPACE, &[keyspace]).await?.is_empty() {
        return Ok(Found::NoKeyspace);
    }
    let tables = rows::<TableRow>(session, TABLE, &[keyspace, table]).await?;
    let Some(row) = tables.first() else {
        return Ok(Found::NoTable);
    };
    let columns = rows::<ColumnRow>(session, TABLE_COLUMNS, &[keyspace, table]).await?;
    Ok(match faults(row, &columns) {
        faults if faults.is_empty() => Found::Fits,
        faults => Found::Wrong(wrong(options, &faults)),
    })
}

pub(super) async fn rows<R>(session: &Session, cql: &str, values: &[&str]) -> Result<Vec<R>>
where
    R: for<'frame, 'metadata> Decode<'frame, 'metadata>,
{
    let answer = meet::ask(session, cql, values).await.map_err(errors::classify)?;
    let answer = answer.into_rows_result().map_err(errors::answer)?;
    answer.rows::<R>().map_err(errors::answer)?.collect::<Result<_, _>>().map_err(errors::answer)
}

/// Everything that does not fit, in words. A column too many does no harm, unless it is part of the key.
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
    faults
}

fn fault(needed: &Column, columns: &[ColumnRow]) -> Option<String> {
    let Column { name, kind, cql_type } = needed;
    match columns.iter().find(|column| column.name == *name) {
        None => Some(format!("column {name} ({cql_type}, {kind}) is missing")),
        Some(column) if column.kind != *kind || column.cql_type != *cql_type => {
            Some(format!("column {name} is {} ({}), not {cql_type} ({kind})", column.cql_type, column.kind))
        }
        Some(_) => None,
    }
}

fn wrong(options: &CassandraOptions, faults: &[String]) -> Error {
    let (keyspace, table) = (options.keyspace(), options.table());
    let message = format!("table {keyspace}.{table} is not one of ylock's: {}", faults.join("; "));
    Error::new(ErrorKind::Config, message).with_engine(crate::NAME)
}
