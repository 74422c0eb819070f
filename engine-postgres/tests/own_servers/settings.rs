//! Settings of the server that make it work otherwise.

use std::time::Duration;

use ylock_core::ErrorKind;
use ylock_engine_postgres::PostgresEngine;
use ylock_engine_postgres::functions::VERSION;
use ylock_engine_postgres::options::{Notify, SchemaMode};

use super::own_server::OwnServer;
use super::{
    LEASE, LONG, acquire, client, client_with, engine_with, is_held, one_holds_and_another_waits, promises,
    told, unlock, until, within,
};

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_database_whose_transactions_are_serializable_works_all_the_same() {
    let server = OwnServer::start().await;
    server.execute("alter database postgres set default_transaction_isolation = 'serializable'").await;
    server.execute("alter database postgres set lock_timeout = '1ms'").await;
    let (one, two) = (client(&server, LONG).await, client(&server, LONG).await);
    for _ in 0..20 {
        let (guard, waiting) = one_holds_and_another_waits(&one, &two).await;
        unlock(guard).await;
        unlock(within("the next one gets in", waiting).await.unwrap()).await;
    }
    // A function that is called otherwise refuses.
    let error = server.client().await.query("select ylock.sweep(1)", &[]).await.unwrap_err();
    assert_eq!(error.code().map(|code| code.code()), Some("YL001"), "{error:?}");
}

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_server_that_does_not_wait_for_its_disk_is_not_durable() {
    for (setting, durable) in [("fsync=off", false), ("fsync=on", true)] {
        let server = OwnServer::start_with(&[setting], &[]).await;
        assert_eq!(promises(&engine_with(&server.options()).await), (durable, true, true));
    }
}

/// Puts a function that does this in the place of the one that sends a message.
async fn replace_notify(server: &OwnServer, does: &str) {
    server
        .execute(&format!(
            "alter function pg_catalog.pg_notify(text, text) rename to pg_notify_as_it_was;
             create function pg_catalog.pg_notify(a text, b text) returns void language plpgsql as $$ begin {does}; end $$"
        ))
        .await;
}

/// A release that failed because a waiter cannot be told would keep the lock closed.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn waiters_ask_where_they_cannot_be_told() {
    let server = OwnServer::start().await;
    let (one, two) = (client(&server, LONG).await, client(&server, LONG).await);
    let (guard, waiting) = one_holds_and_another_waits(&one, &two).await;
    until("it can be told", async || told(&server).await == 1).await;
    replace_notify(&server, "raise exception 'no message today'").await;
    unlock(guard).await;
    unlock(within("the next one gets in", waiting).await.unwrap()).await;
}

/// A server warns in the session that sends a message when its queue of messages is half full, and at every change when its transaction numbers come
/// to their end: with the code of the warning about a standby. The answer is right.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_warning_costs_no_connection() {
    let server = OwnServer::start().await;
    let (one, two) = (client(&server, LONG).await, client(&server, LONG).await);
    let (guard, waiting) = one_holds_and_another_waits(&one, &two).await;
    until("it can be told", async || told(&server).await == 1).await;
    replace_notify(&server, "raise warning 'the queue is half full'; perform pg_notify_as_it_was(a, b)")
        .await;
    let sessions = async || -> Vec<i32> {
        // Without those that have asked this: the server may not have noticed yet that the last one has ended.
        let of_clients = "select pid from pg_stat_activity where backend_type = 'client backend' \
            and query not like '%pg_stat_activity%' and query like '%ylock%' order by pid";
        let rows = server.client().await.query(of_clients, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    };
    let before = sessions().await;
    unlock(guard).await;
    unlock(within("the next one gets in", waiting).await.unwrap()).await;
    assert_eq!(sessions().await, before, "a connection was made anew");
}

/// In a schema that there is already, with functions of another program.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn functions_of_other_programs_stay_what_they_are() {
    let server = OwnServer::start().await;
    server
        .execute(
            "create schema shop; grant usage on schema shop to public;
             create function shop.price() returns int language sql as 'select 7';
             create role customer login",
        )
        .await;
    drop(engine_with(&server.options().with_namespace("shop")).await);
    server.execute("set role customer; select shop.price()").await;
    let refused = server.client().await.batch_execute("set role customer; select shop.micros()").await;
    assert!(refused.is_err(), "what only functions call is for these");
}

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn clients_of_another_version_are_refused_by_name() {
    let server = OwnServer::start().await;
    drop(engine_with(&server.options()).await);
    server.execute("update ylock.layout set version = 99").await;
    let own = format!("version {VERSION}.");
    for mode in [SchemaMode::Create, SchemaMode::Check] {
        let error = PostgresEngine::connect(&server.options().with_schema(mode)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        for part in ["schema \"ylock\"", "version 99", &own, "side by side", "drop schema"] {
            assert!(error.to_string().contains(part), "{part}: {error}");
        }
    }
    let back = format!("update ylock.layout set version = {VERSION} where version = 99");
    assert_eq!(server.client().await.execute(&back, &[]).await.unwrap(), 1, "it is as it was");
    drop(engine_with(&server.options()).await);
}

/// A crash of the server would empty them, and locks that are held be granted once more.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn tables_that_an_operator_has_made_unlogged_are_refused_by_name() {
    let server = OwnServer::start().await;
    drop(engine_with(&server.options()).await);
    for table in ["waiter", "reader", "lock", "run", "layout"] {
        server.execute(&format!("alter table ylock.{table} set unlogged")).await;
        let error = PostgresEngine::connect(&server.options()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        assert!(error.to_string().contains(&format!("({table})")), "{error}");
        server.execute(&format!("alter table ylock.{table} set logged")).await;
    }
    drop(engine_with(&server.options()).await);
}

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn many_clients_that_come_first_at_once_make_the_tables_once() {
    let server = OwnServer::start().await;
    let mut coming = Vec::new();
    for _ in 0..12 {
        let options = server.options();
        coming.push(tokio::spawn(async move { PostgresEngine::connect(&options).await }));
    }
    for one in coming {
        within("it connects", one).await.unwrap().unwrap();
    }
}

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn namespaces_do_not_meet() {
    let server = OwnServer::start().await;
    let (one, other) =
        (client(&server, LEASE).await, client_with(server.options().with_namespace("shop")).await);
    let guard = acquire(&one).await;
    assert!(!is_held(&other).await && is_held(&one).await);
    unlock(guard).await;
}

/// While it is open no version of a row can be cleared.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn an_old_snapshot_stops_nothing() {
    let server = OwnServer::start().await;
    let ylock = client(&server, LONG).await;
    unlock(acquire(&ylock).await).await;
    let old = server.client().await;
    old.batch_execute("begin isolation level repeatable read; select count(*) from ylock.lock")
        .await
        .unwrap();
    for _ in 0..2_000 {
        unlock(acquire(&ylock).await).await;
    }
    old.batch_execute("commit").await.unwrap();
}

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn rows_that_are_not_used_any_more_are_swept() {
    let server = OwnServer::start().await;
    let poll = Duration::from_millis(20);
    let ylock =
        client_with(server.options().with_lease(LONG).with_notify(Notify::Off { poll, poll_longest: poll }))
            .await;
    let held = within("it gets in", ylock.locks("users").write("held")).await.unwrap();
    unlock(acquire(&ylock).await).await;
    // As if it had been two minutes ago.
    let minutes = "update ylock.lock set used = used - 120000000, token = token - 120000000; update ylock.layout set swept = 0";
    server.execute(minutes).await;
    let names = "select string_agg(encode(key, 'escape'), ' ') from ylock.lock";
    until("only what is held is left", async || {
        let row = server.client().await.query_one(names, &[]).await.unwrap();
        row.get::<_, Option<String>>(0)
            .is_some_and(|names| names.ends_with("held") && !names.contains("alice"))
    })
    .await;
    unlock(held).await;
}

/// Otherwise a question that is still under way would find a lock of which nothing is known.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_row_that_remembers_what_was_undone_stays_until_that_is_over() {
    let server = OwnServer::start().await;
    let ylock = client(&server, LONG).await;
    for name in ["undone", "free"] {
        unlock(within("it gets in", ylock.locks("users").write(name)).await.unwrap()).await;
    }
    let raw = server.client().await;
    let names = async || {
        // As if it had been two minutes ago.
        let old =
            "update ylock.lock set used = ylock.micros() - 120000000, token = ylock.micros() - 120000000";
        raw.batch_execute(old).await.unwrap();
        raw.batch_execute("update ylock.layout set swept = 0; select ylock.sweep(1000)").await.unwrap();
        let names = "select coalesce(string_agg(convert_from(substr(key, position('\\xff' in key) + 1), 'UTF8'), ' '), '') from ylock.lock";
        raw.query_one(names, &[]).await.unwrap().get::<_, String>(0)
    };
    let undone_until = async |time: &str| {
        let note = format!(
            "update ylock.lock set undone = jsonb_build_object(gen_random_uuid()::text, {time}) where position('undone'::bytea in key) > 0"
        );
        raw.batch_execute(&note).await.unwrap();
    };
    undone_until("ylock.micros() + 60000000").await;
    assert_eq!(names().await, "undone");
    undone_until("ylock.micros() - 1").await;
    assert_eq!(names().await, "");
}

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn the_server_tells_what_it_is_and_what_is_wrong_with_it() {
    let server = OwnServer::start().await;
    let ylock = client(&server, LONG).await;
    let seen = ylock.diagnose().await.unwrap();
    let told = &seen.servers[0];
    assert_eq!(
        (told.role.as_deref(), told.login.as_deref(), told.encrypted),
        (Some("primary"), Some("ylock"), Some(false))
    );
    assert!(
        told.clock.is_some_and(|clock| clock.apart() < Duration::from_secs(1)) && told.fault.is_none(),
        "{told:?}"
    );
    assert_eq!(seen.findings.len(), 1, "it does not wait for its disk: {seen:?}");
    let _standby = server.standby("second").await;
    assert_eq!(ylock.diagnose().await.unwrap().findings.len(), 2, "it does not wait for its standby");
}
