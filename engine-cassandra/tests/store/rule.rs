//! The rule by which the rows of dead clients go: the table records it.

use std::sync::Arc;
use std::time::Duration;

use scylla::client::session::Session;
use ylock_core::{Error, ErrorKind};
use ylock_engine_cassandra::CassandraOptions;
use ylock_engine_cassandra::options::{Expiry, Protocol, SchemaMode};

use super::cluster::*;
use super::schema::with_keyspace;

fn creating(keyspace: &str) -> CassandraOptions {
    options_for(keyspace).with_schema(SchemaMode::Create)
}

async fn refused(options: &CassandraOptions) -> Error {
    let error = connect(options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    error
}

async fn alter(session: &Session, keyspace: &str, comment: &str) {
    run(session, &format!("ALTER TABLE {keyspace}.locks WITH comment = '{comment}'")).await;
    session.await_schema_agreement().await.unwrap();
}

async fn comment(session: &Session, keyspace: &str) -> String {
    let cql = "SELECT comment FROM system_schema.tables WHERE keyspace_name = ? AND table_name = 'locks'";
    let answer = session.query_unpaged(cql, (keyspace,)).await.unwrap().into_rows_result().unwrap();
    answer.single_row::<(String,)>().unwrap().0
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn a_client_that_names_no_rule_takes_that_of_the_table() {
    for (made, meant) in [
        (None, Expiry::Observed),
        (Some(Expiry::Observed), Expiry::Observed),
        (Some(Expiry::Ttl), Expiry::Ttl),
    ] {
        with_keyspace(async |keyspace: String, _: Arc<Session>| {
            let options = creating(&keyspace);
            let first = made.map_or(options.clone(), |expiry| options.clone().with_expiry(expiry));
            assert_eq!(connect(&first).await.unwrap().options().expiry(), meant);
            for schema in [SchemaMode::Check, SchemaMode::Create] {
                let table = connect(&options.clone().with_schema(schema)).await.unwrap();
                assert_eq!(table.options().expiry(), meant, "{made:?}");
                let skew = if meant == Expiry::Ttl { 2 } else { 60 };
                assert_eq!(table.options().max_clock_skew(), Duration::from_secs(skew));
            }
        })
        .await;
    }
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn a_client_that_names_another_rule_than_the_table_is_refused_and_told_what_helps() {
    with_keyspace(async |keyspace: String, session: Arc<Session>| {
        connect(&creating(&keyspace).with_expiry(Expiry::Observed)).await.unwrap();
        for schema in [SchemaMode::Check, SchemaMode::Create] {
            let other = options_for(&keyspace).with_expiry(Expiry::Ttl).with_schema(schema);
            let text = refused(&other).await.to_string();
            assert!(text.contains("one of expiry=observed, and this client has expiry=ttl"), "{text}");
            let mend = text.lines().find(|line| line.starts_with("ALTER TABLE")).expect("a statement");
            assert!(mend.contains("expiry=ttl"), "{text}");
        }
        let other = options_for(&keyspace).with_expiry(Expiry::Ttl);
        let text = refused(&other).await.to_string();
        let mend = text.lines().find(|line| line.starts_with("ALTER TABLE")).expect("a statement");
        run(&session, mend.trim_end_matches(';')).await;
        session.await_schema_agreement().await.unwrap();
        assert_eq!(connect(&other).await.unwrap().options().expiry(), Expiry::Ttl);
    })
    .await;
}

/// Clients of earlier versions may be at work on it.
#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn a_table_that_says_nothing_is_one_of_a_ttl() {
    with_keyspace(async |keyspace: String, session: Arc<Session>| {
        connect(&creating(&keyspace)).await.unwrap();
        alter(&session, &keyspace, "ylock: one partition per lock, one row per client").await;
        let table = connect(&options_for(&keyspace)).await.unwrap();
        assert_eq!(table.options().expiry(), Expiry::Ttl);
        let text = refused(&options_for(&keyspace).with_expiry(Expiry::Observed)).await.to_string();
        assert!(text.contains("one of expiry=ttl, and this client has expiry=observed"), "{text}");
        alter(&session, &keyspace, "expiry=later").await;
        let text = refused(&options_for(&keyspace)).await.to_string();
        assert!(text.contains("expiry=later, which this version of ylock does not know"), "{text}");
    })
    .await;
}

/// The smallest of any client would bound what is promised to all.
#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn the_other_rules_are_recorded_as_well() {
    with_keyspace(async |keyspace: String, session: Arc<Session>| {
        let day = Duration::from_secs(24 * 60 * 60);
        let minutes = Duration::from_secs(120);
        let made = creating(&keyspace).with_token_ttl(day).with_max_clock_skew(minutes);
        connect(&made).await.unwrap();
        let taken = connect(&options_for(&keyspace)).await.unwrap();
        assert_eq!((taken.options().token_ttl(), taken.options().max_clock_skew()), (day, minutes));
        let plain = options_for(&keyspace);
        for (other, theirs, own) in [
            (plain.clone().with_token_ttl(day * 7), "token_ttl=86400s", "token_ttl=604800s"),
            (plain.clone().with_max_clock_skew(minutes / 2), "max_clock_skew=120s", "max_clock_skew=60s"),
            (plain.clone().with_protocol(Protocol::ShadowRows), "protocol=queue", "protocol=shadow-rows"),
        ] {
            for schema in [SchemaMode::Check, SchemaMode::Create] {
                let text = refused(&other.clone().with_schema(schema)).await.to_string();
                assert!(text.contains(&format!("one of {theirs}, and this client has {own}")), "{text}");
            }
        }
        // A table of an earlier version has the defaults.
        alter(
            &session,
            &keyspace,
            "ylock: one partition per lock, one row per client; expiry=observed; version=1",
        )
        .await;
        connect(&plain.clone().with_token_ttl(day * 7)).await.unwrap();
        let text = refused(&made.with_schema(SchemaMode::Check)).await.to_string();
        let mend = text.lines().find(|line| line.starts_with("ALTER TABLE")).expect("a statement");
        for rule in ["expiry=observed", "max_clock_skew=120s", "token_ttl=86400s"] {
            assert!(mend.contains(rule), "{rule}: {text}");
        }
    })
    .await;
}

/// What fits the other rule only is refused when the table has said which it is.
#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn options_that_do_not_fit_the_rule_of_the_table_are_refused() {
    with_keyspace(async |keyspace: String, _: Arc<Session>| {
        connect(&creating(&keyspace).with_expiry(Expiry::Ttl)).await.unwrap();
        let far = options_for(&keyspace).with_max_clock_skew(Duration::from_secs(2 * 60 * 60));
        let text = refused(&far).await.to_string();
        assert!(text.contains("max_clock_skew") && text.contains("expiry=ttl"), "{text}");
    })
    .await;
}

/// The columns and the rule are those of the other clients then, and may be any.
#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn clients_of_another_version_are_refused_by_name() {
    with_keyspace(async |keyspace: String, session: Arc<Session>| {
        connect(&creating(&keyspace)).await.unwrap();
        let made = comment(&session, &keyspace).await;
        let rules = "; expiry=observed; max_clock_skew=60s; token_ttl=604800s; protocol=queue; version=1";
        assert!(made.ends_with(rules), "{made}");
        let later = "ylock: another table altogether; expiry=never; version=2";
        alter(&session, &keyspace, later).await;
        for schema in [SchemaMode::Check, SchemaMode::Create] {
            let text = refused(&options_for(&keyspace).with_schema(schema)).await.to_string();
            for part in ["table ", &keyspace, "version 2", "version 1", "side by side", "DROP TABLE"] {
                assert!(text.contains(part), "{part}: {text}");
            }
            assert_eq!(comment(&session, &keyspace).await, later);
        }
        // Clients of before the version was written made such tables, and are at work beside these.
        for earlier in ["ylock: one partition per lock, one row per client; expiry=observed", &made] {
            alter(&session, &keyspace, earlier).await;
            connect(&creating(&keyspace)).await.unwrap();
            assert_eq!(comment(&session, &keyspace).await, earlier);
        }
    })
    .await;
}

/// Its comment means nothing, whatever it says.
#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn a_table_that_cannot_be_used_is_not_asked_for_its_rule() {
    with_keyspace(async |keyspace: String, session: Arc<Session>| {
        connect(&creating(&keyspace).with_expiry(Expiry::Ttl)).await.unwrap();
        run(&session, &format!("ALTER TABLE {keyspace}.locks DROP ticket")).await;
        session.await_schema_agreement().await.unwrap();
        let text = refused(&options_for(&keyspace).with_expiry(Expiry::Observed)).await.to_string();
        assert!(text.contains("column ticket (bigint, regular) is missing"), "{text}");
        assert!(!text.contains("expiry"), "{text}");
    })
    .await;
}

/// The rule of a table that a refused client has left behind would refuse the next one as well.
#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn a_client_whose_options_do_not_fit_the_rule_of_a_new_table_leaves_no_table() {
    with_keyspace(async |keyspace: String, _: Arc<Session>| {
        let options = creating(&keyspace).with_token_ttl(Duration::from_secs(30));
        let error = refused(&options).await;
        assert!(error.to_string().contains("token_ttl"), "{error}");
        let named = connect(&options.with_expiry(Expiry::Ttl)).await.unwrap();
        assert_eq!(named.options().expiry(), Expiry::Ttl);
    })
    .await;
}
