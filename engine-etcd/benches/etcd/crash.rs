//! The time for which the locks of a killed process stay closed.

use std::time::Duration;

use ylock_testkit::measure::crash;

/// The first argument of the process that is killed.
pub(crate) const ROLE: &str = "hold-until-killed";
/// The servers keep the etcd lease for four seconds then.
const LEASE: Duration = Duration::from_secs(3);
const ROUNDS: u32 = 3;

pub(crate) async fn run() {
    for round in 1..=ROUNDS {
        let waiter = super::client_with(LEASE).await.ylock;
        // Somewhere between two keep-alives.
        let time = crash::time_to_next(ROLE, waiter, Duration::from_millis(300) * round, async |_| {}).await;
        println!(
            "kill -9 of the holder, etcd lease 4 s: next one in after {:.2} s  (target 5 s)",
            time.as_secs_f64()
        );
    }
}

pub(crate) async fn hold_until_killed(group: &str) {
    crash::hold_until_killed(super::client_with(LEASE).await.ylock, group).await;
}
