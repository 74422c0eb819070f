//! Measures how long the locks of a killed process stay closed.

use std::time::Duration;

use ylock_testkit::measure::crash;

use super::client;

/// The first argument of the process that is killed.
pub(crate) const ROLE: &str = "hold-until-killed";
const LEASE: Duration = Duration::from_secs(5);
const ROUNDS: u32 = 3;

pub(crate) async fn run() {
    // A waiter has seen the last heartbeat after a pause, and looks a pause after the lease at the latest; then it buries and looks.
    let target = LEASE + Duration::from_millis(700);
    for round in 1..=ROUNDS {
        let waiter = client(LEASE).await.ylock;
        // Somewhere between two renewals.
        let time = crash::time_to_next(ROLE, waiter, Duration::from_millis(700) * round).await;
        println!(
            "kill -9 of the holder, lease 5 s: next one in after {:.2} s  (target {:.1} s)",
            time.as_secs_f64(),
            target.as_secs_f64()
        );
    }
}

pub(crate) async fn hold_until_killed(group: &str) {
    crash::hold_until_killed(client(LEASE).await.ylock, group).await;
}
