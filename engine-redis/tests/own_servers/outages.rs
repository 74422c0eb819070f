//! What callers are told while the server is away.

use std::time::Duration;

use ylock_core::engine::{AcquisitionId, Engine, Patience, Release, Request};
use ylock_core::url::Host;
use ylock_core::{ClientName, Key, Mode, Owner};
use ylock_engine_redis::{RedisEngine, RedisOptions};
use ylock_testkit::an_outage_is_told_as_one;
use ylock_testkit::own_servers::until;

use super::own_server::{Disk, OwnServer};
use super::proxy::{Link, Proxy};
use super::{LONG, client_with};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(1);

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_wait_for_a_server_that_was_killed_is_no_wait_for_a_lock() {
    let mut server = OwnServer::start(Disk::Nothing).await;
    let ylock = client_with(server.options().with_request_timeout(REQUEST_TIMEOUT)).await;
    server.kill();
    an_outage_is_told_as_one(&ylock, "users", REQUEST_TIMEOUT).await;
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_wait_for_a_server_that_hangs_is_no_wait_for_a_lock() {
    let server = OwnServer::start(Disk::Nothing).await;
    let ylock = client_with(server.options().with_request_timeout(REQUEST_TIMEOUT)).await;
    server.signal("STOP");
    an_outage_is_told_as_one(&ylock, "users", REQUEST_TIMEOUT).await;
}

/// The first request may have been on its way when the server was killed; later ones find no
/// connection.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn what_could_not_be_sent_is_not_to_be_undone() {
    let mut server = OwnServer::start(Disk::Nothing).await;
    let engine = RedisEngine::connect(&server.options()).await.unwrap();
    server.kill();
    until("an acquisition is refused that leaves nothing to undo", async || leaves_nothing(&engine).await)
        .await;
}

/// The time of a request is over while its client still connects: the server takes the connection,
/// and says nothing.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn what_waited_for_a_connection_alone_is_not_to_be_undone() {
    let server = OwnServer::start(Disk::Nothing).await;
    let proxy = Proxy::before(&[Host::new("127.0.0.1", server.port())]).await;
    let options = RedisOptions::new("127.0.0.1", proxy.hosts()[0].port.unwrap());
    let options = options.with_request_timeout(REQUEST_TIMEOUT).with_connect_timeout(LONG);
    let engine = RedisEngine::connect(&options).await.unwrap();
    proxy.set(Link::Full);
    server.command(&["CLIENT", "KILL", "TYPE", "normal"]).await;
    // The first request may have been sent before the client knew that its connection has ended.
    until("an acquisition is refused that leaves nothing to undo", async || leaves_nothing(&engine).await)
        .await;
    assert!(proxy.turned_away() > 0, "it connects");
}

/// Returns whether an acquisition leaves nothing to undo on a server that is away.
async fn leaves_nothing(engine: &RedisEngine) -> bool {
    let (key, id) = (Key::new("users", "alice").unwrap(), AcquisitionId::new(&*engine.environment()));
    let request = Request::new(key.clone(), id, Mode::Write, Owner::new(), ClientName::default(), LONG);
    engine.acquire(&request.with_patience(Patience::Try)).await.expect_err("it is away");
    // Of one that is in doubt this is an error, for as long as the server is away.
    engine.release(&key, id, None).await.is_ok_and(|answer| answer == Release::WasGone)
}
