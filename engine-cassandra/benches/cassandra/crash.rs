//! Measures how long the locks of a killed process stay closed.

use std::time::Duration;

use ylock_core::Locks;
use ylock_engine_cassandra::options::Notify;
use ylock_testkit::measure::{Measured, Times, crash};

use super::client_by;

/// The beginning of the first argument of a process that is killed.
const ROLE: &str = "hold-until-killed";
const LEASES: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(1)];
const ROUNDS: u32 = 5;

pub(crate) async fn run(notify: Notify) {
    for lease in LEASES {
        let target =
            lease + Duration::from_millis(if notify == Notify::Auto { 1_200 } else { 700 }).min(lease);
        let mut times = Times::default();
        for round in 0..ROUNDS {
            let waiter = client_by(lease, notify).await.ylock;
            let other = client_by(lease, notify).await;
            // One after the other between two renewals, a third of the lease apart.
            let after = lease / 3 + lease / 3 * round / ROUNDS;
            let role = format!("{ROLE}:{}:{notify}", lease.as_millis());
            let time = crash::time_to_next(&role, waiter, after, async |locks| {
                hand_over(locks, &other).await;
                other.ylock.close().await;
            });
            times.push(time.await);
        }
        println!(
            "kill -9 of the holder, lease {lease:?}, notify={notify}: next one in after {:.2} s, at most {:.2} s  (target {:.1} s)",
            times.quantile(0.5).as_secs_f64(),
            times.quantile(1.0).as_secs_f64(),
            target.as_secs_f64()
        );
    }
}

/// Hands the lock from one client to the other and back, so that the waiter knows whether it is told of turns.
async fn hand_over(locks: &Locks, other: &Measured) {
    let others = other.ylock.locks(locks.group());
    for _ in 0..3 {
        let guard = others.write("name").await.expect("granted");
        let waiting = tokio::spawn({
            let locks = locks.clone();
            async move { drop(locks.write("name").await.expect("granted")) }
        });
        while other.ylock.inspect(locks.group(), "name").await.expect("answers").queue.is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        drop(guard);
        waiting.await.expect("a task");
    }
}

/// Does what a process does that is killed, and has this first argument.
pub(crate) async fn hold_until_killed(role: &str, group: &str) {
    let words: Vec<_> = role.split(':').collect();
    let [ROLE, lease, notify] = *words else { panic!("{role} is no role") };
    let lease = Duration::from_millis(lease.parse().expect("milliseconds"));
    let notify = if notify == Notify::Auto.to_string() { Notify::Auto } else { Notify::Off };
    crash::hold_until_killed(client_by(lease, notify).await.ylock, group).await;
}
