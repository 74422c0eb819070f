//! The cluster that `cargo xtask test` starts, as the tests see it.

#![allow(dead_code, reason = "each test binary uses another part of it")]

use std::time::Duration;

use ylock_core::{Options, Ylock};
use ylock_engine_cassandra::options::{Notify, Protocol, SchemaMode};
use ylock_engine_cassandra::{CassandraEngine, CassandraOptions};
use ylock_testkit::short_or_long;

/// The lease of most tests: long enough for a busy machine, short enough to wait for.
pub(crate) const LEASE: Duration = Duration::from_secs(4);

/// The longest that an answer takes where a dozen cases keep three nodes busy.
pub(crate) const TRIP: Duration = Duration::from_millis(500);

/// The longest pause between two looks of a waiter.
pub(crate) const NOTICE: Duration = Duration::from_millis(500);

/// Nearly as long as this lease allows: many tests ask the engine once, and three nodes beside other suites pause for longer than the fifth of a
/// lease that is the default.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(1_200);

/// The options that reach the cluster under test.
pub(crate) fn options() -> CassandraOptions {
    options_with(LEASE).with_request_timeout(REQUEST_TIMEOUT)
}

/// Those options with this lease.
pub(crate) fn options_with(lease: Duration) -> CassandraOptions {
    options_in("ylock_engine_test", lease)
}

fn options_in(keyspace: &str, lease: Duration) -> CassandraOptions {
    let hosts = std::env::var("YLOCK_TEST_CASSANDRA")
        .expect("YLOCK_TEST_CASSANDRA names the nodes: run `cargo xtask test cassandra`, which starts some");
    let options = CassandraOptions::new(keyspace).with_schema(SchemaMode::Create).with_lease(lease);
    hosts.split(',').fold(options, |options, host| options.with_host(host, 9042))
}

/// The options of a variant of the engine, which asks the whole suite once more. In a short run its rows have one replica each: what differs
/// from the engine proper is in the clients, and three nodes of one small machine would do three times the work for it. The engine proper, and a
/// long run, has three.
fn options_of_variant() -> CassandraOptions {
    let (keyspace, replicas) = short_or_long(("ylock_engine_test_variants", 1), ("ylock_engine_test", 3));
    options_in(keyspace, LEASE).with_request_timeout(REQUEST_TIMEOUT).with_replication(replicas)
}

/// A new client's engine.
pub(crate) async fn engine() -> CassandraEngine {
    CassandraEngine::connect(&options()).await.expect("the cluster under test answers")
}

/// A new client's engine whose waiters look by themselves.
pub(crate) async fn without_hints() -> CassandraEngine {
    let options = options_of_variant().with_notify(Notify::Off);
    CassandraEngine::connect(&options).await.expect("the cluster under test answers")
}

/// A new client's engine that runs the old algorithm, on a table of its own.
pub(crate) async fn shadow_rows() -> CassandraEngine {
    let options = options_of_variant().with_table("shadow_rows").with_protocol(Protocol::ShadowRows);
    CassandraEngine::connect(&options).await.expect("the cluster under test answers")
}

/// A new client.
pub(crate) async fn client() -> Ylock {
    over(engine().await)
}

/// A new client with this lease.
pub(crate) async fn client_with(lease: Duration) -> Ylock {
    client_by(lease, &options_with(lease)).await
}

/// A new client with this lease and these options.
pub(crate) async fn client_by(lease: Duration, options: &CassandraOptions) -> Ylock {
    let engine = CassandraEngine::connect(options).await.expect("the cluster under test answers");
    Ylock::new(engine).with_options(Options::default().with_lease(lease))
}

/// A client with the lease of the tests.
pub(crate) fn over(engine: CassandraEngine) -> Ylock {
    Ylock::new(engine).with_options(Options::default().with_lease(LEASE))
}

/// A group that no other test, and no earlier run, has used.
pub(crate) fn group() -> String {
    format!("test-{}", ylock_core::Owner::new())
}
