//! Leaders that die, hang and come back, and clusters without one.

use std::sync::Arc;

use ylock_core::engine::{AcquisitionId, Engine, Holding, Renewal, Request};
use ylock_core::{ClientName, Key, Mode, Owner};
use ylock_engine_etcd::EtcdEngine;

use super::own_cluster::Cluster;
use super::{LEASE, client, granted, options, queue_up, until, within};

/// A leader that stood still answers keep-alives when it goes on, before it hears that there is another one. A client that believes it counts from
/// before it was asked, and the new leader never heard of that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: run `cargo xtask test`"]
async fn a_keep_alive_that_a_deposed_leader_has_answered_does_not_count() {
    let cluster = Cluster::start(3).await;
    let all = [0, 1, 2];
    until("there is a leader", async || cluster.leader(&all).await.is_some()).await;
    let leader = cluster.leader(&all).await.unwrap();
    let others: Vec<_> = all.into_iter().filter(|at| *at != leader).collect();
    // This client asks the leader only, with a patience that outlasts its pause.
    let options = options(vec![cluster.0[leader].host()]).with_lease(LEASE * 4).with_request_timeout(LEASE);
    let engine = Arc::new(EtcdEngine::connect(&options).await.unwrap());
    let environment = engine.environment();
    let (key, id) = (Key::new("users", "alice").unwrap(), AcquisitionId::new(&*environment));
    let request = Request::new(key, id, Mode::Write, Owner::new(), ClientName::default(), LEASE * 4);
    let grant = engine.acquire(&request).await.unwrap().unwrap();
    cluster.0[leader].freeze();
    until("there is another leader", async || cluster.leader(&others).await.is_some_and(|at| at != leader))
        .await;
    let renewing = {
        let (engine, grant) = (Arc::clone(&engine), grant.clone());
        tokio::spawn(async move { engine.renew(&[Holding::new(grant, None)]).await.remove(0) })
    };
    // The keep-alive is in the hands of the old leader, and no part of this decides anything: if it is not, the test asks less.
    tokio::time::sleep(LEASE / 12).await;
    let thawed = environment.now();
    cluster.0[leader].thaw();
    match within("it is renewed", renewing).await.unwrap() {
        Ok(Renewal::Renewed { sent, .. } | Renewal::Kept { sent }) => {
            assert!(sent > thawed, "what the old leader said was counted")
        }
        Ok(Renewal::Lost(reason)) => panic!("lost: {reason:?}"),
        Err(error) => assert!(error.is_retryable(), "{error:#}"),
    }
    engine.close().await.unwrap();
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
        locks.write_within("alice", LEASE).await.is_ok_and(|got| got.is_some())
    })
    .await;
    drop(guard);
    // What was lost is given back, too late for anything.
    let again = within("the first gets in again", one.locks("users").write("alice")).await.unwrap();
    assert!(again.is_valid());
}
