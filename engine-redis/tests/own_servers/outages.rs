//! What callers are told while the server is away.

use std::time::Duration;

use ylock_core::engine::{AcquisitionId, Engine, Patience, Release, Request};
use ylock_core::{ClientName, Key, Mode, Owner};
use ylock_engine_redis::RedisEngine;
use ylock_testkit::an_outage_is_told_as_one;
use ylock_testkit::own_servers::until;

use super::client_with;
use super::own_server::{Disk, OwnServer};

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
    let options = server.options();
    let engine = RedisEngine::connect(&options).await.unwrap();
    server.kill();
    let (key, environment) = (Key::new("users", "alice").unwrap(), engine.environment());
    until("an acquisition is refused that leaves nothing to undo", async || {
        let (id, name) = (AcquisitionId::new(&*environment), ClientName::default());
        let request = Request::new(key.clone(), id, Mode::Write, Owner::new(), name, options.lease());
        engine.acquire(&request.with_patience(Patience::Try)).await.expect_err("it is away");
        // Of one that is in doubt this is an error, for as long as the server is away.
        engine.release(&key, id, None).await.is_ok_and(|answer| answer == Release::WasGone)
    })
    .await;
}
