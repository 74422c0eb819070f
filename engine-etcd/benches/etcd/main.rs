//! The figures of the engine, against the same requests sent by hand over the same driver, in the same run.
//!
//! `cargo xtask bench etcd [-- ARM...]`; without a name all arms run. With `YLOCK_TEST_ETCD` that names a cluster the figures are the cluster's. The
//! servers that it starts do not wait for their disk (`--unsafe-no-fsync`), so what the client adds weighs more here than in production.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark measures real time, and its workers are its own tasks"
)]
#![allow(missing_docs, reason = "a benchmark has no users")]

mod crash;
mod hand_over;
mod held;
mod stress;
mod uncontended;

use std::sync::Arc;
use std::time::Duration;

use ylock_core::environment::SystemEnvironment;
use ylock_core::url::Host;
use ylock_engine_etcd::algorithm::store::{Put, Step, Store, Transaction};
use ylock_engine_etcd::{EtcdEngine, EtcdOptions};
use ylock_testkit::measure::{self, Arm, Measured};

const ARMS: [Arm; 5] = [
    Arm::both_ways("uncontended"),
    Arm::both_ways("hand-over"),
    Arm::once("crash"),
    Arm::once("held"),
    Arm::once("stress"),
];
const LEASE: Duration = Duration::from_secs(10);

fn main() {
    measure::run(&ARMS, async |words| match *words {
        ["uncontended"] => uncontended::run().await,
        ["hand-over"] => hand_over::run().await,
        ["crash"] => crash::run().await,
        ["held"] => held::run().await,
        ["stress"] => stress::run().await,
        [stress::ROLE, folder, name] => stress::work(folder, name).await,
        [crash::ROLE, group] => crash::hold_until_killed(group).await,
        _ => panic!("{words:?}: the arms are {:?}", ARMS.map(Arm::name)),
    });
}

pub(crate) async fn client() -> Measured {
    client_with(LEASE).await
}

pub(crate) async fn client_with(lease: Duration) -> Measured {
    let engine = EtcdEngine::connect(&options(lease)).await.expect("the server answers");
    Measured::of_kind(engine, lease, EtcdEngine::requests, ("leases made", EtcdEngine::leases))
}

fn options(lease: Duration) -> EtcdOptions {
    let servers = std::env::var("YLOCK_TEST_ETCD").unwrap_or_else(|_| "127.0.0.1:2379".to_owned());
    let hosts = servers.split(',').map(|server| {
        let (name, port) = server.rsplit_once(':').expect("host:port");
        Host::new(name, port.parse::<u16>().ok())
    });
    EtcdOptions::new(hosts).with_prefix("ylock-bench").with_lease(lease)
}

/// The driver of the engine, without the engine.
pub(crate) fn raw() -> Arc<dyn Store> {
    EtcdEngine::servers(&options(LEASE), &SystemEnvironment::shared()).expect("the options are right")
}

pub(crate) async fn put(raw: &dyn Store, key: &str, lease: i64) {
    let put = Put { key: key.into(), value: b"by hand".to_vec(), lease: Some(lease) };
    raw.transact(Transaction { then: vec![Step::Put(put)], ..Transaction::default() }).await.expect("put");
}

pub(crate) async fn delete(raw: &dyn Store, key: &str) {
    let delete = Step::Delete(key.into());
    raw.transact(Transaction { then: vec![delete], ..Transaction::default() }).await.expect("deleted");
}
