//! What a role must be allowed to do, and what it is told otherwise.

use std::sync::Arc;
use std::time::Duration;

use ylock_core::{ErrorKind, Options, Period, Ylock};
use ylock_engine_postgres::PostgresEngine;
use ylock_engine_postgres::options::SchemaMode;

use super::own_server::OwnServer;
use super::{LONG, acquire, client_with, engine_with, one_holds_and_another_waits, unlock, within};

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_role_that_may_use_the_schema_can_do_all_that_a_client_does() {
    let server = OwnServer::start().await;
    drop(engine_with(&server.options()).await);
    server.execute("create role app login; grant usage on schema ylock to app").await;
    let options = server.options_for("app").with_schema(SchemaMode::Check).with_lease(LONG);
    let (one, two) = (client_with(options.clone()).await, client_with(options).await);
    for _ in 0..3 {
        let (guard, waiting) = one_holds_and_another_waits(&one, &two).await;
        unlock(guard).await;
        unlock(within("the next one gets in", waiting).await.unwrap()).await;
    }
    let guard = within("it gets in", one.locks("users").read("bob")).await.unwrap();
    let seen = two.inspect("users", "bob").await.unwrap();
    assert_eq!(seen.holders.len(), 1);
    assert_eq!(two.revoke("users", "bob").await.unwrap(), 1);
    drop(guard);
    let done = one
        .locks("jobs")
        .once_per("nightly", Period::of(Duration::from_secs(24 * 60 * 60)), |_| async {})
        .await
        .unwrap();
    drop(done);
    // And nothing else.
    for statement in
        ["select * from ylock.lock", "delete from ylock.waiter", "select ylock.follow_clock('', 0)"]
    {
        let raw = server.client().await;
        raw.batch_execute("set role app").await.unwrap();
        let error = raw.batch_execute(statement).await.unwrap_err();
        assert_eq!(error.code().map(|code| code.code()), Some("42501"), "{statement}: {error:?}");
    }
}

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn what_is_missing_is_said() {
    let server = OwnServer::start().await;
    server.execute("create role app login; create role stranger login").await;
    let refused = async |role: &str, mode| {
        let error = PostgresEngine::connect(&server.options_for(role).with_schema(mode)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        error.to_string()
    };
    let said = refused("app", SchemaMode::Create).await;
    assert!(said.contains("schema=check") && said.contains("cannot be made"), "{said}");
    let said = refused("app", SchemaMode::Check).await;
    let (_, statements) = said.split_once("runs:\n").expect("the statements");
    let (statements, _) = statements.rsplit_once(';').expect("their end");
    server.execute(statements).await;
    server.execute("grant usage on schema ylock to app").await;
    drop(engine_with(&server.options_for("app").with_schema(SchemaMode::Check)).await);
    let said = refused("stranger", SchemaMode::Check).await;
    assert!(said.contains("grant usage on schema ylock"), "{said}");
    let error = PostgresEngine::connect(&server.options_for("unknown")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
}

/// A role that may not call the functions is told so at once, and has nothing to undo: it would be
/// tried for a lease.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_role_that_may_not_write_does_not_keep_its_program() {
    const HOUR: Duration = Duration::from_secs(3_600);
    let server = OwnServer::start().await;
    drop(engine_with(&server.options()).await);
    server.execute("create role app login; grant usage on schema ylock to app").await;
    let options = server.options_for("app").with_schema(SchemaMode::Check).with_lease(HOUR);
    let lease = || Options::default().with_lease(HOUR);
    let (engine, holds) = (Arc::new(engine_with(&options).await), client_with(options).await);
    let guard = acquire(&holds).await;
    server.execute("revoke execute on all functions in schema ylock from public").await;
    let (before, ylock) = (engine.requests(), Ylock::from_arc(engine.clone()).with_options(lease()));
    let lock = ylock.lock("users", "bob");
    for error in [lock.write().now().await.err(), lock.write().await.err()] {
        let error = error.expect("it may not");
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        assert!(error.to_string().contains("permission denied"), "{error}");
    }
    within("it is closed", ylock.close()).await;
    assert_eq!(engine.requests() - before, 2, "nothing was to be undone");
    // One that holds a lock cannot give it back. The server frees it when its lease is over.
    within("it is closed", holds.close()).await;
    assert!(!guard.is_valid());
}
