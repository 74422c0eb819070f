//! The figures of the engine, against the raw requests on the same session in the same run.
//!
//! `cargo xtask bench cassandra [-- ARM...]`; without a name all arms run.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark measures real time, and its workers are its own tasks"
)]
#![allow(missing_docs, reason = "a benchmark has no users")]

mod crash;
mod hand_over;
mod held;
mod local;
mod names;
mod starts;
mod uncontended;

use std::time::Duration;

use ylock_core::testkit::measure::Measured;
use ylock_engine_cassandra::options::SchemaMode;
use ylock_engine_cassandra::{CassandraEngine, CassandraOptions};

pub(crate) const ARMS: [&str; 7] = ["uncontended", "hand-over", "local", "crash", "held", "starts", "names"];

fn main() {
    let arms: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    if let [role, group] = arms.as_slice()
        && role == crash::ROLE
    {
        runtime.block_on(crash::hold_until_killed(group));
        return;
    }
    let wanted = |arm: &str| arms.is_empty() || arms.iter().any(|name| name == arm);
    for arm in ARMS.into_iter().filter(|arm| wanted(arm)) {
        println!("\n## {arm}");
        runtime.block_on(run(arm));
    }
}

async fn run(arm: &str) {
    match arm {
        "uncontended" => uncontended::run().await,
        "hand-over" => hand_over::run().await,
        "local" => local::run().await,
        "crash" => crash::run().await,
        "held" => held::run().await,
        "starts" => starts::run().await,
        _ => names::run().await,
    }
}

pub(crate) async fn client(lease: Duration) -> Measured {
    let engine = CassandraEngine::connect(&options(lease)).await.expect("the cluster answers");
    Measured::new(engine, lease, CassandraEngine::requests)
}

const KEYSPACE: &str = "ylock_engine_bench";

pub(crate) fn options(lease: Duration) -> CassandraOptions {
    let hosts =
        std::env::var("YLOCK_TEST_CASSANDRA").unwrap_or_else(|_| "127.0.0.1,127.0.0.2,127.0.0.3".to_owned());
    let options = CassandraOptions::new(KEYSPACE).with_schema(SchemaMode::Create).with_lease(lease);
    hosts.split(',').fold(options, |options, host| options.with_host(host, 9042))
}
