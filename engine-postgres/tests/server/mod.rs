//! The server that `cargo xtask test` starts, as the tests see it.

#![allow(dead_code, reason = "each test binary uses another part of it")]
#![allow(
    clippy::disallowed_methods,
    reason = "the driver of a connection without ylock is a task of the test"
)]

use std::time::Duration;

use tokio_postgres::{Client, NoTls};
use ylock_core::Options;
use ylock_core::url::EngineUrl;
use ylock_engine_postgres::options::Notify;
use ylock_engine_postgres::{PostgresEngine, PostgresOptions};

/// The lease of most tests: long enough for a busy machine, short enough to wait for.
pub(crate) const LEASE: Duration = Duration::from_secs(2);

/// Returns the options that reach it.
pub(crate) fn options() -> PostgresOptions {
    let url = EngineUrl::parse(&format!("postgres://{}", address())).expect("an address");
    PostgresOptions::from_url(&url, &Options::default()).expect("options").with_lease(LEASE)
}

/// A new client's engine.
pub(crate) async fn engine(notify: Notify) -> PostgresEngine {
    PostgresEngine::connect(&options().with_notify(notify)).await.expect("the server under test answers")
}

/// A connection without ylock.
pub(crate) async fn raw() -> Client {
    let address = format!("postgres://{}", address());
    let (client, connection) = tokio_postgres::connect(&address, NoTls).await.expect("the server answers");
    tokio::spawn(connection);
    client
}

/// Returns what is left of the locks of a group. Rows that are free stay for a minute on purpose, and so do the marks of acquisitions that were
/// undone while a request of theirs was on its way.
pub(crate) async fn left_behind(group: &str) -> usize {
    let count = "select (select count(*) from ylock.lock where id is not null and position($1 in key) = 1)
        + (select count(*) from ylock.reader where position($1 in key) = 1)
        + (select count(*) from ylock.waiter where position($1 in key) = 1)";
    let group = [group.as_bytes(), &[0xff]].concat();
    let row = raw().await.query_one(count, &[&group]).await.expect("what is left");
    usize::try_from(row.get::<_, i64>(0)).expect("a count")
}

fn address() -> String {
    variable("YLOCK_TEST_POSTGRES")
}

pub(crate) fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!("{name} names the server: run `cargo xtask test postgres`, which starts it")
    })
}
