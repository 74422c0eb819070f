//! Runtimes that end, or stand still, while their client is used in others.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use ylock_core::Ylock;
use ylock_core::url::Host;
use ylock_engine_redis::RedisOptions;
use ylock_testkit::{eventually, quiet_time};

use super::own_cluster::OwnCluster;
use super::own_server::{Disk, OwnServer};
use super::proxy::{Link, Proxy};
use super::{LOCKS, client, client_with, until, waiters, within};

/// Long enough that nothing is free because a lease has ended.
const LEASE: Duration = Duration::from_secs(30);

pub(crate) fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// How long it takes a client that waits to get in, once the lock was given back.
async fn hand_over(from: &Ylock, to: &Ylock) -> Duration {
    let guard = within("it gets in", from.locks("users").write("alice")).await.unwrap();
    let locks = to.locks("users");
    let waiting = tokio::spawn(async move { drop(locks.write("alice").await.unwrap()) });
    until("it waits", async || waiters(from).await == 1).await;
    // Messages are heard soon after it began to wait.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let since = Instant::now();
    drop(guard);
    within("the next one gets in", waiting).await.unwrap();
    since.elapsed()
}

#[test]
#[ignore = "needs redis: run `cargo xtask test`"]
fn messages_are_heard_after_the_runtime_of_connect_has_ended() {
    let (first, main) = (runtime(), runtime());
    let server = main.block_on(OwnServer::start(Disk::Nothing));
    let (one, two) = (first.block_on(client(&server, LEASE)), main.block_on(client(&server, LEASE)));
    drop(first);
    main.block_on(async {
        // A client whose runtime lives shows how long a hand-over takes on this machine now.
        let three = client(&server, LEASE).await;
        let (mut took, mut usual) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..6 {
            took += hand_over(&two, &one).await;
            usual += hand_over(&two, &three).await;
        }
        // If waiters had to ask by themselves, each hand-over would take half a second more.
        assert!(took < usual * 2 + Duration::from_secs(1), "{took:?}, and {usual:?}");
    });
}

pub(crate) fn of_one_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// The connection for messages of `one`, which waits for the lock, is made again.
async fn hears(server: &OwnServer, one: &Ylock) {
    let locks = one.locks("users");
    let waiting = tokio::spawn(async move { locks.write("bob").await.map(drop) });
    let channel = async || {
        let keys: Vec<String> = server.ask(&["KEYS", "ylock:*:bob"]).await.unwrap();
        let fields: HashMap<String, String> = server.ask(&["HGETALL", keys.first()?]).await.unwrap();
        let id = fields.keys().find_map(|field| field.strip_prefix("a:"))?;
        Some(format!("ylock:{}", fields[&format!("o:{id}")].split(' ').nth(1)?))
    };
    eventually(Duration::from_secs(90), "it hears", async || {
        let Some(channel) = channel().await else { return false };
        let (_, heard): (String, u64) = server.ask(&["PUBSUB", "NUMSUB", &channel]).await.unwrap();
        heard == 1
    })
    .await;
    waiting.abort();
}

/// The runtime is not polled, and the client cannot tell it from one that is busy: only that what lives in it gives no sign of life.
#[test]
#[ignore = "needs redis: run `cargo xtask test`"]
fn messages_are_heard_again_while_the_runtime_of_connect_stands_still() {
    let (still, main) = (of_one_thread(), runtime());
    let server = main.block_on(OwnServer::start(Disk::Nothing));
    let (one, two) = (still.block_on(client(&server, LEASE)), main.block_on(client(&server, LEASE)));
    main.block_on(async {
        let _guard = within("it gets in", two.locks("users").write("bob")).await.unwrap();
        // Nothing in the client notices that.
        server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]).await;
        hears(&server, &one).await;
    });
    drop(still);
}

#[test]
#[ignore = "needs redis: run `cargo xtask test`"]
fn a_subscription_that_stands_still_with_its_runtime_is_not_the_last() {
    let (still, main) = (of_one_thread(), of_one_thread());
    // For the proxy, which must not stand still.
    let others = runtime();
    let server = others.block_on(OwnServer::start(Disk::Nothing));
    let host = Host::new("127.0.0.1", server.port());
    let proxy = others.block_on(Proxy::before(&[host]));
    let port = proxy.hosts()[0].port.unwrap();
    let options = RedisOptions::new("127.0.0.1", port).with_lease(LEASE).with_connect_timeout(LEASE);
    let (one, two) = (main.block_on(client_with(options)), main.block_on(client(&server, LEASE)));
    let _guards = main.block_on(async {
        let locks = two.locks("users");
        let guards = (locks.write("alice").await.unwrap(), locks.write("bob").await.unwrap());
        proxy.set(Link::Full);
        server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]).await;
        guards
    });
    // The client sees that its connection has ended; the waiter of this runtime begins to make another one.
    let locks = one.locks("users");
    let _waiting = still.spawn(async move { locks.write("alice").await.map(drop) });
    let since = quiet_time();
    while proxy.turned_away() == 0 {
        assert!(quiet_time() - since < LEASE * 3, "it begins");
        main.block_on(async { tokio::time::sleep(Duration::from_millis(10)).await });
        still.block_on(async { tokio::time::sleep(Duration::from_millis(10)).await });
    }
    proxy.set(Link::Open);
    main.block_on(hears(&server, &one));
    drop(still);
}

/// The next request does not try the connection that died.
#[test]
#[ignore = "needs redis: run `cargo xtask test`"]
fn a_connection_that_died_with_its_runtime_costs_no_request() {
    let (first, main) = (runtime(), runtime());
    let server = main.block_on(OwnServer::start(Disk::Nothing));
    let ylock = first.block_on(client(&server, LEASE));
    drop(first);
    main.block_on(async {
        within("it is shown at once", ylock.inspect("users", "alice")).await.expect("no error in between");
    });
}

#[test]
#[ignore = "needs redis: run `cargo xtask test`"]
fn a_look_at_the_cluster_that_died_with_its_runtime_is_not_the_last() {
    let main = runtime();
    let (mut cluster, ylock, name) = main.block_on(with_lock_on_first());
    // That master hangs: a look at the cluster takes as long as a request may.
    cluster.servers[0].signal("STOP");
    let second = runtime();
    second.block_on(async {
        let locks = ylock.locks("users");
        let waited = tokio::time::timeout(Duration::from_millis(800), locks.write(name.as_str())).await;
        assert!(waited.is_err());
    });
    drop(second);
    cluster.servers[0].kill();
    main.block_on(finds_the_next(&cluster, &ylock, &name));
}

/// It goes on, also if nothing asks the client for anything meanwhile.
#[test]
#[ignore = "needs redis: run `cargo xtask test`"]
fn a_look_at_the_cluster_goes_on_while_the_runtime_stands_still_that_began_it() {
    // Nor is the other one driven when it begins: so it has to connect anew, which takes more turns
    // than it would get.
    let (still, main) = (of_one_thread(), of_one_thread());
    let (mut cluster, ylock, name) = main.block_on(with_lock_on_first());
    let looks = async || cluster.servers[1].calls("cluster|slots").await;
    let before = main.block_on(looks());
    cluster.servers[0].signal("STOP");
    still.block_on(async {
        ylock.locks("users").write(name.as_str()).now().await.expect_err("the master hangs");
        // One turn for the look, were it in this runtime: a task that was polled is not carried on
        // to another one.
        tokio::task::yield_now().await;
    });
    main.block_on(until("another master is asked", async || looks().await > before));
    cluster.servers[0].kill();
    main.block_on(finds_the_next(&cluster, &ylock, &name));
    drop(still);
}

/// A cluster, and a client with a lock on the first master, which has a replica.
async fn with_lock_on_first() -> (OwnCluster, Ylock, String) {
    let cluster = OwnCluster::start(1).await;
    let ylock = client_with(cluster.options().with_lease(Duration::from_secs(3))).await;
    for number in 0.. {
        let name = number.to_string();
        drop(ylock.locks("users").write(name.as_str()).await.unwrap());
        let keys: Vec<String> = cluster.servers[0].ask(&["KEYS", LOCKS]).await.unwrap();
        if !keys.is_empty() {
            return (cluster, ylock, name);
        }
    }
    unreachable!()
}

async fn finds_the_next(cluster: &OwnCluster, ylock: &Ylock, name: &str) {
    until("the replica takes over", async || {
        let info: String = cluster.servers[3].ask(&["INFO", "replication"]).await.unwrap();
        info.contains("role:master")
    })
    .await;
    until("the client finds it", async || ylock.locks("users").write(name).await.is_ok()).await;
}
