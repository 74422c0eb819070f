//! The schema as CQL text.

use crate::options::{CassandraOptions, Consistency};

/// A column of the table, as `system_schema.columns` describes it.
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) kind: &'static str,
    pub(super) cql_type: &'static str,
}

const fn column(name: &'static str, kind: &'static str, cql_type: &'static str) -> Column {
    Column { name, kind, cql_type }
}

/// All columns, in the order of the `CREATE TABLE`.
pub(super) const COLUMNS: [Column; 21] = [
    column("lock_group", "partition_key", "text"),
    column("lock_name", "partition_key", "text"),
    // One row per client and key.
    column("slot", "clustering", "uuid"),
    // Written by the client of the slot, all in one mutation and with one TTL.
    column("acquisition", "regular", "uuid"),
    column("mode", "regular", "text"),
    column("state", "regular", "text"),
    column("ticket", "regular", "bigint"),
    column("owner", "regular", "uuid"),
    column("client", "regular", "text"),
    column("since", "regular", "bigint"),
    column("lease_millis", "regular", "bigint"),
    column("heartbeat", "regular", "bigint"),
    column("next_acquisition", "regular", "uuid"),
    column("next_owner", "regular", "uuid"),
    column("next_mode", "regular", "text"),
    column("next_ticket", "regular", "bigint"),
    // Written by it too, with a TTL of their own.
    column("claim_token", "regular", "bigint"),
    column("claim_mode", "regular", "text"),
    // Written by other clients.
    column("revoked", "regular", "uuid"),
    // Of the whole partition; the largest stays, because the token is the write timestamp.
    column("last_write_token", "static", "bigint"),
    column("last_read_token", "static", "bigint"),
];

/// The options of the table, each with its reason.
///
/// Every client that was ever at a name leaves what is left of its row: a tombstone that each look must step over until
/// it is thrown away, `gc_grace` after the row has ended. So all of these make that happen soon.
const TABLE_OPTIONS: &[&str] = &[
    "comment = 'ylock: one partition per lock, one row per client'",
    // Quorum reads that follow each other must not go back in time.
    "read_repair = 'BLOCKING'",
    // A coordinator that waits for a replica that hangs asks another one soon: not after what was usual lately, which is seconds where
    // the table is new, or a replica has been hanging.
    "speculative_retry = 'MIN(99PERCENTILE,50ms)'",
    // Nothing is thrown away in memory, only when files are merged. Without writes nothing is flushed.
    "memtable_flush_period_in_ms = 60000",
    // Two files are enough to merge, and a file is merged with itself when a tenth of it has ended: by default that takes a day.
    "compaction = {'class': 'SizeTieredCompactionStrategy', 'min_threshold': 2, 'tombstone_threshold': 0.1, \
     'tombstone_compaction_interval': 60, 'unchecked_tombstone_compaction': true}",
];

/// Returns the statement that creates the keyspace.
pub(super) fn keyspace(options: &CassandraOptions) -> String {
    let (keyspace, factor) = (options.keyspace(), options.replication());
    // With LOCAL_QUORUM only the replicas of one data centre matter; otherwise the factor holds for each of them.
    let place = match (options.consistency(), options.datacenter()) {
        (Consistency::LocalQuorum, Some(datacenter)) => datacenter,
        _ => "replication_factor",
    };
    format!(
        "CREATE KEYSPACE IF NOT EXISTS \"{keyspace}\" \
         WITH replication = {{'class': 'NetworkTopologyStrategy', '{place}': {factor}}} AND durable_writes = true"
    )
}

/// Returns the statement that creates the table.
pub(super) fn table(options: &CassandraOptions) -> String {
    let mut cql =
        format!("CREATE TABLE IF NOT EXISTS \"{}\".\"{}\" (\n", options.keyspace(), options.table());
    for Column { name, kind, cql_type } in &COLUMNS {
        let fixed = if *kind == "static" { " static" } else { "" };
        cql.push_str(&format!("    {name} {cql_type}{fixed},\n"));
    }
    cql.push_str("    PRIMARY KEY ((lock_group, lock_name), slot)\n) WITH ");
    cql.push_str(&TABLE_OPTIONS.join("\n    AND "));
    cql.push_str(&format!("\n    AND gc_grace_seconds = {}", options.gc_grace().as_secs()));
    cql
}

/// Returns a statement that reads an unused partition, from a majority.
pub(super) fn probe(options: &CassandraOptions) -> String {
    let (keyspace, table) = (options.keyspace(), options.table());
    format!("SELECT slot FROM \"{keyspace}\".\"{table}\" WHERE lock_group = 'ylock' AND lock_name = 'probe'")
}
