//! What callers are told while the servers are away.

use std::time::Duration;

use ylock_testkit::an_outage_is_told_as_one;

use super::own_server::OwnServer;
use super::{client_with, options};

const REQUEST_TIMEOUT: Duration = Duration::from_millis(900);

#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn a_wait_for_a_server_that_was_killed_is_no_wait_for_a_lock() {
    let mut server = OwnServer::start().await;
    let ylock = client_with(options(vec![server.host()]).with_request_timeout(REQUEST_TIMEOUT)).await;
    server.kill();
    an_outage_is_told_as_one(&ylock, "users", REQUEST_TIMEOUT).await;
}

#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn a_wait_for_a_server_that_hangs_is_no_wait_for_a_lock() {
    let server = OwnServer::start().await;
    let ylock = client_with(options(vec![server.host()]).with_request_timeout(REQUEST_TIMEOUT)).await;
    server.freeze();
    an_outage_is_told_as_one(&ylock, "users", REQUEST_TIMEOUT).await;
}
