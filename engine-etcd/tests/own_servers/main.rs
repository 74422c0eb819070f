//! What servers, lines and administrators do to locks. Each test has servers of its own, and breaks them.
#![allow(clippy::disallowed_methods, reason = "tests of real servers wait in real time")]

mod by_hand;
mod leaders;
mod learners;
mod lines;
mod logins;
mod own_cluster;
mod owners;
mod paused;
#[path = "../server/mod.rs"]
mod server;
mod space;
#[cfg(feature = "tls")]
mod tls;
mod versions;

use std::time::Duration;

use tokio::task::JoinHandle;
use ylock_core::url::Host;
use ylock_core::{Guard, Options, Ylock};
use ylock_engine_etcd::{EtcdEngine, EtcdOptions};
use ylock_testkit::own_servers::{until, within};

/// The lease of most tests. An election takes one to two seconds.
const LEASE: Duration = Duration::from_secs(6);

fn options(hosts: Vec<Host>) -> EtcdOptions {
    EtcdOptions::new(hosts).with_lease(LEASE)
}

async fn client(hosts: Vec<Host>) -> Ylock {
    let engine = EtcdEngine::connect(&options(hosts)).await.expect("the servers answer");
    Ylock::new(engine).with_options(Options::default().with_lease(LEASE))
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

/// Returns the guard of one that waits.
async fn granted(waiting: JoinHandle<Guard>) -> Guard {
    within("the next one gets in", waiting).await.unwrap()
}
