//! Servers of an ensemble that are killed, hang, or are on their own.

use std::time::{Duration, Instant};

use ylock_core::{ErrorKind, LossReason};
use ylock_engine_zookeeper::ZookeeperEngine;

use super::own_server::OwnEnsemble;
use super::{LONG, SESSION, client, client_with, options, queue_up, until, waiters, within};

#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn a_killed_leader_costs_neither_a_hold_nor_a_place_nor_the_order_of_tokens() {
    let ensemble = OwnEnsemble::start(&[]).await;
    let leader = ensemble.leader().await;
    one_is_killed(ensemble, leader).await;
}

#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn a_killed_follower_costs_neither_a_hold_nor_a_place_nor_the_order_of_tokens() {
    let ensemble = OwnEnsemble::start(&[]).await;
    let leader = ensemble.leader().await;
    one_is_killed(ensemble, (leader + 1) % 3).await;
}

async fn one_is_killed(mut ensemble: OwnEnsemble, victim: usize) {
    let long = options(ensemble.hosts()).with_lease(LONG);
    let (one, two) = (client_with(long.clone()).await, client_with(long).await);
    let guard = one.locks("users").write("alice").await.unwrap();
    let waiting = queue_up(&two, &one).await;
    ensemble.0[victim].kill();
    until("the others go on", async || waiters(&one).await == 1).await;
    assert!(guard.is_valid() && !waiting.is_finished());
    let token = guard.token();
    assert!(within("given back", guard.unlock()).await.unwrap().is_released());
    let next = within("the next one gets in", waiting).await.unwrap();
    assert!(next.token() > token);
    ensemble.0[victim].start_again().await;
    assert!(within("given back", next.unlock()).await.unwrap().is_released());
}

#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn a_majority_that_comes_back_in_time_costs_nothing_and_later_everything_is_told() {
    let mut ensemble = OwnEnsemble::start(&[]).await;
    let long = options(ensemble.hosts()).with_lease(LONG);
    let (patient, hasty) = (client_with(long).await, client(ensemble.hosts()).await);
    let guard = patient.locks("users").write("alice").await.unwrap();
    let short = hasty.locks("users").write("bob").await.unwrap();
    let token = guard.token();
    ensemble.0[0].kill();
    ensemble.0[1].kill();
    assert_eq!(within("who has little time is told", short.lost()).await, LossReason::Lapsed);
    let error = within("and gets nothing", hasty.locks("users").write("carol")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    ensemble.0[0].start_again().await;
    until("the majority goes on", async || patient.inspect("users", "alice").await.is_ok()).await;
    assert!(guard.is_valid());
    assert!(within("given back", guard.unlock()).await.unwrap().is_released());
    let next = within("it goes on", hasty.locks("users").write("alice")).await.unwrap();
    assert!(next.token() > token);
}

/// The server goes on answering questions for a while, and must not keep a client in the belief that it holds a lock.
#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn a_server_that_is_on_its_own_confirms_nothing() {
    let ensemble = OwnEnsemble::start(&[]).await;
    let leader = ensemble.leader().await;
    for alone in [leader, (leader + 1) % 3] {
        let ylock = client(vec![ensemble.0[alone].host()]).await;
        let guard = ylock.locks("users").write("alice").await.unwrap();
        let others: Vec<_> = (0..3).filter(|other| *other != alone).collect();
        others.iter().for_each(|other| ensemble.0[*other].freeze());
        let since = Instant::now();
        let reason = within("the holder is told", guard.lost()).await;
        let told = since.elapsed();
        others.iter().for_each(|other| ensemble.0[*other].thaw());
        assert_eq!(reason, LossReason::Lapsed);
        assert!(told < SESSION, "{told:?}");
        for server in &ensemble.0 {
            server.until_it_serves().await;
        }
        drop(ylock);
    }
}

#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn a_server_that_only_reads_is_refused() {
    let mut ensemble = OwnEnsemble::start(&["-Dreadonlymode.enabled=true"]).await;
    let leader = ensemble.leader().await;
    let left = (leader + 1) % 3;
    ensemble.0[leader].kill();
    ensemble.0[(leader + 2) % 3].kill();
    until("it only reads", async || {
        ensemble.0[left].describe().await.is_some_and(|text| text.contains("read-only"))
    })
    .await;
    let options = options(vec![ensemble.0[left].host()]).with_connect_timeout(Duration::from_secs(4));
    let error = within("it is told", ZookeeperEngine::connect(&options)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
}
