//! The figures of the engine, against the same scripts called raw over one connection of the same driver, in the same run.
//!
//! `cargo xtask bench redis [-- ARM...]`; without a name all arms run.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark measures real time, and its workers are its own tasks"
)]
#![allow(missing_docs, reason = "a benchmark has no users")]

mod hand_over;
mod held;
mod memory;
mod raw;
mod stress;
mod uncontended;

use std::time::Duration;

use ylock_engine_redis::{RedisEngine, RedisOptions};
use ylock_testkit::measure::{self, Arm, Measured};

const ARMS: [Arm; 6] = [
    Arm::both_ways("uncontended"),
    Arm::both_ways("own-names"),
    Arm::both_ways("hand-over"),
    Arm::once("memory"),
    Arm::once("held"),
    Arm::once("stress"),
];

fn main() {
    measure::run(&ARMS, async |words| match *words {
        ["uncontended"] => uncontended::run(1).await,
        ["own-names"] => uncontended::run(32).await,
        ["hand-over"] => hand_over::run().await,
        ["memory"] => memory::run(),
        ["held"] => held::run().await,
        ["stress"] => stress::run().await,
        [stress::ROLE, folder, name] => stress::work(folder, name).await,
        _ => panic!("{words:?}: the arms are {:?}", ARMS.map(Arm::name)),
    });
}

pub(crate) async fn client(lease: Duration) -> Measured {
    let engine = RedisEngine::connect(&options(lease)).await.expect("the server answers");
    Measured::new(engine, lease, RedisEngine::requests)
}

pub(crate) fn address() -> (String, u16) {
    let address = std::env::var("YLOCK_TEST_REDIS").unwrap_or_else(|_| "127.0.0.1:6379".to_owned());
    let (host, port) = address.rsplit_once(':').expect("host:port");
    (host.to_owned(), port.parse().expect("a port"))
}

fn options(lease: Duration) -> RedisOptions {
    let (host, port) = address();
    RedisOptions::new(host, port).with_lease(lease)
}
