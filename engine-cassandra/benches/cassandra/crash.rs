//! Measures how long the locks of a killed process stay closed.

use std::time::Duration;

use ylock_engine_cassandra::options::Notify;
use ylock_testkit::measure::crash;

use super::client_by;

/// The first argument of the process that is killed.
pub(crate) const ROLE: &str = "hold-until-killed";
/// The same with hints.
pub(crate) const TOLD_ROLE: &str = "hold-until-killed-told";
const LEASE: Duration = Duration::from_secs(5);
const ROUNDS: u32 = 3;

pub(crate) async fn run(notify: Notify) {
    let role = if notify == Notify::Udp { TOLD_ROLE } else { ROLE };
    // A waiter has seen the last heartbeat after a pause, and looks a pause after the lease at the latest; then it buries and looks.
    let target = LEASE + Duration::from_millis(700);
    for round in 1..=ROUNDS {
        let waiter = client_by(LEASE, notify).await.ylock;
        // Somewhere between two renewals.
        let time = crash::time_to_next(role, waiter, Duration::from_millis(700) * round).await;
        println!(
            "kill -9 of the holder, lease 5 s, notify={notify}: next one in after {:.2} s  (target {:.1} s)",
            time.as_secs_f64(),
            target.as_secs_f64()
        );
    }
}

pub(crate) async fn hold_until_killed(group: &str, notify: Notify) {
    crash::hold_until_killed(client_by(LEASE, notify).await.ylock, group).await;
}
