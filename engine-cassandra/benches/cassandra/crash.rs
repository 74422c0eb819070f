//! Measures how long the locks of a killed process stay closed.

use std::time::Duration;

use ylock_testkit::measure::crash;

use super::client;

/// The first argument of the process that is killed.
pub(crate) const ROLE: &str = "hold-until-killed";
const LEASE: Duration = Duration::from_secs(5);
const ROUNDS: u32 = 3;

pub(crate) async fn run() {
    // The clocks of the servers, and the next second.
    let ttl = LEASE + Duration::from_secs(1 + 2);
    for round in 1..=ROUNDS {
        let waiter = client(LEASE).await.ylock;
        // Somewhere between two renewals.
        let time = crash::time_to_next(ROLE, waiter, Duration::from_millis(700) * round).await;
        println!(
            "kill -9 of the holder, lease 5 s: next one in after {:.2} s  (target {} s)",
            time.as_secs_f64(),
            ttl.as_secs() + 1
        );
    }
}

pub(crate) async fn hold_until_killed(group: &str) {
    crash::hold_until_killed(client(LEASE).await.ylock, group).await;
}
