//! Another server takes over, and Sentinels say which.

use std::time::Duration;

use ylock_core::ErrorKind;
use ylock_engine_redis::{RedisEngine, RedisOptions};

use super::own_sentinels::OwnSentinels;
use super::{client_with, joins, replicated, until, waiters, within};

/// Longer than a failover takes on a busy machine.
const LEASE: Duration = Duration::from_secs(60);

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn what_the_replica_has_stays_when_it_takes_over() {
    let mut all = OwnSentinels::start().await;
    let (one, two) = (
        client_with(all.options().with_lease(LEASE).with_min_replicas(1)).await,
        client_with(all.options().with_lease(LEASE)).await,
    );
    assert!(!two.guarantees().fencing);
    let guard = replicated(&one).await;
    assert_eq!(guard.token(), None, "a server that takes over could give the same again");
    let waiting = joins(&two, 0).await;
    all.master.kill();
    all.await_failover().await;
    until("the waiter is in the queue of the new master", async || waiters(&one).await == 1).await;
    assert!(guard.is_valid() && !waiting.is_finished());
    assert!(within("given back", guard.unlock()).await.unwrap().is_released());
    assert!(within("the next one gets in", waiting).await.unwrap().is_valid());
}

/// The old master lives, and does not know that it was replaced: a client that stayed there would hold the lock beside clients that moved.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_master_that_was_replaced_is_left() {
    let all = OwnSentinels::start().await;
    let one = client_with(all.options().with_lease(LEASE)).await;
    drop(one.locks("users").write("bob").await.unwrap());
    all.master.signal("STOP");
    all.await_failover().await;
    all.master.signal("CONT");
    let two = client_with(all.options().with_lease(LEASE)).await;
    // The client that has moved sees what the other client holds.
    let guard = two.locks("users").write("alice").await.unwrap();
    until("the old master is left", async || holders(&one).await == 1).await;
    assert!(one.locks("users").write("alice").now().await.unwrap().is_none());
    // The old master has not heard of it yet: so it is not by an error that the client found out.
    let role: redis::Value = all.master.ask(&["ROLE"]).await.unwrap();
    assert!(format!("{role:?}").contains("master"), "{role:?}");
    drop(guard);
}

async fn holders(ylock: &ylock_core::Ylock) -> usize {
    ylock.inspect("users", "alice").await.map_or(0, |seen| seen.holders.len())
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn sentinels_may_be_away_but_must_know_the_service() {
    let mut all = OwnSentinels::start().await;
    let hosts: Vec<_> =
        all.sentinels.iter().map(|sentinel| ("127.0.0.1".to_owned(), sentinel.port())).collect();
    let error = RedisEngine::connect(&RedisOptions::sentinel(hosts, "users")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert!(error.to_string().contains("knows no service of the name \"users\""), "{error}");
    all.sentinels[0].kill();
    all.sentinels[2].kill();
    drop(client_with(all.options()).await.locks("users").write("alice").await.unwrap());
    all.sentinels[1].kill();
    let error = RedisEngine::connect(&all.options()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
}
