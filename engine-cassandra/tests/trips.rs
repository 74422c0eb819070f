//! How many requests each operation sends, counted by the driver itself.
#![allow(clippy::disallowed_methods, reason = "tests start tasks of their own")]

mod cluster;

use std::sync::Arc;

use ylock_core::{Unlocked, Ylock};
use ylock_engine_cassandra::CassandraEngine;

struct Counted {
    engine: Arc<CassandraEngine>,
    ylock: Ylock,
}

impl Counted {
    async fn new() -> Self {
        let engine = Arc::new(cluster::engine().await);
        let options = ylock_core::Options::default().with_lease(cluster::LEASE);
        Self { ylock: Ylock::from_arc(engine.clone()).with_options(options), engine }
    }

    async fn during<T>(&self, work: impl Future<Output = T>) -> (T, u64) {
        let before = self.engine.requests();
        let result = work.await;
        (result, self.engine.requests() - before)
    }
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn an_uncontended_acquisition_is_two_trips_and_its_release_one() {
    let counted = Counted::new().await;
    let users = counted.ylock.locks(cluster::group());
    for round in 0..3 {
        let (guard, trips) = counted.during(users.write("alice")).await;
        assert_eq!(trips, 2, "acquire, round {round}");
        let (unlocked, trips) = counted.during(guard.unwrap().unlock()).await;
        assert_eq!((unlocked.unwrap(), trips), (Unlocked::Released, 1), "release, round {round}");
    }
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn reentry_and_local_hand_over_are_no_trip() {
    let counted = Counted::new().await;
    let owner = ylock_core::Owner::new();
    let users = counted.ylock.locks(cluster::group()).owned_by(&owner);
    let outer = users.write("alice").await.unwrap();
    let (inner, trips) = counted.during(users.write("alice")).await;
    assert_eq!(trips, 0);
    let (unlocked, trips) = counted.during(inner.unwrap().unlock()).await;
    assert_eq!((unlocked.unwrap(), trips), (Unlocked::Released, 0));
    drop(outer);
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn trying_a_held_name_is_one_trip_and_a_free_one_three() {
    let (holder, other) = (Counted::new().await, Counted::new().await);
    let group = cluster::group();
    let (held, tried) = (holder.ylock.locks(group.clone()), other.ylock.locks(group));
    // The other client has been seen at this name, so the holder says at once that it is inside.
    assert!(tried.write("alice").await.unwrap().unlock().await.unwrap().is_released());
    let waiting = tried.write("alice").await.unwrap();
    let next = tokio::spawn({
        let held = held.clone();
        async move { held.write("alice").await.unwrap() }
    });
    until_queued(&other.ylock, tried.group()).await;
    assert!(waiting.unlock().await.unwrap().is_released());
    let guard = next.await.unwrap();
    until_held(&other.ylock, tried.group()).await;
    for _ in 0..5 {
        let (refused, trips) = other.during(tried.write("alice").now()).await;
        assert!(refused.unwrap().is_none());
        assert_eq!(trips, 1, "the holder says that it is inside");
    }
    let (granted, trips) = other.during(tried.write("bob").now()).await;
    assert!(granted.unwrap().is_some());
    assert_eq!(trips, 3);
    drop(guard);
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn a_name_that_was_refused_leaves_nothing_in_the_store() {
    let (one, other) = (Counted::new().await, Counted::new().await);
    let group = cluster::group();
    let guard = one.ylock.locks(group.clone()).write("alice").await.unwrap();
    assert!(other.ylock.locks(group.clone()).write("alice").now().await.unwrap().is_none());
    let seen = one.ylock.inspect(group, "alice").await.unwrap();
    assert_eq!((seen.holders.len(), seen.queue.len()), (1, 0), "{seen:?}");
    drop(guard);
}

async fn until_queued(ylock: &Ylock, group: &str) {
    while ylock.inspect(group, "alice").await.unwrap().queue.is_empty() {
        tokio::task::yield_now().await;
    }
}

/// Waits until a look shows a holder: then one look is enough for all other clients.
async fn until_held(ylock: &Ylock, group: &str) {
    while ylock.inspect(group, "alice").await.unwrap().holders.is_empty() {
        tokio::task::yield_now().await;
    }
}
