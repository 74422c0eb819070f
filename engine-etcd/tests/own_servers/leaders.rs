//! Leaders that die, hang and come back, and clusters without one.

use std::time::Duration;

use ylock_core::environment::SystemEnvironment;
use ylock_core::{Options, Ylock};
use ylock_engine_etcd::EtcdEngine;

use super::own_cluster::Cluster;
use super::{LEASE, client, granted, options, queue_up, until, within};

/// How often a leader stands still. Of a leader that goes on, one in three or four used to end leases that its successor kept.
const STOPS: usize = 2;
/// Half of it is enough for an election, and for a client to go on to another member.
const LONG: Duration = Duration::from_secs(12);

/// A leader that stood still for longer than a lease, and was replaced meanwhile, ends what it takes for expired when it goes on, and its successor carries
/// that out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: run `cargo xtask test`"]
async fn a_leader_that_was_deposed_and_goes_on_costs_neither_a_hold_nor_a_place() {
    let cluster = Cluster::start(3).await;
    let all = [0, 1, 2];
    let client = async || {
        let engine = EtcdEngine::connect(&options(cluster.hosts()).with_lease(LONG)).await.unwrap();
        Ylock::new(engine).with_options(Options::default().with_lease(LONG))
    };
    let (one, two) = (client().await, client().await);
    let guard = one.locks("users").write("alice").await.unwrap();
    let waiting = queue_up(&two, &two).await;
    let environment = SystemEnvironment::shared();
    for _ in 0..STOPS {
        until("there is a leader", async || cluster.leader(&all).await.is_some()).await;
        let leader = cluster.leader(&all).await.unwrap();
        let others: Vec<_> = all.into_iter().filter(|at| *at != leader).collect();
        cluster.0[leader].freeze();
        // Longer than its leases, which it has prolonged or made just before.
        environment.sleep(LONG * 7 / 5).await;
        assert!(cluster.leader(&others).await.is_some_and(|at| at != leader), "there is another leader");
        assert!(guard.is_valid() && !waiting.is_finished(), "lost while the leader stood still");
        cluster.0[leader].thaw();
        // What it ends is gone within a second.
        environment.sleep(LONG / 4).await;
        assert!(guard.is_valid() && !waiting.is_finished(), "its lease was ended");
    }
    let token = guard.token();
    assert!(within("given back", guard.unlock()).await.unwrap().is_released());
    assert!(granted(waiting).await.token() > token);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: run `cargo xtask test`"]
async fn a_leader_that_is_killed_costs_neither_a_hold_nor_a_place() {
    let mut cluster = Cluster::start(3).await;
    let [one, two, third] =
        [client(cluster.hosts()).await, client(cluster.hosts()).await, client(cluster.hosts()).await];
    let guard = one.locks("users").write("alice").await.unwrap();
    let waiting = queue_up(&two, &third).await;
    until("there is a leader", async || cluster.leader(&[0, 1, 2]).await.is_some()).await;
    let leader = cluster.leader(&[0, 1, 2]).await.expect("there is a leader");
    cluster.0[leader].kill();
    let others: Vec<_> = (0..3).filter(|at| *at != leader).collect();
    until("there is another leader", async || cluster.leader(&others).await.is_some()).await;
    until("the store answers", async || third.inspect("users", "alice").await.is_ok()).await;
    assert!(guard.is_valid() && !waiting.is_finished());
    let token = guard.token().unwrap();
    assert!(within("given back", guard.unlock()).await.unwrap().is_released());
    let next = granted(waiting).await;
    assert!(next.token().unwrap() > token);
    cluster.0[leader].start_again().await;
    assert!(next.is_valid());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: run `cargo xtask test`"]
async fn without_a_majority_the_holder_is_told_in_time_and_with_one_the_next_gets_in() {
    let cluster = Cluster::start(3).await;
    let [one, two] = [client(cluster.hosts()).await, client(cluster.hosts()).await];
    let guard = one.locks("users").write("alice").await.unwrap();
    for member in &cluster.0[..2] {
        member.freeze();
    }
    within("the holder is told", guard.lost()).await;
    assert!(!guard.is_valid());
    for member in &cluster.0[..2] {
        member.thaw();
    }
    let locks = two.locks("users");
    until("the next gets in", async || {
        locks.write("alice").within(LEASE).await.is_ok_and(|got| got.is_some())
    })
    .await;
    drop(guard);
    // What was lost is given back, too late for anything.
    let again = within("the first gets in again", one.locks("users").write("alice")).await.unwrap();
    assert!(again.is_valid());
}
