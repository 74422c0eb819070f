//! The command on a real ZooKeeper.
#![cfg(all(unix, feature = "zookeeper"))]
#![allow(
    clippy::disallowed_methods,
    reason = "a test stands outside: it tells the time and starts processes"
)]

#[path = "../stores/mod.rs"]
mod stores;

use stores::away::{self, Link};
use stores::{ill, variable, well};

/// Returns the URL of the server.
fn url() -> String {
    url_of(&server())
}

fn url_of(server: &str) -> String {
    format!("zookeeper://{server}/ylock-command?lease=6s")
}

/// Returns the URL of servers of which some are away, to be missed soon.
fn impatient_url_of(servers: &str) -> String {
    url_of(servers) + "&connect_timeout=2s"
}

fn server() -> String {
    variable("YLOCK_TEST_ZOOKEEPER")
}

#[test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
fn a_lock_goes_from_one_command_to_the_next() {
    well::a_lock_goes_from_one_command_to_the_next(&url());
}

#[test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
fn a_lock_that_is_revoked_stops_its_command() {
    well::a_lock_that_is_revoked_stops_its_command(&url());
}

#[test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
fn permits_and_periods_are_counted() {
    well::permits_and_periods_are_counted(&url());
}

#[test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
fn the_doctor_finds_it_well() {
    well::the_doctor_finds_it_well(
        &url(),
        &["standalone", "without TLS", "locks below: /ylock-command", "session: "],
    );
}

#[test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
fn the_doctor_names_the_server_that_is_down() {
    ill::one_server_of_several_that_is_down_is_named(&impatient_url_of(&format!("127.0.0.1:1,{}", server())));
}

#[test]
fn a_store_that_is_away_is_told_from_a_lock_that_is_held() {
    away::a_store_that_is_away_is_told_from_a_lock_that_is_held(
        "zookeeper://127.0.0.1:1?connect_timeout=500ms",
    );
}

#[test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
fn a_command_is_stopped_when_the_store_goes_away_and_the_next_one_waits_until_it_is_back() {
    let link = Link::before(&server());
    let url = impatient_url_of(&link.address());
    away::a_command_is_stopped_when_the_store_goes_away_and_the_next_one_waits_until_it_is_back(&link, &url);
}
