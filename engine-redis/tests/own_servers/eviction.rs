//! Servers that throw away keys when their memory is full, locks among them.

use std::time::Duration;

use tracing::Level;
use ylock_core::engine::{Engine, Holding, LossReason, Release, Renewal};
use ylock_core::{ClientName, Error, ErrorKind, JobOutcome, JobRun, Key, Mode, Period};
use ylock_engine_redis::RedisEngine;
use ylock_engine_redis::options::Eviction;
use ylock_testkit::Log;

use super::own_cluster::OwnCluster;
use super::own_sentinels::OwnSentinels;
use super::own_server::{Disk, OwnServer};
use super::schedules::{acquire, engine, request};
use super::{LOCKS, LONG, client, client_with, replicated, until, within};

/// Makes a server throw away all that it has, and all that comes, before each command.
async fn throw_away_all(server: &OwnServer, policy: &str) {
    server.command(&["CONFIG", "SET", "maxmemory-policy", policy]).await;
    server.command(&["CONFIG", "SET", "maxmemory", "1"]).await;
    let left = async || server.ask::<Vec<String>>(&["KEYS", LOCKS]).await.unwrap();
    until("the locks are thrown away", async || left().await.is_empty()).await;
}

/// Fails unless the error says which server it is, what it does, and what is to be done.
fn is_about(error: &Error, server: &OwnServer, policy: &str) {
    assert_eq!(error.kind(), ErrorKind::Config, "{error:#}");
    let address = format!("127.0.0.1:{}", server.port());
    for part in [&address, policy, "maxmemory-policy", "noeviction", "eviction=lost_locks_accepted"] {
        assert!(error.to_string().contains(part), "{part}: {error:#}");
    }
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_server_that_may_throw_away_locks_is_refused() {
    for policy in ["allkeys-lru", "allkeys-random", "volatile-lfu", "volatile-ttl"] {
        let server =
            OwnServer::start_with(Disk::Nothing, &["--maxmemory", "100mb", "--maxmemory-policy", policy])
                .await;
        let error = RedisEngine::connect(&server.options()).await.expect_err(policy);
        is_about(&error, &server, policy);
    }
    // Without a limit, and without a policy, nothing is thrown away.
    for (limit, policy) in [("0", "allkeys-lru"), ("100mb", "noeviction")] {
        let more = ["--maxmemory", limit, "--maxmemory-policy", policy];
        let server = OwnServer::start_with(Disk::Nothing, &more).await;
        RedisEngine::connect(&server.options()).await.unwrap();
    }
}

/// The clients find out in the script that finds no lock: no look that is a moment old could be relied on.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_lock_that_was_thrown_away_is_not_granted_again() {
    for policy in ["allkeys-lru", "volatile-ttl"] {
        let server = OwnServer::start(Disk::Nothing).await;
        let (one, two) = (client(&server, LONG).await, client(&server, LONG).await);
        let guard = one.locks("users").write("alice").await.unwrap();
        throw_away_all(&server, policy).await;
        match two.locks("users").write("alice").now().await {
            Err(error) => is_about(&error, &server, policy),
            Ok(second) => panic!("{policy}: first valid {}, second {second:?}", guard.is_valid()),
        }
        let error = within("the waiter is told", two.locks("users").write("alice")).await.unwrap_err();
        is_about(&error, &server, policy);
    }
}

/// A release brings the next waiter of its client along. Other readers may still rely on the lock that was thrown away.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_release_lets_no_waiter_into_a_lock_that_was_thrown_away() {
    let server = OwnServer::start(Disk::Nothing).await;
    let (one, two) = (engine(&server, LONG).await, engine(&server, LONG).await);
    let readers = [request(&one, Mode::Read, LONG), request(&two, Mode::Read, LONG)];
    acquire(&one, &readers[0]).await;
    acquire(&two, &readers[1]).await;
    throw_away_all(&server, "allkeys-lru").await;
    // What the release writes shall stay to be seen.
    server.command(&["CONFIG", "SET", "maxmemory", "1gb"]).await;
    let writer = request(&one, Mode::Write, LONG);
    let released = one.release(&readers[0].key, readers[0].id, Some(&writer)).await.unwrap();
    assert_eq!(released, Release::WasGone);
    let seen = one.inspect(&writer.key).await.unwrap();
    assert!(seen.holders.is_empty() && seen.queue.is_empty(), "{seen:?}");
    is_about(&one.acquire(&writer).await.unwrap_err(), &server, "allkeys-lru");
}

/// And they give back what they have.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn holders_go_on_while_their_locks_are_there_and_are_told_once_they_are_not() {
    let server = OwnServer::start(Disk::Nothing).await;
    let engine = engine(&server, LONG).await;
    let first = request(&engine, Mode::Write, LONG);
    let grant = acquire(&engine, &first).await;
    server.command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]).await;
    server.command(&["CONFIG", "SET", "maxmemory", "1gb"]).await;
    let holding = [Holding::new(grant, None)];
    let renewed = engine.renew(&holding).await.pop().unwrap().unwrap();
    assert!(matches!(renewed, Renewal::Renewed { .. }), "{renewed:?}");
    throw_away_all(&server, "allkeys-lru").await;
    let renewed = engine.renew(&holding).await.pop().unwrap().unwrap();
    assert!(matches!(renewed, Renewal::Lost(LossReason::Gone)), "{renewed:?}");
    assert_eq!(engine.release(&first.key, first.id, None).await.unwrap(), Release::WasGone);
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_period_is_not_run_again_because_its_run_was_thrown_away() {
    let server = OwnServer::start(Disk::Nothing).await;
    let engine = engine(&server, LONG).await;
    let key = Key::new("users", "alice").unwrap();
    let run = |period| JobRun::begun(period, None, 0, ClientName::default());
    assert!(engine.store_run(&key, &run(7), LONG).await.unwrap());
    throw_away_all(&server, "allkeys-lru").await;
    assert_eq!(engine.last_run(&key).await.unwrap(), None);
    is_about(&engine.store_run(&key, &run(7), LONG).await.unwrap_err(), &server, "allkeys-lru");
    // Work that was begun before is told to be done.
    assert!(engine.store_run(&key, &run(7).done(), LONG).await.unwrap());
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn what_is_accepted_is_not_promised() {
    let more = ["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"];
    let (evicts, keeps) =
        (OwnServer::start_with(Disk::Nothing, &more).await, OwnServer::start(Disk::Nothing).await);
    assert!(engine(&keeps, LONG).await.guarantees().exclusive);
    for server in [&evicts, &keeps] {
        let ylock = client_with(server.options().with_eviction(Eviction::LostLocksAccepted)).await;
        let promised = ylock.guarantees();
        assert!(!promised.exclusive && !promised.exclusive_after_failover, "{promised:?}");
        assert!(promised.fencing, "the token protects the data then");
        // Free locks of names that the server knows nothing of, and a job that never ran.
        drop(ylock.locks("users").write("alice").await.unwrap());
        let hour = Period::of(Duration::from_secs(3_600));
        let ran = ylock.locks("jobs").once_per("hourly", hour, |_| async {}).await.unwrap();
        assert!(matches!(ran, JobOutcome::Ran(_)), "{ran:?}");
    }
}

/// Tokens follow the server's clock where the last one was thrown away.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn where_it_is_accepted_that_locks_are_thrown_away_tokens_grow() {
    let server = OwnServer::start(Disk::Nothing).await;
    let options = || server.options().with_lease(LONG).with_eviction(Eviction::LostLocksAccepted);
    let (one, two) = (client_with(options()).await, client_with(options()).await);
    let first = one.locks("users").write("alice").await.unwrap();
    throw_away_all(&server, "allkeys-lru").await;
    let second = two.locks("users").write("alice").now().await.unwrap().expect("it was thrown away");
    assert!(second.token() > first.token(), "{:?} after {:?}", second.token(), first.token());
}

/// By a look, before a lock was thrown away; and it is lent again once the operator has mended it.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_server_that_comes_to_evict_lends_no_lock_until_it_keeps_them() {
    let server = OwnServer::start(Disk::Nothing).await;
    let (log, _logging) = Log::of(Level::ERROR);
    let (holder, ylock) = (client(&server, LONG).await, client(&server, LONG).await);
    let guard = holder.locks("users").write("alice").await.unwrap();
    let tries = async || ylock.locks("users").write("alice").now().await;
    assert!(tries().await.unwrap().is_none());
    server.command(&["CONFIG", "SET", "maxmemory-policy", "volatile-lru"]).await;
    server.command(&["CONFIG", "SET", "maxmemory", "1gb"]).await;
    // The lock is there, so no script looks.
    until("the client looks", async || tries().await.is_err()).await;
    is_about(&tries().await.unwrap_err(), &server, "volatile-lru");
    assert!(!ylock.guarantees().exclusive && !ylock.guarantees().exclusive_after_failover);
    let address = format!("127.0.0.1:{}", server.port());
    assert_eq!(log.lines(&["ERROR", &address, "volatile-lru"]).len(), 1, "{}", log.text());
    let [risk] = &ylock.diagnose().await.unwrap().findings[..] else { panic!("a risk") };
    assert!(risk.what.contains("volatile-lru"), "{risk:?}");
    assert!(guard.is_valid(), "holders go on");
    assert!(within("given back", guard.unlock()).await.unwrap().is_released());
    server.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]).await;
    until("it lends again", async || tries().await.is_ok_and(|guard| guard.is_some())).await;
    assert!(ylock.guarantees().exclusive && ylock.guarantees().exclusive_after_failover);
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn where_the_user_may_not_ask_exclusion_is_not_promised() {
    let server = OwnServer::start(Disk::Nothing).await;
    server.command(&["ACL", "SETUSER", "default", "-info"]).await;
    let (log, _logging) = Log::of(Level::WARN);
    let ylock = client(&server, LONG).await;
    assert!(!ylock.guarantees().exclusive && !ylock.guarantees().exclusive_after_failover);
    assert_eq!(log.lines(&["WARN", "maxmemory-policy", "info"]).len(), 1, "{}", log.text());
    drop(ylock.locks("users").write("alice").await.unwrap());
    let seen = ylock.diagnose().await.unwrap();
    assert!(seen.facts.iter().any(|(what, _)| *what == "eviction"), "{seen:?}");
    server.command(&["ACL", "SETUSER", "default", "+info"]).await;
    until("it has asked", async || {
        drop(ylock.locks("users").write("alice").await.unwrap());
        ylock.guarantees().exclusive
    })
    .await;
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_replica_that_evicts_lends_no_lock_once_it_has_taken_over() {
    let mut all = OwnSentinels::start().await;
    let options = || all.options().with_lease(Duration::from_secs(60)).with_min_replicas(1);
    let (one, two) = (client_with(options()).await, client_with(options()).await);
    let guard = replicated(&one).await;
    for word in [["maxmemory-policy", "allkeys-lru"], ["maxmemory", "1gb"]] {
        all.replica.command(&["CONFIG", "SET", word[0], word[1]]).await;
    }
    assert!(two.guarantees().exclusive);
    all.master.kill();
    all.await_failover().await;
    let told = async || match two.locks("users").write("bob").now().await {
        Err(error) if error.kind() == ErrorKind::Config => Some(error),
        _ => None,
    };
    until("it is refused", async || told().await.is_some()).await;
    is_about(&told().await.unwrap(), &all.replica, "allkeys-lru");
    assert!(!two.guarantees().exclusive && guard.is_valid());
    let error = RedisEngine::connect(&all.options()).await.unwrap_err();
    is_about(&error, &all.replica, "allkeys-lru");
    assert!(within("given back", guard.unlock()).await.unwrap().is_released());
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn each_server_of_a_cluster_must_keep_locks() {
    let cluster = OwnCluster::start(0).await;
    let ylock = client_with(cluster.options().with_lease(LONG)).await;
    let evicts = &cluster.servers[2];
    throw_away_all(evicts, "allkeys-random").await;
    let error = RedisEngine::connect(&cluster.options()).await.unwrap_err();
    is_about(&error, evicts, "allkeys-random");
    // Some names are kept by the others, and some by this one.
    let (mut lent, mut refused) = (0, 0);
    for name in 0..100 {
        match ylock.locks("users").write(name.to_string()).now().await {
            Ok(guard) => lent += u32::from(guard.is_some()),
            Err(error) => {
                is_about(&error, evicts, "allkeys-random");
                refused += 1;
            }
        }
    }
    assert!(lent > 0 && refused > 0, "{lent} lent, {refused} refused");
    assert!(!ylock.guarantees().exclusive);
    let accepts = cluster.options().with_eviction(Eviction::LostLocksAccepted);
    RedisEngine::connect(&accepts).await.unwrap();
}
