//! What servers and connections do to locks. Each test has a server of its own, and breaks it.
#![allow(clippy::disallowed_methods, reason = "tests of real servers wait in real time")]

mod announced;
#[cfg(target_os = "linux")]
mod clock;
mod cluster;
#[cfg(feature = "redis-1")]
mod driver_api;
mod eviction;
mod examined;
mod held;
mod listing;
mod outages;
mod own_cluster;
mod own_sentinels;
mod own_server;
#[cfg(unix)]
mod paused;
mod prefixes;
mod proxy;
mod queue;
mod rights;
mod runtimes;
mod schedules;
mod sentinel;
mod stays;
#[cfg(feature = "tls")]
mod tls;
mod unsent;
mod versions;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use own_server::{Disk, OwnServer};
use tokio::task::JoinHandle;
use ylock_core::{ErrorKind, Guard, LossReason, Options, Ylock};
use ylock_engine_redis::{RedisEngine, RedisOptions};
use ylock_testkit::own_servers::{free_port, until, within};
use ylock_testkit::quiet_time;

const LEASE: Duration = Duration::from_secs(6);
/// So long that nothing gets free by its end.
const LONG: Duration = Duration::from_secs(600);
/// The pattern of the keys of all locks, and of the runs of jobs.
const LOCKS: &str = "ylock:{*}:*";

async fn client_with(options: RedisOptions) -> Ylock {
    let lease = options.lease();
    let engine = RedisEngine::connect(&options).await.expect("the server answers");
    Ylock::new(engine).with_options(Options::default().with_lease(lease))
}

async fn client(server: &OwnServer, lease: Duration) -> Ylock {
    // A server that is slow is not away.
    let request_timeout = (lease * 3 / 10).min(LEASE);
    client_with(server.options().with_lease(lease).with_request_timeout(request_timeout)).await
}

/// A lock that the replica has too; a new replica needs a moment to follow.
async fn replicated(ylock: &Ylock) -> Guard {
    within("a grant is replicated", async {
        loop {
            match ylock.locks("users").write("alice").await {
                Ok(guard) => return guard,
                Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
            }
        }
    })
    .await
}

async fn waiters(ylock: &Ylock) -> usize {
    ylock.inspect("users", "alice").await.map_or(0, |seen| seen.queue.len())
}

/// Begins to wait for the lock behind so many other waiters, and returns when the waiter has its place.
async fn joins(ylock: &Ylock, before: usize) -> JoinHandle<Guard> {
    let locks = ylock.locks("users");
    let waiting = tokio::spawn(async move { locks.write("alice").await.unwrap() });
    until("it waits", async || waiters(ylock).await == before + 1).await;
    waiting
}

async fn one_holds_and_another_waits(one: &Ylock, another: &Ylock) -> (Guard, JoinHandle<Guard>) {
    let guard = within("it gets in", one.locks("users").write("alice")).await.unwrap();
    (guard, joins(another, 0).await)
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_restart_without_data_is_told_and_tokens_grow() {
    let mut server = OwnServer::start(Disk::Nothing).await;
    let (one, two) = (client(&server, LEASE).await, client(&server, LEASE).await);
    let guard = one.locks("users").write("alice").await.unwrap();
    server.kill();
    server.start_again().await;
    let reason = within("the holder is told", guard.lost()).await;
    assert!(matches!(reason, LossReason::Gone | LossReason::Lapsed), "{reason:?}");
    let next = within("the next one gets in", two.locks("users").write("alice")).await.unwrap();
    assert!(next.token() > guard.token());
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_restart_with_an_append_only_file_keeps_locks_and_queue() {
    let mut server = OwnServer::start(Disk::AppendOnly).await;
    let (one, two) = (client(&server, LONG).await, client(&server, LONG).await);
    let (guard, waiting) = one_holds_and_another_waits(&one, &two).await;
    server.kill();
    server.start_again().await;
    until("the server is back", async || waiters(&one).await == 1).await;
    assert!(guard.is_valid() && !waiting.is_finished());
    let token = guard.token();
    assert!(within("given back", guard.unlock()).await.unwrap().is_released());
    assert!(within("the next one gets in", waiting).await.unwrap().token() > token);
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn nobody_notices_that_the_scripts_are_forgotten() {
    let server = OwnServer::start(Disk::Nothing).await;
    let (stop, rounds) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut workers = Vec::new();
    for _ in 0..4 {
        let ylock = client(&server, LONG).await;
        let (stop, rounds) = (Arc::clone(&stop), Arc::clone(&rounds));
        workers.push(tokio::spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                assert!(
                    ylock.locks("users").write("alice").await.unwrap().unlock().await.unwrap().is_released()
                );
                rounds.fetch_add(1, Ordering::Relaxed);
            }
        }));
    }
    for _ in 0..100 {
        server.command(&["SCRIPT", "FLUSH"]).await;
        let before = rounds.load(Ordering::Relaxed);
        until("work goes on", async || rounds.load(Ordering::Relaxed) > before + 8).await;
    }
    stop.store(true, Ordering::Relaxed);
    for worker in workers {
        within("the worker ends", worker).await.unwrap();
    }
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_killed_connection_costs_neither_a_hold_nor_a_place() {
    let server = OwnServer::start(Disk::Nothing).await;
    let (one, two) = (client(&server, LONG).await, client(&server, LONG).await);
    for kind in ["normal", "pubsub"] {
        let (guard, waiting) = one_holds_and_another_waits(&one, &two).await;
        server.command(&["CLIENT", "KILL", "TYPE", kind]).await;
        until("the connection is back", async || waiters(&one).await == 1).await;
        assert!(guard.is_valid() && !waiting.is_finished());
        assert!(within("given back", guard.unlock()).await.unwrap().is_released());
        assert!(within("the next one gets in", waiting).await.unwrap().unlock().await.unwrap().is_released());
    }
}

/// The message went nowhere: the waiter asks by itself, and finds that it was let in, or is let in then.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_lost_message_costs_a_second() {
    let server = OwnServer::start(Disk::Nothing).await;
    let (one, two) = (client(&server, LONG).await, client(&server, LONG).await);
    let (guard, waiting) = one_holds_and_another_waits(&one, &two).await;
    server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]).await;
    assert!(within("given back", guard.unlock()).await.unwrap().is_released());
    let since = quiet_time();
    drop(within("the next one gets in", waiting).await.unwrap());
    let took = quiet_time() - since;
    assert!(took < Duration::from_secs(5), "{took:?}");
}

/// A waiter asks while its turn comes: the answer can be faster than the message, which then finds that the waiter holds already.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_message_that_comes_after_the_answer_takes_nothing_away() {
    let server = OwnServer::start(Disk::Nothing).await;
    let ylock = client(&server, LEASE).await;
    let guard = within("it gets in", ylock.locks("users").write("alice")).await.unwrap();
    let keys: Vec<String> = server.ask(&["KEYS", "ylock:*:users:alice"]).await.unwrap();
    let hash: HashMap<String, String> = server.ask(&["HGETALL", &keys[0]]).await.unwrap();
    let id = hash.keys().find_map(|field| field.strip_prefix("h:")).unwrap();
    let token = &hash["t"];
    let channel = hash[&format!("o:{id}")].split(' ').nth(1).unwrap();
    let (channel, message) = (format!("ylock:{channel}"), format!("{id} {token} 0 {}", keys[0]));
    let heard: i64 = server.ask(&["PUBLISH", &channel, &message]).await.unwrap();
    assert_eq!(heard, 1, "the client hears it");
    // The grant has been renewed since, or its renewal was refused.
    tokio::time::sleep(LEASE).await;
    assert!(guard.is_valid());
    assert!(within("given back", guard.unlock()).await.unwrap().is_released());
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_pause_of_the_server_shorter_than_the_lease_loses_nothing() {
    let server = OwnServer::start(Disk::Nothing).await;
    let ylock = client(&server, LEASE).await;
    let guard = ylock.locks("users").write("alice").await.unwrap();
    server.command(&["CLIENT", "PAUSE", &(LEASE / 2).as_millis().to_string(), "ALL"]).await;
    tokio::time::sleep(LEASE * 7 / 6).await;
    assert!(guard.is_valid());
    assert!(within("given back", guard.unlock()).await.unwrap().is_released());
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_server_that_is_gone_is_told_within_a_lease() {
    let mut server = OwnServer::start(Disk::Nothing).await;
    let ylock = client(&server, LEASE).await;
    let guard = ylock.locks("users").write("alice").await.unwrap();
    server.kill();
    let waiting = ylock.locks("users");
    let error = within("the waiter is told", waiting.write("bob")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(within("the holder is told", guard.lost()).await, LossReason::Lapsed);
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_grant_that_is_not_replicated_is_given_back() {
    let server = OwnServer::start(Disk::Nothing).await;
    let mut replica =
        OwnServer::start_with(Disk::Nothing, &["--replicaof", "127.0.0.1", &server.port().to_string()]).await;
    // Long enough for a replica to say what it has: without being asked it does so once a second.
    let lease = Duration::from_secs(20);
    let ylock = client_with(server.options().with_lease(lease).with_min_replicas(1)).await;
    let locks = ylock.locks("users");
    // The replica needs a moment to follow.
    until("a grant is replicated", async || locks.write("alice").await.is_ok_and(|guard| guard.is_valid()))
        .await;
    replica.kill();
    let error = within("the caller is told", locks.write("alice")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("replicated"), "{error}");
    let other = client(&server, LEASE).await;
    assert!(other.locks("users").write("alice").now().await.unwrap().is_some(), "it was given back");
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_full_memory_loses_no_lock() {
    let server = OwnServer::start(Disk::Nothing).await;
    let ylock = client(&server, LEASE).await;
    let guard = ylock.locks("users").write("alice").await.unwrap();
    server.command(&["CONFIG", "SET", "maxmemory", "1"]).await;
    tokio::time::sleep(LEASE * 5 / 4).await;
    assert!(guard.is_valid());
    assert!(within("given back", guard.unlock()).await.unwrap().is_released());
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_replica_and_a_node_of_a_cluster_are_refused() {
    let server = OwnServer::start(Disk::Nothing).await;
    let replica =
        OwnServer::start_with(Disk::Nothing, &["--replicaof", "127.0.0.1", &server.port().to_string()]).await;
    let bus = free_port("127.0.0.1").to_string();
    let words = ["--cluster-enabled", "yes", "--cluster-port", &bus];
    let node = OwnServer::start_with(Disk::Nothing, &words).await;
    for (server, part) in [(replica, "is a replica"), (node, "part of a cluster")] {
        let error = RedisEngine::connect(&server.options()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        assert!(error.to_string().contains(part), "{error}");
    }
}

/// A server that comes back could not take so many connections at once.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn very_many_waiters_do_not_storm_a_server_that_is_gone() {
    let mut server = OwnServer::start(Disk::Nothing).await;
    let ylock = client(&server, LONG).await;
    server.kill();
    let nobody = tokio::net::TcpListener::bind(("127.0.0.1", server.port())).await.unwrap();
    let waiters: Vec<_> = (0..500)
        .map(|name| {
            let locks = ylock.locks("users");
            tokio::spawn(async move { locks.write(name.to_string()).await.map(drop) })
        })
        .collect();
    let (time, mut tried) = (Duration::from_secs(3), 0);
    let counting = async {
        while let Ok((stream, _)) = nobody.accept().await {
            drop(stream);
            tried += 1;
        }
    };
    assert!(tokio::time::timeout(time, counting).await.is_err());
    // One attempt every tenth of a second, and a few that were on their way.
    assert!((5..60).contains(&tried), "{tried} connections in {time:?}");
    for waiter in waiters {
        waiter.abort();
    }
}
