//! The servers that `cargo xtask test` starts, as the tests see them.

#![allow(dead_code, reason = "each test binary uses another part of it")]

pub(crate) mod proxy;

use std::time::Duration;

use ylock_core::url::Host;
use ylock_engine_zookeeper::{ZookeeperEngine, ZookeeperOptions};
use zookeeper_client::Client;

/// The lease of most tests: long enough for a busy machine, short enough to wait for.
pub(crate) const LEASE: Duration = Duration::from_secs(3);
/// The session of most tests. Longer than that lease needs, because no lease can be longer than five sixths of the session, and some tests
/// ask for longer ones. The servers must allow it.
pub(crate) const SESSION: Duration = Duration::from_millis(7_200);
/// The session of clients whose leases are to outlast a test, however busy the machine is.
pub(crate) const LONG_SESSION: Duration = Duration::from_secs(60);
/// The node that the locks of the tests are below: short, because a client may have many locks.
pub(crate) const BASE: &str = "/ylock-test";

/// The servers that a test is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Servers {
    One,
    Ensemble,
}

impl Servers {
    pub(crate) fn hosts(self) -> Vec<Host> {
        let variable = match self {
            Self::One => "YLOCK_TEST_ZOOKEEPER",
            Self::Ensemble => "YLOCK_TEST_ZOOKEEPER_ENSEMBLE",
        };
        let servers = std::env::var(variable).unwrap_or_else(|_| {
            panic!("{variable} names the servers: run `cargo xtask test zookeeper`, which starts them")
        });
        servers.split(',').map(host).collect()
    }
}

pub(crate) fn host(server: &str) -> Host {
    let (name, port) = server.rsplit_once(':').expect("host:port");
    Host::new(name, port.parse::<u16>().expect("a port"))
}

/// Returns the options that reach them.
pub(crate) fn options(hosts: Vec<Host>) -> ZookeeperOptions {
    ZookeeperOptions::new(hosts).with_base(BASE).with_lease(LEASE).with_session(SESSION)
}

/// A new client's engine.
pub(crate) async fn engine(hosts: Vec<Host>) -> ZookeeperEngine {
    ZookeeperEngine::connect(&options(hosts)).await.expect("the servers under test answer")
}

/// A client without ylock.
pub(crate) async fn raw(hosts: &[Host]) -> Client {
    let servers = hosts.iter().map(|host| format!("{}:{}", host.name, host.port.expect("a port")));
    let servers: Vec<_> = servers.collect();
    Client::connect(&servers.join(",")).await.expect("the servers under test answer")
}

/// Returns the nodes of a group's locks and of their contenders, empty locks included. They are found by what is stored in them, because
/// long names are not written out in paths.
pub(crate) async fn left_behind(hosts: &[Host], group: &str) -> Vec<String> {
    let client = raw(hosts).await;
    let prefix = format!("{}:{group}", group.len());
    let mut left = Vec::new();
    client.sync("/").await.expect("sync");
    for bucket in client.list_children(BASE).await.unwrap_or_default() {
        let bucket = format!("{BASE}/{bucket}");
        for lock in client.list_children(&bucket).await.unwrap_or_default() {
            let lock = format!("{bucket}/{lock}");
            let Ok((key, _)) = client.get_data(&lock).await else { continue };
            if !key.starts_with(prefix.as_bytes()) {
                continue;
            }
            let contenders = client.list_children(&lock).await.unwrap_or_default();
            left.extend(contenders.iter().map(|contender| format!("{lock}/{contender}")));
            left.push(lock);
        }
    }
    left
}

/// Returns the nodes of all locks below a base.
pub(crate) async fn left_in(hosts: &[Host], base: &str) -> Vec<String> {
    let client = raw(hosts).await;
    let mut left = Vec::new();
    for bucket in client.list_children(base).await.unwrap_or_default() {
        left.extend(client.list_children(&format!("{base}/{bucket}")).await.unwrap_or_default());
    }
    left
}
