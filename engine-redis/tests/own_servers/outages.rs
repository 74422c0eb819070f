//! What callers are told while the server is away.

use std::time::Duration;

use ylock_testkit::an_outage_is_told_as_one;

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
