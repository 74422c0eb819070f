//! The servers that `cargo xtask test` starts, as the tests see them.

#![allow(dead_code, reason = "each test binary uses another part of it")]

use std::time::Duration;

use ylock_core::url::Host;
use ylock_engine_etcd::{EtcdEngine, EtcdOptions};

/// The lease of most tests: long enough for a busy machine, short enough to wait for.
pub(crate) const LEASE: Duration = Duration::from_secs(4);
/// The prefix of the locks of the tests.
pub(crate) const PREFIX: &str = "ylock-test";

/// The servers that a test is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Servers {
    One,
    Cluster,
}

impl Servers {
    pub(crate) fn hosts(self) -> Vec<Host> {
        let variable = match self {
            Self::One => "YLOCK_TEST_ETCD",
            Self::Cluster => "YLOCK_TEST_ETCD_CLUSTER",
        };
        let servers = std::env::var(variable).unwrap_or_else(|_| {
            panic!("{variable} names the servers: run `cargo xtask test etcd`, which starts them")
        });
        servers.split(',').map(host).collect()
    }
}

pub(crate) fn host(server: &str) -> Host {
    let (name, port) = server.rsplit_once(':').expect("host:port");
    Host::new(name, port.parse::<u16>().expect("a port"))
}

/// Returns the options that reach them.
pub(crate) fn options(hosts: Vec<Host>) -> EtcdOptions {
    EtcdOptions::new(hosts).with_prefix(PREFIX).with_lease(LEASE)
}

/// A new client's engine.
pub(crate) async fn engine(hosts: Vec<Host>) -> EtcdEngine {
    EtcdEngine::connect(&options(hosts)).await.expect("the servers under test answer")
}

/// Returns how many contenders of a group's locks are in the store.
pub(crate) async fn left_behind(hosts: &[Host], group: &str) -> usize {
    let engine = engine(hosts.to_vec()).await;
    let (mut count, mut after) = (0, None);
    loop {
        let page =
            ylock_core::engine::Engine::keys(&engine, Some(group), after.as_deref()).await.expect("a page");
        count += page.keys.len();
        after = page.next;
        if after.is_none() {
            return count;
        }
    }
}
