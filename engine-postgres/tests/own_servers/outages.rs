//! Servers that are killed, started again, or hang.

use std::time::Duration;

use ylock_core::engine::{AcquisitionId, Engine, Patience, Release, Request};
use ylock_core::url::{Host, Secret};
use ylock_core::{ClientName, ErrorKind, Key, LossReason, Mode, Owner};
use ylock_engine_postgres::{PostgresEngine, PostgresOptions};
use ylock_testkit::an_outage_is_told_as_one;
use ylock_testkit::own_servers::{Link, Proxy};

use super::own_server::{DATABASE, OwnServer, USER};
use super::{
    LEASE, LONG, acquire, client, client_with, engine_with, is_held, one_holds_and_another_waits, unlock,
    until, waiters, within,
};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(1);

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_server_that_was_killed_keeps_locks_and_queue() {
    let mut server = OwnServer::start().await;
    let (one, two) = (client(&server, LONG).await, client(&server, LONG).await);
    let (guard, waiting) = one_holds_and_another_waits(&one, &two).await;
    server.kill();
    server.start_again().await;
    until("the server is back", async || waiters(&one).await == 1).await;
    assert!(guard.is_valid() && !waiting.is_finished());
    let token = guard.token();
    unlock(guard).await;
    assert!(within("the next one gets in", waiting).await.unwrap().token() > token);
}

/// Also where the database says that commits need not reach the disk.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn what_was_granted_is_on_the_disk() {
    let mut server = OwnServer::start_with(&["synchronous_commit=off", "wal_writer_delay=10s"], &[]).await;
    let (one, two) = (client(&server, LONG).await, client(&server, LONG).await);
    for _ in 0..3 {
        let guard = acquire(&one).await;
        server.kill();
        server.start_again().await;
        until("the server is back", async || two.inspect("users", "alice").await.is_ok()).await;
        assert!(is_held(&two).await);
        unlock(guard).await;
    }
}

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_server_that_hangs_for_less_than_the_lease_loses_nothing() {
    let server = OwnServer::start().await;
    let connect = async || client_with(server.options().with_lease(LONG)).await;
    let (one, two) = (connect().await, connect().await);
    let (guard, waiting) = one_holds_and_another_waits(&one, &two).await;
    server.stop();
    // Longer than a request may take: so requests fail, and connections are made again.
    tokio::time::sleep(Duration::from_secs(5)).await;
    server.go_on();
    until("the server is back", async || waiters(&one).await == 1).await;
    assert!(guard.is_valid() && !waiting.is_finished());
    unlock(guard).await;
    unlock(within("the next one gets in", waiting).await.unwrap()).await;
}

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_server_that_is_gone_is_told_within_a_lease() {
    let mut server = OwnServer::start().await;
    let ylock = client(&server, LEASE).await;
    let guard = acquire(&ylock).await;
    server.kill();
    let waiting = ylock.locks("users");
    let error = within("the waiter is told", waiting.write("bob")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(within("the holder is told", guard.lost()).await, LossReason::Lapsed);
}

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_wait_for_a_server_that_was_killed_is_no_wait_for_a_lock() {
    let mut server = OwnServer::start().await;
    let ylock = client_with(server.options().with_request_timeout(REQUEST_TIMEOUT)).await;
    server.kill();
    an_outage_is_told_as_one(&ylock, "users", REQUEST_TIMEOUT).await;
}

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_wait_for_a_server_that_hangs_is_no_wait_for_a_lock() {
    let server = OwnServer::start().await;
    let ylock = client_with(server.options().with_request_timeout(REQUEST_TIMEOUT)).await;
    server.stop();
    an_outage_is_told_as_one(&ylock, "users", REQUEST_TIMEOUT).await;
    server.go_on();
}

/// The first request may have been on its way when the server was killed; later ones find no
/// connection.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn what_could_not_be_sent_is_not_to_be_undone() {
    let mut server = OwnServer::start().await;
    let engine = engine_with(&server.options()).await;
    server.kill();
    until("an acquisition is refused that leaves nothing to undo", async || leaves_nothing(&engine).await)
        .await;
}

/// The time of a request is over while its client still connects: the server takes the connection,
/// and says nothing.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn what_waited_for_a_connection_alone_is_not_to_be_undone() {
    let server = OwnServer::start().await;
    let proxy = Proxy::before(&[Host::new("127.0.0.1", server.port())]).await;
    let options = PostgresOptions::new("127.0.0.1", proxy.hosts()[0].port.unwrap(), DATABASE)
        .with_login(USER, Secret::new(""))
        .with_request_timeout(REQUEST_TIMEOUT)
        // Longer than the test goes on: no attempt to connect fails by itself.
        .with_connect_timeout(LONG * 20);
    let engine = engine_with(&options).await;
    proxy.set(Link::Keeps);
    assert!(server.end_connections(false).await > 0);
    // The first request may have been sent before the client knew that its connection has ended.
    until("an acquisition is refused that leaves nothing to undo", async || leaves_nothing(&engine).await)
        .await;
    assert!(proxy.kept() > 0, "it connects");
}

/// Returns whether an acquisition leaves nothing to undo on a server that is away.
async fn leaves_nothing(engine: &PostgresEngine) -> bool {
    let (key, id) = (Key::new("users", "alice").unwrap(), AcquisitionId::new(&*engine.environment()));
    let request = Request::new(key.clone(), id, Mode::Write, Owner::new(), ClientName::default(), LONG);
    engine.acquire(&request.with_patience(Patience::Try)).await.expect_err("it is away");
    // Of one that is in doubt this is an error, for as long as the server is away.
    engine.release(&key, id, None).await.is_ok_and(|answer| answer == Release::WasGone)
}
