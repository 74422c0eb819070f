//! The time for which the locks of a killed process stay closed, and the delay by a waiter that was killed.

use std::time::Duration;

use ylock_testkit::measure::crash;

/// The first argument of the process that is killed.
pub(crate) const ROLE: &str = "hold-until-killed";
const LEASE: Duration = Duration::from_secs(5);
/// Somewhere between two renewals.
const STEP: Duration = Duration::from_millis(500);

pub(crate) async fn run() {
    let client = async || super::client(LEASE).await.ylock;
    crash::run(ROLE, "lease 5 s", "6 s", STEP, client).await;
    for after in [0, 5, 50, 500].map(Duration::from_millis) {
        let time = crash::time_past_killed(ROLE, client().await, client().await, after).await;
        println!(
            "kill -9 of the waiter at the head, {after:?} before the release: next one in after {:.1} ms  (target 200 ms)",
            time.as_secs_f64() * 1e3
        );
    }
}

pub(crate) async fn hold_until_killed(group: &str) {
    crash::hold_until_killed(super::client(LEASE).await.ylock, group).await;
}
