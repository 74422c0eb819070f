//! Lines that lose answers, hang and break.

use ylock_core::engine::{AcquisitionId, Engine, Release, Request};
use ylock_core::{ClientName, Key, Mode, Owner};
use ylock_engine_etcd::EtcdEngine;
use ylock_testkit::own_servers::{Link, Proxy};

use super::own_cluster::Cluster;
use super::{LEASE, client, granted, options, queue_up, until, within};

/// The transaction is carried out, and its answer is lost: the next attempt finds the key that it has made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: run `cargo xtask test`"]
async fn an_answer_that_is_lost_after_the_transaction_makes_no_second_key() {
    let cluster = Cluster::start(1).await;
    let (proxy, other) = (Proxy::before(&cluster.hosts()).await, client(cluster.hosts()).await);
    let engine = EtcdEngine::connect(&options(proxy.hosts())).await.unwrap();
    let environment = engine.environment();
    let request = || {
        let (key, id) = (Key::new("users", "alice").unwrap(), AcquisitionId::new(&*environment));
        Request::new(key, id, Mode::Write, Owner::new(), ClientName::default(), LEASE)
    };
    // The lease is made before the line is deaf.
    let first = engine.acquire(&request()).await.unwrap().unwrap();
    assert_eq!(engine.release(&first.key, first.id, None).await.unwrap(), Release::Released);
    proxy.set(Link::Deaf);
    let second = request();
    let (grant, ()) = tokio::join!(engine.acquire(&second), async {
        until("the key is there", async || held(&other).await == 1).await;
        proxy.set(Link::Open);
    });
    let grant = grant.unwrap().expect("it is let in");
    assert!(grant.token > first.token && held(&other).await == 1);
    assert_eq!(engine.release(&grant.key, grant.id, None).await.unwrap(), Release::Released);
    assert_eq!(held(&other).await, 0);
}

async fn held(ylock: &ylock_core::Ylock) -> usize {
    ylock.inspect("users", "alice").await.map_or(0, |seen| seen.holders.len() + seen.queue.len())
}

/// Nothing arrives any more on the connections that there are. The client goes on over another one, in time for its lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: run `cargo xtask test`"]
async fn a_connection_that_hangs_costs_neither_a_hold_nor_a_place() {
    let cluster = Cluster::start(1).await;
    let (lines, other) = (Proxy::before(&cluster.hosts()).await, client(cluster.hosts()).await);
    let [one, two] = [client(lines.hosts()).await, client(lines.hosts()).await];
    let guard = one.locks("users").write("alice").await.unwrap();
    let waiting = queue_up(&two, &other).await;
    lines.set(Link::Dead);
    // Long enough for each connection to lose something.
    tokio::time::sleep(LEASE / 3).await;
    lines.set(Link::Open);
    tokio::time::sleep(LEASE).await;
    assert!(guard.is_valid() && !waiting.is_finished());
    assert!(within("given back", guard.unlock()).await.unwrap().is_released());
    drop(granted(waiting).await);
}
