//! Listings that go on while servers are restarted and replaced.

use std::collections::BTreeSet;
use std::time::Duration;

use ylock_core::engine::Engine;
use ylock_core::{ErrorKind, Guard, Key, Ylock};
use ylock_engine_redis::{RedisEngine, RedisOptions};

use super::own_cluster::OwnCluster;
use super::own_server::{Disk, OwnServer};
use super::{client_with, until, within};

const LEASE: Duration = Duration::from_secs(60);
/// More than there are on a page, also of one master of three.
const MANY: usize = 3_000;

async fn hold_many(ylock: &Ylock) -> Vec<Guard> {
    let locks = ylock.locks("users");
    let locks = &locks;
    let held = (0..MANY).map(|number| async move { locks.write(number.to_string()).await });
    futures_util::future::try_join_all(held).await.unwrap()
}

/// Lists all keys. `after_the_first` is done when there is one page.
async fn listed(options: &RedisOptions, after_the_first: impl AsyncFnOnce()) -> BTreeSet<Key> {
    let engine = RedisEngine::connect(options).await.unwrap();
    let first = engine.keys(Some("users"), None).await.unwrap();
    let (mut keys, mut after): (BTreeSet<_>, _) = (first.keys.into_iter().collect(), first.next);
    assert!(after.is_some(), "there are more");
    after_the_first().await;
    while let Some(next) = &after {
        match engine.keys(Some("users"), Some(next)).await {
            Ok(page) => {
                keys.extend(page.keys);
                after = page.next;
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
    keys
}

fn all() -> BTreeSet<Key> {
    (0..MANY).map(|number| Key::new("users", number.to_string()).unwrap()).collect()
}

/// A server hashes its keys in another way each time that it is started: what it said before has no meaning any more.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_listing_that_a_restart_interrupts_leaves_no_lock_out() {
    let mut server = OwnServer::start(Disk::AppendOnly).await;
    let options = server.options().with_lease(LEASE);
    let ylock = client_with(options.clone()).await;
    let guards = hold_many(&ylock).await;
    let listing = listed(&options, async || {
        server.kill();
        server.start_again().await;
    });
    assert_eq!(within("it is listed", listing).await, all());
    drop(guards);
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_listing_during_which_a_replica_takes_over_leaves_no_lock_out() {
    let mut cluster = OwnCluster::start(3).await;
    let options = cluster.options().with_lease(LEASE);
    let ylock = client_with(options.clone()).await;
    let guards = hold_many(&ylock).await;
    until("the replicas have all locks", async || cluster.locks_of_replicas().await == MANY).await;
    // The first in the order of names is the one that the first page is of.
    let masters = cluster.servers[..3].iter_mut();
    let first = masters.min_by_key(|server| server.port().to_string()).unwrap();
    let listing = listed(&options, async || first.kill());
    assert_eq!(within("it is listed", listing).await, all());
    drop(guards);
}
