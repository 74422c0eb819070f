//! The figures of the engine, against the same driver without it, in the same run.
//!
//! With the servers of `YLOCK_TEST_ZOOKEEPER`, which may be several: `cargo bench -p ylock-engine-zookeeper [-- ARM...]`; without a
//! name all arms run.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark measures real time, and its workers are its own tasks"
)]
#![allow(missing_docs, reason = "a benchmark has no users")]

mod figures;
mod hand_over;
mod raw;
mod uncontended;

use std::time::Duration;

use ylock_core::url::EngineUrl;
use ylock_core::{Options, Ylock};
use ylock_engine_zookeeper::{ZookeeperEngine, ZookeeperOptions};

const ARMS: [&str; 3] = ["uncontended", "own-names", "hand-over"];

fn main() {
    let arms: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let wanted = |arm: &str| arms.is_empty() || arms.iter().any(|name| name == arm);
    for arm in ARMS.into_iter().filter(|arm| wanted(arm)) {
        println!("\n## {arm}");
        match arm {
            "uncontended" => runtime.block_on(uncontended::run(1)),
            "own-names" => runtime.block_on(uncontended::run(32)),
            _ => runtime.block_on(hand_over::run()),
        }
    }
}

pub(crate) async fn client(lease: Duration) -> Ylock {
    let options = Options::default().with_lease(lease);
    let url = EngineUrl::parse(&format!("zookeeper://{}/ylock-bench", servers())).expect("a list of servers");
    let engine = ZookeeperOptions::from_url(&url, &options).expect("options");
    let engine = ZookeeperEngine::connect(&engine).await.expect("the servers answer");
    Ylock::new(engine).with_options(options)
}

pub(crate) fn servers() -> String {
    std::env::var("YLOCK_TEST_ZOOKEEPER").unwrap_or_else(|_| "127.0.0.1:2181".to_owned())
}

/// A group that no other run has used.
pub(crate) fn group() -> String {
    format!("bench-{}", ylock_core::Owner::new())
}
