//! What servers and connections do to locks. Each test has a server of its own, and breaks it.
#![allow(clippy::disallowed_methods, reason = "tests of real servers wait in real time")]

mod changed;
#[cfg(target_os = "linux")]
mod clock;
mod connections;
#[cfg(feature = "tokio-postgres-0_7")]
mod driver_api;
#[cfg(target_os = "linux")]
mod full;
mod late;
mod outages;
mod own_server;
mod paused;
mod pooler;
mod rights;
mod rows;
mod runtimes;
mod settings;
mod sql_locks;
mod standby;
#[cfg(feature = "tls")]
mod tls;
mod work;

use std::time::Duration;

use own_server::OwnServer;
use tokio::task::JoinHandle;
use ylock_core::engine::Engine;
use ylock_core::{Guard, Options, Ylock};
use ylock_engine_postgres::{PostgresEngine, PostgresOptions};
use ylock_testkit::answered;
use ylock_testkit::own_servers::{until, within};

/// For tests that are about renewals or the end of a lease.
const LEASE: Duration = Duration::from_secs(6);
/// Longer than a lease lasts that is not renewed.
const OUTLASTS: Duration = Duration::from_millis(7_500);
/// So long that nothing ends by its lease while a test does what it is about.
const LONG: Duration = Duration::from_secs(30);

async fn engine_with(options: &PostgresOptions) -> PostgresEngine {
    PostgresEngine::connect(options).await.expect("the server answers")
}

async fn client_with(options: PostgresOptions) -> Ylock {
    Ylock::new(engine_with(&options).await).with_options(Options::default().with_lease(options.lease()))
}

async fn client(server: &OwnServer, lease: Duration) -> Ylock {
    client_with(options(server, lease)).await
}

/// Options with this lease, and much time for a request: a server that is slow is not away.
fn options(server: &OwnServer, lease: Duration) -> PostgresOptions {
    server.options().with_lease(lease).with_request_timeout((lease * 3 / 10).min(LONG / 4))
}

async fn acquire(ylock: &Ylock) -> Guard {
    within("it gets in", ylock.locks("users").write("alice")).await.unwrap()
}

async fn unlock(guard: Guard) {
    assert!(within("given back", guard.unlock()).await.unwrap().is_released());
}

async fn is_held(ylock: &Ylock) -> bool {
    let of_users = ylock.locks("users");
    within("a try is answered", answered(|| of_users.write("alice").now())).await.unwrap().is_none()
}

async fn waiters(ylock: &Ylock) -> usize {
    ylock.inspect("users", "alice").await.map_or(0, |seen| seen.queue.len())
}

/// Begins to wait for the lock behind so many other waiters, and returns when the waiter has its place.
async fn joins(ylock: &Ylock, looks: &Ylock, before: usize) -> JoinHandle<Guard> {
    let locks = ylock.locks("users");
    let waiting = tokio::spawn(async move { locks.write("alice").await.unwrap() });
    until("it waits", async || waiters(looks).await == before + 1).await;
    waiting
}

async fn one_holds_and_another_waits(one: &Ylock, another: &Ylock) -> (Guard, JoinHandle<Guard>) {
    let guard = acquire(one).await;
    let waiting = joins(another, one, 0).await;
    (guard, waiting)
}

/// Returns how many waiters can be told.
async fn told(server: &OwnServer) -> i64 {
    let statement = "select count(*) from ylock.waiter where channel is not null";
    server.client().await.query_one(statement, &[]).await.unwrap().get(0)
}

/// Returns the channel on which the only waiter is told.
async fn channel(server: &OwnServer) -> String {
    let statement = "select 'ylock_' || to_hex(channel) from ylock.waiter";
    server.client().await.query_one(statement, &[]).await.unwrap().get(0)
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!("{name} is what tests need to start servers: run `cargo xtask test postgres`")
    })
}

fn promises(engine: &PostgresEngine) -> (bool, bool, bool) {
    let promised = engine.guarantees();
    (promised.durable, promised.fencing, promised.exclusive_after_failover)
}
