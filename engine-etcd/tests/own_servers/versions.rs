//! What is stored in another version than that of the clients here.

use ylock_core::{Error, ErrorKind, Guard, Result, Ylock};

use super::own_cluster::{Cluster, base64, field};
use super::{client, until, within};

const FLOOR: &str = "ylock/floor";

/// What the key of the floor says, which also says the version.
async fn said(cluster: &Cluster) -> String {
    let request = format!(r#"{{"key":"{}"}}"#, base64(FLOOR.as_bytes()));
    let answer = cluster.0[0].post("/v3/kv/range", &request).await.unwrap();
    field(&answer, "value").expect("a floor")
}

async fn say(cluster: &Cluster, encoded: &str) {
    let request = format!(r#"{{"key":"{}","value":"{encoded}"}}"#, base64(FLOOR.as_bytes()));
    let answer = cluster.0[0].post("/v3/kv/put", &request).await.unwrap();
    assert!(answer.contains("200 OK"), "{answer}");
}

fn is_refusal(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Config, "{error:#}");
    for part in ["prefix ylock of", "version 2", "version 1", "side by side", FLOOR] {
        assert!(error.to_string().contains(part), "{part}: {error:#}");
    }
}

async fn tried(ylock: &Ylock, name: &str) -> Result<Option<Guard>> {
    within("it is answered", ylock.locks("users").write(name).now()).await
}

/// A client looks before its first lock. The version stays as it is, whichever clients come and go.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: run `cargo xtask test`"]
async fn clients_of_another_version_are_refused_by_name() {
    let cluster = Cluster::start(1).await;
    drop(tried(&client(cluster.hosts()).await, "alice").await.unwrap().expect("it is free"));
    let first = said(&cluster).await;
    let later = base64(b"ff 77 version=2");
    say(&cluster, &later).await;
    let refused = client(cluster.hosts()).await;
    is_refusal(&tried(&refused, "alice").await.unwrap_err());
    refused.close().await;
    assert_eq!(said(&cluster).await, later);
    say(&cluster, &first).await;
    let ylock = client(cluster.hosts()).await;
    let _held = tried(&ylock, "alice").await.unwrap().expect("it is free");
    let mut listing = ylock.list();
    assert_eq!(listing.next().await.unwrap().expect("the lock").key.name(), "alice");
    assert!(listing.next().await.unwrap().is_none(), "and nothing else");
    ylock.close().await;
    assert_eq!(said(&cluster).await, first);
}

/// Such as one that was started before the operator went to another version: it looks with each of its leases.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: run `cargo xtask test`"]
async fn a_client_that_lives_is_refused_with_its_next_lease() {
    let cluster = Cluster::start(1).await;
    let ylock = client(cluster.hosts()).await;
    let _held = tried(&ylock, "alice").await.unwrap().expect("it is free");
    let first = said(&cluster).await;
    say(&cluster, &base64(b"ff 77 version=2")).await;
    let refused = within("it is refused", async {
        for name in 0.. {
            if let Err(error) = tried(&ylock, &name.to_string()).await {
                return error;
            }
        }
        unreachable!("there are names enough")
    });
    is_refusal(&refused.await);
    say(&cluster, &first).await;
    // After a failure it does not ask again for a moment.
    until("it goes on", async || tried(&ylock, "bob").await.is_ok_and(|guard| guard.is_some())).await;
}
