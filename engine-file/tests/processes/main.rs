//! Clients in processes of their own, which are killed and stopped: each test starts itself once more.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "a test runs on tokio alone")]

mod at_once;
mod between_calls;
mod connecting;
#[path = "../folder/mod.rs"]
mod folder;
mod killed;
mod limited;
mod random_kills;

use std::path::Path;
use std::time::Duration;

use folder::Folder;
use ylock_core::{Options, Ylock};
use ylock_engine_file::{FileEngine, FileOptions};
use ylock_testkit::ChildProcess;

/// So long that no test sees it end, nor a waiter that looks by itself, which it does six times in a lease.
const LEASE: Duration = Duration::from_secs(3600);
/// What must happen at once, on a machine that has ten times as much to do as it can.
const SOON: Duration = Duration::from_secs(10);

async fn client(folder: &Path, lease: Duration) -> Ylock {
    let engine = FileEngine::connect(&FileOptions::new(folder)).await.unwrap();
    Ylock::new(engine).with_options(Options::default().with_lease(lease))
}

/// Starts the test of this name once more, and tells it the folder and `more`.
fn start(test: &str, folder: &Folder, more: &str) -> ChildProcess {
    ChildProcess::start(test, &format!("{more}\n{}", folder.path().display()))
}

/// What the other process was told: `more`, and its own client of the folder.
async fn told(lease: Duration) -> Option<(String, Ylock)> {
    let told = ChildProcess::told()?;
    let (more, folder) = told.split_once('\n').unwrap();
    Some((more.to_owned(), client(Path::new(folder), lease).await))
}

/// Returns how many wait for the lock of the tests.
async fn waiters(ylock: &Ylock) -> usize {
    ylock.inspect("users", "alice").await.unwrap().queue.len()
}

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    ylock_testkit::within(SOON, what, future).await
}

async fn until(what: &str, condition: impl AsyncFn() -> bool) {
    within(what, async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}
