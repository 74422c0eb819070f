//! The command on a real Redis.
#![cfg(all(unix, feature = "redis"))]
#![allow(
    clippy::disallowed_methods,
    reason = "a test stands outside: it tells the time and starts processes"
)]

#[path = "../stores/mod.rs"]
mod stores;

use std::io::{Read, Write};
use std::net::TcpStream;

use stores::away::{self, Link};
use stores::support::Place;
use stores::{ill, signals, variable, well};

/// Returns the URL of the server.
fn url() -> String {
    url_of(&server())
}

fn url_of(server: &str) -> String {
    format!("redis://{server}/0?lease=6s")
}

fn server() -> String {
    variable("YLOCK_TEST_REDIS")
}

#[test]
#[ignore = "needs redis: run `cargo xtask test`"]
fn a_lock_goes_from_one_command_to_the_next() {
    well::a_lock_goes_from_one_command_to_the_next(&url());
}

#[test]
#[ignore = "needs redis: run `cargo xtask test`"]
fn a_lock_that_is_revoked_stops_its_command() {
    well::a_lock_that_is_revoked_stops_its_command(&url());
}

#[test]
#[ignore = "needs redis: run `cargo xtask test`"]
fn permits_and_periods_are_counted() {
    well::permits_and_periods_are_counted(&url());
}

#[test]
#[ignore = "needs redis: run `cargo xtask test`"]
fn the_doctor_finds_it_well() {
    well::the_doctor_finds_it_well(
        &url(),
        &["master with ", "logged in as \"default\"", "without TLS", "persistence: "],
    );
}

#[test]
#[ignore = "needs redis: run `cargo xtask test`"]
fn the_doctor_names_the_server_of_a_cluster_that_is_down() {
    let servers = variable("YLOCK_TEST_REDIS_CLUSTER");
    ill::one_server_of_several_that_is_down_is_named(&format!(
        "redis+cluster://127.0.0.1:1,{servers}?connect_timeout=2s"
    ));
}

#[test]
#[ignore = "needs redis: run `cargo xtask test`"]
fn the_doctor_explains_a_login_that_is_refused() {
    let url = format!("redis://nobody:hunter2@{}/0", server());
    ill::a_configuration_that_is_wrong_is_explained(
        &url,
        &["the login was refused: look at the user and the password"],
    );
}

/// With a lease that outlasts every test: nothing is to be undone, so the command does not wait for
/// the end of it.
#[test]
#[ignore = "needs redis: run `cargo xtask test`"]
fn a_command_of_a_user_that_may_not_write_ends_at_once() {
    let (server, user) = (server(), format!("reader-{}", std::process::id()));
    let tell = |words: &str| {
        let mut stream = TcpStream::connect(&server).unwrap();
        stream.write_all(format!("{words}\r\nQUIT\r\n").as_bytes()).unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        assert!(said.starts_with(['+', ':']), "{words}: {said}");
    };
    tell(&format!("ACL SETUSER {user} on >hunter2 ~* &* +@all"));
    let place = Place::on(&format!("redis://{user}:hunter2@{server}/0?lease=1h"));
    assert_eq!(place.output(&["run", "-n", "users/alice", "--", "true"]).code, Some(0));
    tell(&format!("ACL SETUSER {user} -@write"));
    let refused = place.output(&["run", "-n", "users/alice", "--", "touch", "never"]);
    tell(&format!("ACL DELUSER {user}"));
    assert_eq!(refused.code, Some(64), "{refused:?}");
    assert!(refused.stderr.contains("may not do this") && !place.has("never"), "{refused:?}");
}

#[test]
fn a_store_that_is_away_is_told_from_a_lock_that_is_held() {
    away::a_store_that_is_away_is_told_from_a_lock_that_is_held(
        "redis://127.0.0.1:1/0?connect_timeout=500ms",
    );
}

#[test]
#[ignore = "needs redis: run `cargo xtask test`"]
fn a_command_is_stopped_when_the_store_goes_away_and_the_next_one_waits_until_it_is_back() {
    let link = Link::before(&server());
    let url = url_of(&link.address());
    away::a_command_is_stopped_when_the_store_goes_away_and_the_next_one_waits_until_it_is_back(&link, &url);
}

#[test]
#[ignore = "needs redis: run `cargo xtask test`"]
fn a_second_signal_ends_the_release() {
    signals::a_second_signal_ends_the_release(&server());
}

#[test]
#[ignore = "needs redis: run `cargo xtask test`"]
fn a_first_signal_bounds_the_release() {
    signals::a_first_signal_bounds_the_release(&server());
}

#[test]
#[ignore = "needs redis: run `cargo xtask test`"]
fn a_second_signal_ends_a_command_that_goes_on_while_the_store_is_away() {
    signals::a_second_signal_ends_a_command_that_goes_on_while_the_store_is_away(&server());
}

#[test]
#[ignore = "needs redis: run `cargo xtask test`"]
fn signals_end_a_wait_while_the_store_is_away() {
    signals::signals_end_a_wait_while_the_store_is_away(&server());
}

#[test]
fn a_signal_ends_the_wait_for_a_connection() {
    signals::a_signal_ends_the_wait_for_a_connection();
}
