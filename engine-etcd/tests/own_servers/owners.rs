//! The comparison for a program's own transactions.

use ylock_core::ErrorKind;
use ylock_engine_etcd::driver_api::{OwnerCompare, Owners};

use super::own_cluster::{Cluster, base64, field};
use super::{client, options, within};

/// A transaction of a program that knows nothing of ylock: it writes if the comparison holds. Returns whether it did.
async fn writes(cluster: &Cluster, compare: &OwnerCompare, value: &str) -> bool {
    let (key, revision) = (base64(&compare.key), compare.create_revision);
    let (account, balance) = (base64(b"account/4711"), base64(value.as_bytes()));
    let transaction = format!(
        r#"{{"compare":[{{"key":"{key}","target":"CREATE","result":"EQUAL","create_revision":"{revision}"}}],
            "success":[{{"request_put":{{"key":"{account}","value":"{balance}"}}}}]}}"#
    );
    let said = cluster.0[0].post("/v3/kv/txn", &transaction).await.unwrap();
    assert!(said.contains("200 OK"), "{said}");
    let has_written = said.contains(r#""succeeded":true"#);
    let stored = cluster.0[0].post("/v3/kv/range", &format!(r#"{{"key":"{account}"}}"#)).await.unwrap();
    assert_eq!(field(&stored, "value") == Some(balance), has_written, "{stored}");
    has_written
}

/// Revokes every etcd lease, as an operator does who makes a mistake: all that is held is lost.
async fn revoke_leases(cluster: &Cluster) {
    let said = cluster.0[0].post("/v3/lease/leases", "{}").await.unwrap();
    for lease in said.split("\"ID\":\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        cluster.0[0].post("/v3/lease/revoke", &format!(r#"{{"ID":"{lease}"}}"#)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: run `cargo xtask test`"]
async fn a_transaction_of_the_program_writes_only_for_the_present_holder() {
    let cluster = Cluster::start(1).await;
    let (one, two) = (client(cluster.hosts()).await, client(cluster.hosts()).await);
    let owners = Owners::connect(&options(cluster.hosts())).await.unwrap();

    // Held, and then given back and taken by another client.
    let guard = one.locks("users").write("alice").await.unwrap();
    let (lease, compare) = (guard.lease(), owners.compare(&guard.lease()).await.unwrap());
    assert!(writes(&cluster, &compare, "1").await && writes(&cluster, &compare, "2").await);
    assert!(within("given back", guard.unlock()).await.unwrap().is_released());
    assert!(!writes(&cluster, &compare, "nobody holds it").await);
    assert_eq!(owners.compare(&lease).await.unwrap_err().kind(), ErrorKind::Lost);
    let next = within("the other gets in", two.locks("users").write("alice")).await.unwrap();
    assert!(!writes(&cluster, &compare, "another holds it").await);
    let of_next = owners.compare(&next.lease()).await.unwrap();
    assert!(writes(&cluster, &of_next, "3").await);
    assert!(within("given back", next.unlock()).await.unwrap().is_released());

    // The first client holds it once more: that is another grant.
    let guard = within("it gets in", one.locks("users").write("alice")).await.unwrap();
    assert!(!writes(&cluster, &compare, "of an earlier grant").await);
    let compare = owners.compare(&guard.lease()).await.unwrap();
    assert!(writes(&cluster, &compare, "4").await);

    // Lost, and taken by another client.
    revoke_leases(&cluster).await;
    assert!(!writes(&cluster, &compare, "lost").await);
    within("the holder is told", guard.lost()).await;
    let next = within("the other gets in", two.locks("users").write("alice")).await.unwrap();
    assert!(!writes(&cluster, &compare, "lost, and another holds it").await);
    assert!(writes(&cluster, &owners.compare(&next.lease()).await.unwrap(), "5").await);
}
