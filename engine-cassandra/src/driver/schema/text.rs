//! The schema as CQL text.

use crate::driver::columns::{self, COLUMNS, Column, Part};
use ylock_core::options::OptionValue;

use crate::options::{CassandraOptions, Consistency, Expiry, Protocol, Rules};

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
        comment(options.rules())
    ));
    cql.push_str(&TABLE_OPTIONS.join("\n    AND "));
    cql.push_str(&format!("\n    AND gc_grace_seconds = {}", options.gc_grace().as_secs()));
    cql
}

/// Returns the comment of a table whose clients have these rules: it is made together with the table, so that the first client decides for all.
pub(super) fn comment(rules: Rules) -> String {
    let rules = rules.words().map(|(name, value)| format!("{name}={value}")).join("; ");
    format!("ylock: one partition per lock, one row per client; {rules}; version={VERSION}")
}

/// Returns the rules of the table's clients that a comment names; or the one that is none, as `name=word`. Tables of earlier versions do not name
/// an `expiry`, and those clients had a TTL; or they name nothing else.
pub(super) fn rules_in(comment: &str) -> Result<Rules, String> {
    let expiry = rule(comment, "expiry")?.unwrap_or(Expiry::Ttl);
    let preset = Rules::of(expiry);
    Ok(Rules {
        expiry,
        max_clock_skew: rule(comment, "max_clock_skew")?.unwrap_or(preset.max_clock_skew),
        token_ttl: rule(comment, "token_ttl")?.unwrap_or(preset.token_ttl),
        protocol: rule::<Protocol>(comment, "protocol")?.unwrap_or(preset.protocol),
    })
}

fn rule<V: OptionValue>(comment: &str, name: &str) -> Result<Option<V>, String> {
    let Some((_, rest)) = comment.split_once(&format!("{name}=")) else { return Ok(None) };
    let word = rest.split([' ', ';', ',']).next().unwrap_or_default();
    V::from_text(word).map(Some).map_err(|_| format!("{name}={word}"))
}

/// Returns the statement that says of a table which rules its clients have.
pub(super) fn record(options: &CassandraOptions, rules: Rules) -> String {
    let (keyspace, table) = (options.keyspace(), options.table());
    format!("ALTER TABLE \"{keyspace}\".\"{table}\" WITH comment = '{}'", comment(rules))
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
    use std::time::Duration;

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
    fn the_comment_says_which_rules_the_clients_have() {
        let rare = Rules {
            max_clock_skew: Duration::from_millis(1_500),
            token_ttl: Duration::from_secs(3_600),
            protocol: Protocol::ShadowRows,
            ..Rules::of(Expiry::Ttl)
        };
        for rules in [Rules::of(Expiry::Ttl), Rules::of(Expiry::Observed), rare] {
            let options = CassandraOptions::new("keyspace").with_rules(rules);
            assert!(table(&options).contains(&format!(" WITH comment = '{}'\n", comment(rules))));
            assert_eq!(rules_in(&comment(rules)), Ok(rules));
            let recorded = record(&options, rules);
            assert!(
                recorded.ends_with(&format!("\"keyspace\".\"locks\" WITH comment = '{}'", comment(rules)))
            );
        }
        assert_eq!(rules_in("expiry=observed, says the operator"), Ok(Rules::of(Expiry::Observed)));
        for word in ["expiry=later", "token_ttl=long", "max_clock_skew=-1s", "protocol=lwt"] {
            assert_eq!(rules_in(&format!("{word}; version=1")), Err(word.to_owned()));
        }
    }

    #[test]
    fn the_comment_says_the_version_and_one_that_says_none_is_of_the_first() {
        assert_eq!(named_in(&comment(Rules::of(Expiry::Ttl))), VERSION);
        for earlier in ["ylock: one partition per lock, one row per client; expiry=observed", ""] {
            assert_eq!(named_in(earlier), "1");
        }
    }

    #[test]
    fn a_table_of_an_earlier_version_has_the_defaults_and_without_a_word_a_ttl() {
        let comment = "ylock: one partition per lock, one row per client";
        for (comment, expiry) in [
            (comment, Expiry::Ttl),
            ("", Expiry::Ttl),
            (&format!("{comment}; expiry=observed; version=1"), Expiry::Observed),
        ] {
            assert_eq!(rules_in(comment), Ok(Rules::of(expiry)));
        }
    }

    #[test]
    fn the_probe_reads_one_partition() {
        let meant =
            "SELECT slot FROM \"keyspace\".\"locks\" WHERE lock_group = 'ylock' AND lock_name = 'probe'";
        assert_eq!(probe(&CassandraOptions::new("keyspace")), meant);
    }
}
