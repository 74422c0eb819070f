//! The figures of the engine, against the raw requests on the same session in the same run.
//!
//! `cargo xtask bench cassandra [-- ARM...]`; without a name all arms run.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark measures real time, and its workers are its own tasks"
)]
#![allow(missing_docs, reason = "a benchmark has no users")]

mod crash;
mod crowd;
mod hand_over;
mod held;
mod local;
mod names;
mod starts;
mod uncontended;

use std::time::Duration;

use ylock_engine_cassandra::options::{Notify, SchemaMode};
use ylock_engine_cassandra::{CassandraEngine, CassandraOptions};
use ylock_testkit::measure::{self, Arm, Measured};

pub(crate) const ARMS: [Arm; 11] = [
    Arm::both_ways("uncontended"),
    Arm::both_ways("hand-over"),
    Arm::both_ways("told"),
    Arm::both_ways("local"),
    Arm::once("crash"),
    Arm::once("told-crash"),
    Arm::once("crowd"),
    Arm::once("told-crowd"),
    Arm::once("held"),
    Arm::once("starts"),
    Arm::once("names"),
];

fn main() {
    measure::run(&ARMS, async |words| match *words {
        ["uncontended"] => uncontended::run().await,
        ["hand-over"] => hand_over::run(Notify::Off).await,
        ["told"] => hand_over::run(Notify::Auto).await,
        ["local"] => local::run().await,
        ["crash"] => crash::run(Notify::Off).await,
        ["told-crash"] => crash::run(Notify::Auto).await,
        ["crowd"] => crowd::run(Notify::Off).await,
        ["told-crowd"] => crowd::run(Notify::Auto).await,
        ["held"] => held::run().await,
        ["starts"] => starts::run().await,
        ["names"] => names::run().await,
        [role, group] => crash::hold_until_killed(role, group).await,
        _ => panic!("{words:?}: the arms are {:?}", ARMS.map(Arm::name)),
    });
}

pub(crate) async fn client(lease: Duration) -> Measured {
    client_by(lease, Notify::default()).await
}

/// A client whose waiters learn of their turn like this.
pub(crate) async fn client_by(lease: Duration, notify: Notify) -> Measured {
    let engine =
        CassandraEngine::connect(&options(lease).with_notify(notify)).await.expect("the cluster answers");
    Measured::new(engine, lease, CassandraEngine::requests)
}

pub(crate) const KEYSPACE: &str = "ylock_engine_bench";

pub(crate) fn options(lease: Duration) -> CassandraOptions {
    let options = CassandraOptions::new(KEYSPACE).with_schema(SchemaMode::Create).with_lease(lease);
    hosts().iter().fold(options, |options, host| options.with_host(host, 9042))
}

pub(crate) fn hosts() -> Vec<String> {
    let hosts =
        std::env::var("YLOCK_TEST_CASSANDRA").unwrap_or_else(|_| "127.0.0.1,127.0.0.2,127.0.0.3".to_owned());
    hosts.split(',').map(str::to_owned).collect()
}
