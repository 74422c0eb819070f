//! Runs `examples/scheduler`: three real processes that are killed in turn, and a journal of who led and which periods were run.

#![cfg(all(feature = "file", target_os = "linux"))]

mod example;

use std::time::Duration;

#[tokio::test]
async fn replicas_that_are_killed_lead_one_by_one_and_run_each_period_once() {
    let seconds = ylock_testkit::short_or_long("8", "120");
    let report = example::run("scheduler", seconds, Duration::from_secs(240)).await;
    assert!(!report.contains("0 replicas killed"), "no replica was killed, the run is void:\n{report}");
}
