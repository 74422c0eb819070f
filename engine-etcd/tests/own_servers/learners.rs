//! Members that only learn, and have no vote: they answer no question that must be right.

use ylock_core::ErrorKind;
use ylock_engine_etcd::EtcdEngine;

use super::own_cluster::Cluster;
use super::{client, options, until, within};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: run `cargo xtask test`"]
async fn a_learner_is_told_as_such_and_passed_over() {
    let mut cluster = Cluster::start(1).await;
    let id = cluster.add_learner().await;
    let (voter, learner) = (cluster.0[0].host(), cluster.0[1].host());
    let error = EtcdEngine::connect(&options(vec![learner.clone()])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:#}");
    assert!(error.to_string().contains("is a learner"), "{error:#}");
    // Each begins with one of them at random.
    for round in 0..8 {
        let ylock = client(vec![learner.clone(), voter.clone()]).await;
        let guard = within("it gets in", ylock.locks("users").write("alice")).await.unwrap();
        assert!(within("given back", guard.unlock()).await.unwrap().is_released(), "round {round}");
        ylock.close().await;
    }
    until("it has learned everything", async || cluster.promote(&id).await).await;
    until("it is used", async || EtcdEngine::connect(&options(vec![learner.clone()])).await.is_ok()).await;
}
