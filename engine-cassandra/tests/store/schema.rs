use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use scylla::client::session::Session;
use ylock_core::{Error, ErrorKind};
use ylock_engine_cassandra::algorithm::store::{State, Store};
use ylock_engine_cassandra::options::SchemaMode;

use super::cluster::*;
use super::log::logged;

/// Gives the test a keyspace of its own and drops it afterwards.
pub(crate) async fn with_keyspace<F: Future<Output = ()>>(test: impl FnOnce(String, Arc<Session>) -> F) {
    let keyspace = format!("ylock_fresh_{:016x}", environment().random());
    let session = Arc::new(session().await);
    test(keyspace.clone(), Arc::clone(&session)).await;
    run(&session, &format!("DROP KEYSPACE IF EXISTS {keyspace}")).await;
}

async fn refused(keyspace: &str) -> Error {
    let error = connect(&options_for(keyspace)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    error
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn a_missing_schema_is_printed_and_works_as_printed() {
    with_keyspace(async |keyspace: String, session: Arc<Session>| {
        let text = refused(&keyspace).await.to_string();
        assert!(text.contains("schema=create") && text.contains("no keyspace"), "{text}");
        let start = text.find("CREATE KEYSPACE").expect("the keyspace is printed");
        let end = text.rfind(";\n").expect("every statement ends");
        for cql in text[start..end].split(";\n") {
            run(&session, cql).await;
        }
        connect(&options_for(&keyspace)).await.unwrap();
    })
    .await;
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn a_missing_table_of_another_name_is_printed() {
    let error = connect(&options_for(KEYSPACE).with_table("no_such_table")).await.unwrap_err();
    assert!(
        error.to_string().contains("CREATE TABLE IF NOT EXISTS \"ylock_test\".\"no_such_table\""),
        "{error}"
    );
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn many_clients_create_at_once() {
    with_keyspace(async |keyspace: String, _: Arc<Session>| {
        let options = options_for(&keyspace).with_schema(SchemaMode::Create);
        let clients = join_all((0..8).map(|_| connect(&options))).await;
        let key = key("shared");
        for client in clients {
            client.unwrap().write(&key, slot(), &write(stamp(), row(State::Waiting))).await.unwrap();
        }
        let table = connect(&options_for(&keyspace)).await.unwrap();
        assert_eq!(table.read(&key).await.unwrap().rows.len(), 8);
    })
    .await;
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn what_does_not_fit_is_named() {
    with_keyspace(async |keyspace: String, session: Arc<Session>| {
        connect(&options_for(&keyspace).with_schema(SchemaMode::Create)).await.unwrap();
        run(&session, &format!("ALTER TABLE {keyspace}.locks WITH read_repair = 'NONE'")).await;
        run(&session, &format!("ALTER TABLE {keyspace}.locks DROP ticket")).await;
        run(&session, &format!("ALTER TABLE {keyspace}.locks ADD spare text")).await;
        session.await_schema_agreement().await.unwrap();
        let text = refused(&keyspace).await.to_string();
        assert!(text.contains("column ticket (bigint, regular) is missing"), "{text}");
        assert!(text.contains("read_repair is 'NONE'"), "{text}");
        assert!(!text.contains("spare"), "{text}");
    })
    .await;
}

/// A table of an earlier version: what the client says of it is what helps.
#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn a_column_that_is_missing_is_named_with_the_statement_that_adds_it() {
    with_keyspace(async |keyspace: String, session: Arc<Session>| {
        let options = options_for(&keyspace).with_schema(SchemaMode::Create);
        connect(&options).await.unwrap();
        run(&session, &format!("ALTER TABLE {keyspace}.locks DROP last_run")).await;
        session.await_schema_agreement().await.unwrap();
        let text = refused(&keyspace).await.to_string();
        assert!(text.contains("column last_run (text, static) is missing"), "{text}");
        let mend = text.lines().find(|line| line.starts_with("ALTER TABLE")).expect("a statement");
        run(&session, mend.trim_end_matches(';')).await;
        session.await_schema_agreement().await.unwrap();
        connect(&options_for(&keyspace)).await.unwrap();
    })
    .await;
}

/// Cassandra takes it, and then no quorum ever answers.
#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn a_keyspace_with_more_replicas_than_a_quorum_of_the_nodes_is_refused() {
    with_keyspace(async |keyspace: String, _: Arc<Session>| {
        let options = options_for(&keyspace).with_schema(SchemaMode::Create).with_replication(9);
        let error = connect(&options).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        assert!(error.to_string().contains("ALTER KEYSPACE"), "{error}");
    })
    .await;
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn a_keyspace_that_forgets_what_it_acknowledged_is_refused() {
    with_keyspace(async |keyspace: String, session: Arc<Session>| {
        let options = options_for(&keyspace).with_schema(SchemaMode::Create);
        connect(&options).await.unwrap();
        run(&session, &format!("ALTER KEYSPACE {keyspace} WITH durable_writes = false")).await;
        for schema in [SchemaMode::Check, SchemaMode::Create] {
            let error = connect(&options_for(&keyspace).with_schema(schema)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config, "{error}");
            let text = error.to_string();
            // What it says is what helps.
            let mend = text.lines().find(|line| line.starts_with("ALTER KEYSPACE")).expect("a statement");
            assert!(mend.contains("durable_writes = true"), "{text}");
        }
        let text = refused(&keyspace).await.to_string();
        let mend = text.lines().find(|line| line.starts_with("ALTER KEYSPACE")).expect("a statement");
        run(&session, mend.trim_end_matches(';')).await;
        session.await_schema_agreement().await.unwrap();
        connect(&options).await.unwrap();
    })
    .await;
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn a_table_without_any_grace_is_refused_and_one_with_little_is_warned_of() {
    with_keyspace(async |keyspace: String, session: Arc<Session>| {
        let options = options_for(&keyspace).with_schema(SchemaMode::Create);
        // A row of a lease of 10 s is shown for 17 s at most where clocks differ by two seconds.
        let options = options.with_max_clock_skew(Duration::from_secs(2));
        let warned = |text: &str| text.contains("gc_grace_seconds is shorter than a node may show a row");
        let (client, text) = logged(connect(&options.clone().with_gc_grace(Duration::from_secs(17)))).await;
        client.unwrap();
        assert!(!warned(&text), "{text}");
        let (client, text) = logged(connect(&options.clone().with_lease(Duration::from_secs(11)))).await;
        client.unwrap();
        assert!(warned(&text), "{text}");
        // What it says is what helps.
        let at = text.find("ALTER TABLE").expect("a statement");
        run(&session, text[at..].split_inclusive("gc_grace_seconds = 18").next().unwrap()).await;
        let (client, text) = logged(connect(&options.clone().with_lease(Duration::from_secs(11)))).await;
        client.unwrap();
        assert!(!warned(&text), "{text}");
        run(&session, &format!("ALTER TABLE {keyspace}.locks WITH gc_grace_seconds = 0")).await;
        session.await_schema_agreement().await.unwrap();
        assert!(refused(&keyspace).await.to_string().contains("gc_grace_seconds is 0"));
    })
    .await;
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn a_table_of_somebody_else_is_refused() {
    with_keyspace(async |keyspace: String, session: Arc<Session>| {
        let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
        run(&session, &format!("CREATE KEYSPACE {keyspace} WITH replication = {replication}")).await;
        run(
            &session,
            &format!(
                "CREATE TABLE {keyspace}.locks (lock_group int, day int, PRIMARY KEY (lock_group, day))"
            ),
        )
        .await;
        for schema in [SchemaMode::Check, SchemaMode::Create] {
            let error = connect(&options_for(&keyspace).with_schema(schema)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config);
            let text = error.to_string();
            assert!(
                text.contains("column lock_group is int (partition_key), not text (partition_key)"),
                "{text}"
            );
            assert!(text.contains("column day must not be part of the key"), "{text}");
        }
    })
    .await;
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn a_table_that_is_dropped_under_a_client_is_a_config_error() {
    with_keyspace(async |keyspace: String, session: Arc<Session>| {
        let client = connect(&options_for(&keyspace).with_schema(SchemaMode::Create)).await.unwrap();
        run(&session, &format!("DROP TABLE {keyspace}.locks")).await;
        let error = client.read(&key("x")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        connect(&options_for(&keyspace).with_schema(SchemaMode::Create)).await.unwrap();
    })
    .await;
}
