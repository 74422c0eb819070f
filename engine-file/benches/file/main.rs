//! The figures of the engine, against the bare calls of the system and against locks by `flock` alone, in the same run.
//!
//! `cargo xtask bench file [-- ARM...]`; without a name all arms run.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark measures real time, and its workers are its own tasks"
)]
#![allow(missing_docs, reason = "a benchmark has no users")]

mod folder;
mod hand_over;
mod killed;
mod raw;
mod uncontended;

use std::time::Duration;

use folder::Folder;
use ylock_engine_file::{FileEngine, FileOptions};
use ylock_testkit::measure::{self, Arm, Measured, crash, hold, stress};

const ARMS: [Arm; 5] = [
    Arm::both_ways("uncontended"),
    Arm::both_ways("hand-over"),
    Arm::once("killed"),
    Arm::once("held"),
    Arm::once("stress"),
];
/// The arguments that make a process a child of this benchmark.
const STRESS: &str = "stress-worker";
const HOLDER: &str = "holder";

fn main() {
    measure::run(&ARMS, async |words| match *words {
        ["uncontended"] => uncontended::run().await,
        ["hand-over"] => hand_over::run(),
        ["killed"] => killed::run().await,
        ["held"] => held().await,
        ["stress"] => stressed().await,
        [hand_over::OWN, time, _] => hand_over::take_turns(time).await,
        [hand_over::FLOCK, time, _] => hand_over::take_turns_by_flock(time),
        [STRESS, folder, name] => stress::work(client(stress::LEASE).await.ylock, folder, name).await,
        [HOLDER, group] => crash::hold_until_killed(client(killed::LEASE).await.ylock, group).await,
        [killed::WAITER, group] => killed::wait(client(killed::LEASE).await.ylock, group).await,
        _ => panic!("{words:?}: the arms are {:?}", ARMS.map(Arm::name)),
    });
}

/// Connects to the folder of the process that has started this one, or of this one.
async fn client(lease: Duration) -> Measured {
    let engine = FileEngine::connect(&FileOptions::new(Folder::path())).await.expect("a folder");
    Measured::new(engine, lease, |_| 0)
}

async fn held() {
    const LOCKS: usize = 100_000;
    let folder = Folder::new();
    hold(client(Duration::from_secs(30)).await, LOCKS, Duration::from_secs(60), async || {
        println!(
            "{} descriptors, {} bytes of the file system each",
            descriptors(),
            folder.bytes() / LOCKS as u64
        );
    })
    .await;
}

async fn stressed() {
    let folder = Folder::new();
    let _ = stress::run(STRESS).await;
    println!("{} files are left, {} after a client has come", folder.files(), {
        let client = client(stress::LEASE).await;
        client.ylock.close().await;
        folder.files()
    });
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}
