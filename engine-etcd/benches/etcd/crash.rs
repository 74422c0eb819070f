//! The time for which the locks of a killed process stay closed.

use std::time::Duration;

use ylock_testkit::measure::crash;

/// The first argument of the process that is killed.
pub(crate) const ROLE: &str = "hold-until-killed";
/// The servers keep the etcd lease for four seconds then.
const LEASE: Duration = Duration::from_secs(3);
/// Somewhere between two keep-alives.
const STEP: Duration = Duration::from_millis(300);

pub(crate) async fn run() {
    crash::run(ROLE, "etcd lease 4 s", "5 s", STEP, async || super::client_with(LEASE).await.ylock).await;
}

pub(crate) async fn hold_until_killed(group: &str) {
    crash::hold_until_killed(super::client_with(LEASE).await.ylock, group).await;
}
