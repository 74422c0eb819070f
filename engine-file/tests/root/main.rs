//! What only root can set up: file systems that are full, and processes of several users. Left out, and counted as left out, elsewhere.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "a test runs on tokio alone")]

mod disk;
#[path = "../folder/mod.rs"]
mod folder;
mod full;
mod power_cut;
mod users;

use std::time::Duration;

/// Longer than anything takes that is not to wait for a lease.
const SOON: Duration = Duration::from_secs(10);

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    ylock_testkit::within(SOON, what, future).await
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn skip(test: &str, why: &str) {
    ylock_testkit::note_skip("file", test, why);
}
