//! Standbys: which are refused, and what is left when one takes over.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ylock_core::{ErrorKind, LossReason, Ylock};
use ylock_engine_postgres::options::Standby;
use ylock_engine_postgres::{PostgresEngine, PostgresOptions};
use ylock_testkit::own_servers::until;

use super::own_server::{OwnServer, USER};
use super::{
    LONG, acquire, client, client_with, engine_with, is_held, one_holds_and_another_waits, promises, told,
    unlock, within,
};

/// Options with both servers.
fn of_both(one: &OwnServer, two: &OwnServer) -> PostgresOptions {
    let hosts = [one, two].map(|server| ("127.0.0.1".to_owned(), server.port()));
    PostgresOptions::of_hosts(hosts, "postgres")
        .with_login(USER, ylock_core::url::Secret::new(""))
        .with_lease(LONG)
}

async fn waits_for_standby(server: &OwnServer) {
    server.execute("alter system set synchronous_standby_names = 'second'").await;
    server.execute("select pg_reload_conf()").await;
    let is_set = "select current_setting('synchronous_standby_names') = 'second' and exists
        (select from pg_stat_replication where sync_state = 'sync')";
    until("it waits for its standby", async || {
        server.client().await.query_one(is_set, &[]).await.is_ok_and(|row| row.get(0))
    })
    .await;
}

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn standbys_that_may_lack_writes_are_refused_unless_that_is_accepted() {
    let server = OwnServer::start().await;
    assert_eq!(promises(&engine_with(&server.options()).await), (false, true, true));
    let standby = server.standby("second").await;
    for options in [server.options(), of_both(&server, &standby)] {
        let error = PostgresEngine::connect(&options).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        assert!(error.to_string().contains("lost_writes_accepted"), "{error}");
        let accepting = engine_with(&options.with_standby(Standby::LostWritesAccepted)).await;
        assert_eq!(promises(&accepting), (false, false, false));
    }
    waits_for_standby(&server).await;
    assert_eq!(promises(&engine_with(&of_both(&standby, &server)).await), (false, true, true));
    let error = PostgresEngine::connect(&standby.options()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
}

/// Its slot is what the server knows of it. Also a role sees that which may see nothing of other sessions.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_standby_that_is_away_is_refused_as_one_that_follows() {
    let server = OwnServer::start().await;
    drop(engine_with(&server.options()).await);
    server.execute("create role app login; grant usage on schema ylock to app").await;
    server.execute("select pg_create_physical_replication_slot('second')").await;
    for role in [USER, "app"] {
        let options = server.options_for(role);
        let error = PostgresEngine::connect(&options).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        assert!(
            error.to_string().contains("second") && error.to_string().contains("lost_writes_accepted"),
            "{error}"
        );
        let accepting = engine_with(&options.with_standby(Standby::LostWritesAccepted)).await;
        assert_eq!(promises(&accepting), (false, false, false));
    }
    server.execute("select pg_drop_replication_slot('second')").await;
    assert_eq!(promises(&engine_with(&server.options()).await), (false, true, true));
}

/// Nor is what reads the log for backups, through a slot or not.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_program_that_keeps_the_log_is_no_standby() {
    let server = OwnServer::start().await;
    drop(engine_with(&server.options()).await);
    server.keeps_log("backup").await;
    server.execute("create role app login; grant usage on schema ylock to app").await;
    for role in [USER, "app"] {
        assert_eq!(promises(&engine_with(&server.options_for(role)).await), (false, true, true), "{role}");
    }
}

/// Most archives are for backups. What it may mean is told to those who look after the server.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn an_archive_is_no_standby_and_is_told() {
    let server = OwnServer::start_with(&["archive_mode=on", "archive_command=/bin/true"], &[]).await;
    let archives = async |ylock: &Ylock| {
        let seen = ylock.diagnose().await.unwrap();
        seen.findings.iter().filter(|risk| risk.what.contains("archive")).count()
    };
    let ylock = client(&server, LONG).await;
    let promised = ylock.guarantees();
    assert!(promised.fencing && promised.exclusive_after_failover);
    assert_eq!(archives(&ylock).await, 1);
    let accepting = client_with(server.options().with_standby(Standby::LostWritesAccepted)).await;
    assert_eq!(archives(&accepting).await, 0, "lost writes are accepted");
    let alone = OwnServer::start().await;
    assert_eq!(archives(&client(&alone, LONG).await).await, 0);
}

/// What `connect` would refuse then, an acquisition is refused for, until that is mended. What is held stays held.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_standby_that_comes_while_a_client_is_connected_is_refused() {
    let server = OwnServer::start().await;
    let ylock = client(&server, LONG).await;
    let accepting = server.options().with_lease(LONG).with_standby(Standby::LostWritesAccepted);
    let accepting = client_with(accepting).await;
    let guard = acquire(&ylock).await;
    let is_safe = |ylock: &Ylock| ylock.guarantees().fencing && ylock.guarantees().exclusive_after_failover;
    server.execute("select pg_create_physical_replication_slot('third')").await;
    until("the slot is noticed", async || !is_safe(&ylock)).await;
    let error = ylock.locks("users").write("bob").now().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert!(error.to_string().contains("third"), "{error}");
    drop(within("it is accepted", accepting.locks("users").write("bob")).await.unwrap());
    assert!(guard.is_valid());
    server.execute("select pg_drop_replication_slot('third')").await;
    until("it is mended", async || is_safe(&ylock)).await;
    unlock(within("it gets in", ylock.locks("users").write("carol")).await.unwrap()).await;
    let _standby = server.standby("second").await;
    until("the standby is noticed", async || !is_safe(&ylock)).await;
    waits_for_standby(&server).await;
    until("the server waits for it", async || is_safe(&ylock)).await;
    unlock(within("it gets in", ylock.locks("users").write("carol")).await.unwrap()).await;
    server.execute("alter system set synchronous_standby_names = ''; ").await;
    server.execute("select pg_reload_conf()").await;
    until("it does not wait any more", async || !is_safe(&ylock)).await;
    assert_eq!(ylock.locks("users").write("bob").now().await.unwrap_err().kind(), ErrorKind::Config);
    unlock(guard).await;
}

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_subscription_is_no_standby() {
    let server = OwnServer::start_with(&["wal_level=logical"], &[]).await;
    server.subscription().await;
    assert_eq!(promises(&engine_with(&server.options()).await), (false, true, true));
}

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_synchronous_standby_that_takes_over_has_every_grant() {
    let mut server = OwnServer::start().await;
    let standby = server.standby("second").await;
    waits_for_standby(&server).await;
    let options = of_both(&server, &standby);
    let (one, two) = (client_with(options.clone()).await, client_with(options).await);
    let guard = acquire(&one).await;
    server.kill();
    standby.promote().await;
    until("clients have found it", async || two.inspect("users", "alice").await.is_ok()).await;
    assert!(is_held(&two).await && guard.is_valid());
    let token = guard.token();
    unlock(guard).await;
    assert!(acquire(&two).await.token() > token);
}

/// A grant that the standby does not have is none: the holder could lose it when the standby takes over.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_commit_that_the_server_gives_up_waiting_for_is_not_believed() {
    let server = OwnServer::start().await;
    let mut standby = server.standby("second").await;
    waits_for_standby(&server).await;
    let ylock = client(&server, LONG).await;
    drop(acquire(&ylock).await);
    until("it is free", async || !is_held(&ylock).await).await;
    standby.kill();
    let trying = tokio::spawn(async move {
        let tried = ylock.locks("users").write("bob").now().await;
        (ylock, tried)
    });
    let cancel = "select count(pg_cancel_backend(pid)) from pg_stat_activity where wait_event = 'SyncRep'";
    until("the commit is given up", async || {
        server.client().await.query_one(cancel, &[]).await.unwrap().get::<_, i64>(0) > 0
    })
    .await;
    let (ylock, tried) = within("the caller is told", trying).await.unwrap();
    let error = tried.expect_err("the outcome is unknown");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    drop(ylock);
}

/// A connection whose commit waits for the standby does not end when its client goes, and the server has only so many.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_standby_that_is_away_costs_the_server_a_few_connections_of_a_client() {
    let server = OwnServer::start().await;
    let mut standby = server.standby("second").await;
    waits_for_standby(&server).await;
    let short = Duration::from_millis(500);
    let options = server.options().with_lease(LONG).with_request_timeout(short).with_connect_timeout(short);
    let ylock = client_with(options).await;
    unlock(acquire(&ylock).await).await;
    standby.kill();
    // Another one each time: behind the row that a commit keeps locked the server would answer.
    let number = AtomicU32::new(0);
    let try_next = async || {
        let name = number.fetch_add(1, Ordering::Relaxed).to_string();
        ylock.locks("users").write(name).now().await
    };
    until("no connection is opened any more", async || {
        let tried = try_next().await;
        tried.is_err_and(|error| error.to_string().contains("4 connections"))
    })
    .await;
    let count =
        "select count(*) from pg_stat_activity where application_name = 'ylock' and query like '%ylock%'";
    for _ in 0..3 {
        try_next().await.expect_err("the standby is away");
        let connections = server.client().await.query_one(count, &[]).await.unwrap().get::<_, i64>(0);
        // One more listens.
        assert!(connections <= 5, "{connections} connections");
    }
    server.execute("alter system set synchronous_standby_names = ''").await;
    server.execute("select pg_reload_conf()").await;
    until("it goes on", async || {
        ylock.locks("users").write("carol").now().await.is_ok_and(|held| held.is_some())
    })
    .await;
}

/// The server sends messages about a commit all the same when it has given up waiting for the standby: the waiter's grant could be lost when that one
/// takes over.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_waiter_believes_no_message_about_a_commit_that_the_standby_lacks() {
    let server = OwnServer::start().await;
    let standby = server.standby("second").await;
    waits_for_standby(&server).await;
    let clients = [client(&server, LONG).await, client(&server, LONG).await];
    believes_no_message(&server, standby, clients).await;
}

/// Nor one that was connected before there was a standby.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_client_that_was_there_before_the_standby_believes_no_message_either() {
    let server = OwnServer::start().await;
    let clients = [client(&server, LONG).await, client(&server, LONG).await];
    let standby = server.standby("second").await;
    let all = |fencing| clients.iter().all(|client| client.guarantees().fencing == fencing);
    until("the standby is noticed", async || all(false)).await;
    waits_for_standby(&server).await;
    until("the server waits for it", async || all(true)).await;
    believes_no_message(&server, standby, clients).await;
}

async fn believes_no_message(server: &OwnServer, mut standby: OwnServer, [one, two]: [Ylock; 2]) {
    let (guard, waiting) = one_holds_and_another_waits(&one, &two).await;
    until("the waiter can be told", async || told(server).await == 1).await;
    standby.kill();
    let leaving = tokio::spawn(guard.unlock());
    let cancel = "select count(pg_cancel_backend(pid)) from pg_stat_activity where wait_event = 'SyncRep' and query like '%release%'";
    until("the commit is given up", async || {
        server.client().await.query_one(cancel, &[]).await.unwrap().get::<_, i64>(0) > 0
    })
    .await;
    until("the waiter asks, and its question waits for the standby", async || {
        let waits = "select exists (select from pg_stat_activity where wait_event = 'SyncRep' and query like '%acquire%')";
        server.client().await.query_one(waits, &[]).await.unwrap().get::<_, bool>(0)
    })
    .await;
    assert!(!waiting.is_finished(), "no standby has its grant");
    server.execute("alter system set synchronous_standby_names = ''").await;
    server.execute("select pg_reload_conf()").await;
    drop(within("it gets in", waiting).await.unwrap());
    drop(leaving);
}

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_lock_that_the_standby_lacks_is_told_as_lost() {
    let mut server = OwnServer::start().await;
    let standby = server.standby("second").await;
    let options = of_both(&server, &standby).with_standby(Standby::LostWritesAccepted);
    let (one, two) = (client_with(options.clone()).await, client_with(options).await);
    drop(acquire(&two).await);
    until("the standby has the tables", async || {
        standby.client().await.query_one("select count(*) from ylock.lock", &[]).await.is_ok()
    })
    .await;
    // From here on the standby hears nothing.
    standby.execute("alter system set primary_conninfo = 'host=127.0.0.1 port=1'").await;
    standby.execute("select pg_reload_conf()").await;
    let follows = "select count(*) from pg_stat_replication";
    until("it does not follow any more", async || {
        server.client().await.query_one(follows, &[]).await.unwrap().get::<_, i64>(0) == 0
    })
    .await;
    let guard = within("it gets in", one.locks("users").write("bob")).await.unwrap();
    assert_eq!(guard.token(), None);
    server.kill();
    standby.promote().await;
    let reason = within("the holder is told", guard.lost()).await;
    assert!(matches!(reason, LossReason::Gone | LossReason::Lapsed), "{reason:?}");
    until("it is free", async || {
        two.locks("users").write("bob").now().await.is_ok_and(|guard| guard.is_some())
    })
    .await;
}
