//! The command on a real cluster of Cassandra.
#![cfg(all(unix, feature = "cassandra"))]
#![allow(
    clippy::disallowed_methods,
    reason = "a test stands outside: it tells the time and starts processes"
)]

#[path = "../stores/mod.rs"]
mod stores;

use stores::{away, ill, variable, well};

/// Returns the URL of the cluster. A request may take as long as this lease allows: three nodes beside other suites pause.
fn url() -> String {
    url_of(&nodes())
}

fn url_of(nodes: &str) -> String {
    let replicas = if nodes.contains(',') { 3 } else { 1 };
    format!(
        "cassandra://{nodes}/ylock_command_test?schema=create&replication={replicas}&lease=4s&request_timeout=1200ms"
    )
}

fn nodes() -> String {
    variable("YLOCK_TEST_CASSANDRA")
}

#[test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
fn a_lock_goes_from_one_command_to_the_next() {
    well::a_lock_goes_from_one_command_to_the_next(&url());
}

#[test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
fn a_lock_that_is_revoked_stops_its_command() {
    well::a_lock_that_is_revoked_stops_its_command(&url());
}

#[test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
fn permits_and_periods_are_counted() {
    well::permits_and_periods_are_counted(&url());
}

#[test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
fn the_doctor_finds_it_well() {
    let parts = [
        "table: ylock_command_test.locks",
        "rules: expiry=observed, max_clock_skew=60s, token_ttl=604800s, protocol=queue",
        "consistency: quorum",
        "replicas: ",
        "without TLS",
    ];
    well::the_doctor_finds_it_well(&url(), &parts);
}

#[test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
fn the_doctor_names_the_node_that_is_down() {
    ill::one_server_of_several_that_is_down_is_named(&url_of(&format!("127.0.0.1:1,{}", nodes())));
}

#[test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
fn the_doctor_shows_the_schema_that_is_missing() {
    let url = format!("cassandra://{}/no_such_keyspace", nodes());
    let parts = [
        "there is no keyspace no_such_keyspace",
        "\n  CREATE KEYSPACE IF NOT EXISTS",
        "\n  CREATE TABLE IF NOT EXISTS",
    ];
    ill::a_configuration_that_is_wrong_is_explained(&url, &parts);
}

#[test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
fn the_doctor_explains_a_login_that_is_refused() {
    let (node, ca) = (variable("YLOCK_TEST_CASSANDRA_LOGIN"), variable("YLOCK_TEST_CASSANDRA_CA"));
    let url = format!("cassandra://cassandra:hunter2@{node}/locks?tls=on&tls_ca={ca}");
    ill::a_configuration_that_is_wrong_is_explained(&url, &["login failed for user \"cassandra\""]);
}

#[test]
fn a_store_that_is_away_is_told_from_a_lock_that_is_held() {
    away::a_store_that_is_away_is_told_from_a_lock_that_is_held(
        "cassandra://127.0.0.1:1/locks?connect_timeout=500ms",
    );
}
