//! Runs `examples/owner`: three real processes, of which the owner is paused before it sends, and a worker that refuses what is sent too late.

#![cfg(all(feature = "file", target_os = "linux"))]

mod example;

use std::time::Duration;

#[tokio::test]
async fn work_of_an_owner_that_was_paused_is_refused() {
    let pauses = ylock_testkit::short_or_long("3", "60");
    let report = example::run("owner", pauses, Duration::from_secs(240)).await;
    assert!(report.contains("and the worker refused it"), "no owner was paused, the run is void:\n{report}");
}
