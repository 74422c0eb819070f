//! What operators do to keys, leases and the history of a store.

use ylock_core::Ylock;

use super::own_cluster::{Cluster, base64, field};
use super::{client, granted, queue_up, until, within};

/// Returns the key of the only contender of the lock, and its lease.
async fn contender(cluster: &Cluster) -> (String, String) {
    let (begin, end) = (base64(b"ylock/k/users/alice/"), base64(b"ylock/k/users/alice0"));
    let said = cluster.0[0]
        .post("/v3/kv/range", &format!(r#"{{"key":"{begin}","range_end":"{end}"}}"#))
        .await
        .unwrap();
    (field(&said, "key").expect("a contender"), field(&said, "lease").expect("its lease"))
}

async fn alone() -> (Cluster, Ylock, Ylock) {
    let cluster = Cluster::start(1).await;
    let (one, two) = (client(cluster.hosts()).await, client(cluster.hosts()).await);
    (cluster, one, two)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: run `cargo xtask test`"]
async fn a_lease_that_an_operator_revokes_is_a_loss_and_its_client_goes_on() {
    let (cluster, one, two) = alone().await;
    let guard = one.locks("users").write("alice").await.unwrap();
    let (_, lease) = contender(&cluster).await;
    let token = guard.token().unwrap();
    cluster.0[0].post("/v3/lease/revoke", &format!(r#"{{"ID":"{lease}"}}"#)).await.unwrap();
    within("the holder is told", guard.lost()).await;
    drop(guard);
    let next = within("the next gets in", two.locks("users").write("alice")).await.unwrap();
    assert!(next.token().unwrap() > token);
    let waiting = queue_up(&one, &two).await;
    drop(next);
    drop(granted(waiting).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: run `cargo xtask test`"]
async fn a_waiter_whose_lease_an_operator_revokes_queues_again() {
    let (cluster, one, two) = alone().await;
    let waiting = {
        let guard = one.locks("users").write("alice").await.unwrap();
        let (_, held) = contender(&cluster).await;
        let waiting = queue_up(&two, &one).await;
        let said = cluster.0[0].post("/v3/lease/leases", "{}").await.unwrap();
        let leases: Vec<_> =
            said.split("\"ID\":\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        for lease in leases.into_iter().filter(|lease| *lease != held) {
            cluster.0[0].post("/v3/lease/revoke", &format!(r#"{{"ID":"{lease}"}}"#)).await.unwrap();
        }
        until("it waits again", async || super::waiters(&one).await == 1).await;
        assert!(guard.is_valid() && !waiting.is_finished());
        waiting
    };
    drop(granted(waiting).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: run `cargo xtask test`"]
async fn a_key_that_an_operator_deletes_is_a_loss() {
    let (cluster, one, two) = alone().await;
    let guard = one.locks("users").write("alice").await.unwrap();
    let (key, _) = contender(&cluster).await;
    cluster.0[0].post("/v3/kv/deleterange", &format!(r#"{{"key":"{key}"}}"#)).await.unwrap();
    within("the holder is told", guard.lost()).await;
    drop(guard);
    drop(within("the next gets in", two.locks("users").write("alice")).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: run `cargo xtask test`"]
async fn a_history_that_is_compacted_away_hurts_no_waiter() {
    let (cluster, one, two) = alone().await;
    let guard = one.locks("users").write("alice").await.unwrap();
    let waiting = queue_up(&two, &one).await;
    for round in 0..20 {
        drop(one.locks("others").write(format!("{round}")).await.unwrap());
    }
    let said = cluster.0[0].post("/v3/maintenance/status", "{}").await.unwrap();
    let revision = field(&said, "revision").unwrap();
    let said = cluster.0[0]
        .post("/v3/kv/compaction", &format!(r#"{{"revision":"{revision}","physical":true}}"#))
        .await;
    assert!(said.unwrap().contains("200 OK"));
    assert!(!waiting.is_finished());
    drop(guard);
    drop(granted(waiting).await);
}
