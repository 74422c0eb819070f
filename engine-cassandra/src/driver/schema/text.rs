//! The schema as CQL text.

use crate::driver::columns::{self, COLUMNS, Column, Part};
use ylock_core::options::OptionValue;

use crate::options::{CassandraOptions, Consistency, Expiry};

/// The options of the table, each with its reason.
///
/// Every client that was ever at a name leaves something of its row: the cells when they have ended, or one tombstone where it was closed.
/// Each look must step over that until it is thrown away. What has ended may be thrown away `gc_grace_seconds` after it was *written*: at
/// once, if it lived for longer than that. And it is when files are merged then, which the last two options make happen soon.
const TABLE_OPTIONS: &[&str] = &[
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

/// The words before the `expiry` of the table's clients, in its comment.
const EXPIRY: &str = "expiry=";
/// The version of what is in the rows. Tables of earlier clients do not say it, and have the first one.
pub(super) const VERSION: &str = "1";

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
    for Column { name, part, cql_type } in &COLUMNS {
        let fixed = if part.kind() == "static" { " static" } else { "" };
        cql.push_str(&format!("    {name} {cql_type}{fixed},\n"));
    }
    let (lock, slot) = (columns::names(&[Part::Lock]), columns::names(&[Part::Slot]));
    cql.push_str(&format!(
        "    PRIMARY KEY (({lock}), {slot})\n) WITH comment = '{}'\n    AND ",
        comment(options.expiry())
    ));
    cql.push_str(&TABLE_OPTIONS.join("\n    AND "));
    cql.push_str(&format!("\n    AND gc_grace_seconds = {}", options.gc_grace().as_secs()));
    cql
}

/// Returns the comment of a table whose clients have this `expiry`: it is made together with the table, so that the first client decides for all.
pub(super) fn comment(expiry: Expiry) -> String {
    format!("ylock: one partition per lock, one row per client; {EXPIRY}{expiry}; version={VERSION}")
}

/// Returns the `expiry` of the table's clients that a comment names; or the word that stands there and is none. Tables of earlier versions have
/// no word, and those clients had a TTL.
pub(super) fn expiry_in(comment: &str) -> Result<Expiry, String> {
    let Some((_, rest)) = comment.split_once(EXPIRY) else { return Ok(Expiry::Ttl) };
    let word = rest.split([' ', ';', ',']).next().unwrap_or_default();
    Expiry::from_text(word).map_err(|_| word.to_owned())
}

/// Returns the statement that says of a table which `expiry` its clients have.
pub(super) fn record(options: &CassandraOptions) -> String {
    let (keyspace, table) = (options.keyspace(), options.table());
    format!("ALTER TABLE \"{keyspace}\".\"{table}\" WITH comment = '{}'", comment(options.expiry()))
}

/// Returns the statement that gives a table a column that it lacks.
pub(super) fn add(options: &CassandraOptions, Column { name, part, cql_type }: &Column) -> String {
    let fixed = if part.kind() == "static" { " static" } else { "" };
    format!("ALTER TABLE \"{}\".\"{}\" ADD {name} {cql_type}{fixed}", options.keyspace(), options.table())
}

/// Returns the statement that gives a table the grace which fits these options.
pub(super) fn grace(options: &CassandraOptions) -> String {
    let (keyspace, table) = (options.keyspace(), options.table());
    let seconds = options.longest_shown().as_secs();
    format!("ALTER TABLE \"{keyspace}\".\"{table}\" WITH gc_grace_seconds = {seconds}")
}

/// Returns a statement that reads an unused partition, from a majority.
pub(super) fn probe(options: &CassandraOptions) -> String {
    let (keyspace, table) = (options.keyspace(), options.table());
    let (slot, unused) = (columns::names(&[Part::Slot]), columns::is_partition("ylock", "probe"));
    format!("SELECT {slot} FROM \"{keyspace}\".\"{table}\" WHERE {unused}")
}

#[cfg(test)]
mod tests {
    use ylock_core::stored_version::named_in;

    use super::*;

    /// Tables of other versions are compared with this one.
    #[test]
    fn the_table_is_this_one() {
        let made = table(&CassandraOptions::new("keyspace").with_table("t"));
        let (columns, _) = made.split_once(" WITH ").unwrap();
        let meant = "CREATE TABLE IF NOT EXISTS \"keyspace\".\"t\" (
    lock_group text,
    lock_name text,
    slot uuid,
    acquisition uuid,
    mode text,
    state text,
    ticket bigint,
    owner uuid,
    client text,
    since bigint,
    lease_millis bigint,
    heartbeat bigint,
    next_acquisition uuid,
    next_owner uuid,
    next_mode text,
    next_ticket bigint,
    hint_address text,
    hint_key uuid,
    claim_token bigint,
    claim_mode text,
    revoked uuid,
    last_write_token bigint static,
    last_read_token bigint static,
    last_run text static,
    PRIMARY KEY ((lock_group, lock_name), slot)
)";
        assert_eq!(columns, meant);
    }

    #[test]
    fn the_comment_says_which_expiry_the_clients_have() {
        for expiry in [Expiry::Ttl, Expiry::Observed] {
            let options = CassandraOptions::new("keyspace").with_expiry(expiry);
            assert!(table(&options).contains(&format!(" WITH comment = '{}'\n", comment(expiry))));
            assert_eq!(expiry_in(&comment(expiry)), Ok(expiry));
            assert!(
                record(&options)
                    .ends_with(&format!("\"keyspace\".\"locks\" WITH comment = '{}'", comment(expiry)))
            );
        }
        assert_eq!(expiry_in("expiry=observed, says the operator"), Ok(Expiry::Observed));
        assert_eq!(expiry_in("expiry=later"), Err("later".to_owned()));
    }

    #[test]
    fn the_comment_says_the_version_and_one_that_says_none_is_of_the_first() {
        assert_eq!(named_in(&comment(Expiry::Ttl)), VERSION);
        for earlier in ["ylock: one partition per lock, one row per client; expiry=observed", ""] {
            assert_eq!(named_in(earlier), "1");
        }
    }

    #[test]
    fn a_table_of_an_earlier_version_is_one_of_a_ttl() {
        assert_eq!(expiry_in("ylock: one partition per lock, one row per client"), Ok(Expiry::Ttl));
        assert_eq!(expiry_in(""), Ok(Expiry::Ttl));
    }

    #[test]
    fn the_probe_reads_one_partition() {
        let meant =
            "SELECT slot FROM \"keyspace\".\"locks\" WHERE lock_group = 'ylock' AND lock_name = 'probe'";
        assert_eq!(probe(&CassandraOptions::new("keyspace")), meant);
    }
}
