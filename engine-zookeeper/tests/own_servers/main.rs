//! What servers, lines and administrators do to locks. Each test has servers of its own, and breaks them.
#![allow(clippy::disallowed_methods, reason = "tests of real servers wait in real time")]

mod announced;
mod chaos;
#[cfg(target_os = "linux")]
mod clock;
#[cfg(feature = "zookeeper-client-0-11")]
mod driver_api;
mod ensemble;
mod grants;
mod heartbeats;
mod idle;
mod late;
mod lines;
mod outages;
mod own_server;
mod paused;
mod places;
mod renamed;
mod renewals;
mod revoked;
mod runtimes;
#[path = "../server/mod.rs"]
mod server;
mod stored;
mod thief;
#[cfg(feature = "tls")]
mod tls;
mod versions;

use std::time::Duration;

use tokio::task::JoinHandle;
use ylock_core::url::Host;
use ylock_core::{ErrorKind, Guard, Options, Ylock};
use ylock_engine_zookeeper::{ZookeeperEngine, ZookeeperOptions};
use ylock_testkit::own_servers::{until, within};

/// The lease of most tests, with the sessions of 3.6 s that go with it.
const LEASE: Duration = Duration::from_secs(3);
const SESSION: Duration = Duration::from_millis(3_600);

/// So long that nothing gets free by its end: about the longest for which servers keep a session by default.
const LONG: Duration = Duration::from_secs(50);

/// The node of the lock of most tests.
const LOCK: &str = "/ylock/24/users:alice";

/// Each session watches the node of the token floor.
const FLOOR_WATCH: u64 = 1;

fn options(hosts: Vec<Host>) -> ZookeeperOptions {
    ZookeeperOptions::new(hosts).with_lease(LEASE)
}

async fn client_with(options: ZookeeperOptions) -> Ylock {
    let lease = options.lease();
    let engine = ZookeeperEngine::connect(&options).await.expect("the server answers");
    Ylock::new(engine).with_options(Options::default().with_lease(lease))
}

async fn client(hosts: Vec<Host>) -> Ylock {
    client_with(options(hosts)).await
}

async fn waiters(ylock: &Ylock) -> usize {
    ylock.inspect("users", "alice").await.map_or(0, |seen| seen.queue.len())
}

/// Waits for the lock in a task. Returns when the queue shows it.
async fn queue_up(ylock: &Ylock, seen_by: &Ylock) -> JoinHandle<Guard> {
    let before = waiters(seen_by).await;
    let locks = ylock.locks("users");
    let waiting = tokio::spawn(async move { locks.write("alice").await.unwrap() });
    until("one more waits", async || waiters(seen_by).await > before).await;
    waiting
}

/// As [`queue_up`], by a client whose line was cut: as long as its last release is not confirmed, it is told that the store does not answer.
async fn queue_up_again(ylock: &Ylock, seen_by: &Ylock) -> JoinHandle<Guard> {
    let before = waiters(seen_by).await;
    let locks = ylock.locks("users");
    let waiting = tokio::spawn(async move {
        loop {
            match locks.write("alice").await {
                Err(error) if error.kind() == ErrorKind::Unavailable => {}
                answer => break answer.unwrap(),
            }
        }
    });
    until("one more waits", async || waiters(seen_by).await > before).await;
    waiting
}

/// The paths of all contenders of one lock.
async fn contenders(hosts: &[Host], lock: &str) -> Vec<String> {
    server::raw(hosts).await.list_children(lock).await.unwrap_or_default()
}
