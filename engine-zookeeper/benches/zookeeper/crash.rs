//! The time for which the locks of a killed process stay closed.

use std::time::Duration;

use ylock_testkit::measure::crash;

/// The first argument of the process that is killed.
pub(crate) const ROLE: &str = "hold-until-killed";
const SESSION: Duration = Duration::from_secs(4);
const LEASE: Duration = Duration::from_secs(3);
/// Somewhere between two heartbeats.
const STEP: Duration = Duration::from_millis(700);

pub(crate) async fn run() {
    let client = async || super::client_with(SESSION, LEASE).await.ylock;
    crash::run(ROLE, "session 4 s", "4 s and a tick", STEP, client).await;
}

pub(crate) async fn hold_until_killed(group: &str) {
    crash::hold_until_killed(super::client_with(SESSION, LEASE).await.ylock, group).await;
}
