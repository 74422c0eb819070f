//! Eight processes, killed one after the other; see [`stress`].

use std::time::Duration;

use ylock_testkit::measure::stress;

/// The argument that makes a process a child of this benchmark.
pub(crate) const ROLE: &str = "stress-worker";
/// Longer than the etcd leases of processes that were killed.
const REST: Duration = Duration::from_secs(8);

pub(crate) async fn run() {
    let group = stress::run(ROLE).await;
    tokio::time::sleep(REST).await;
    let ylock = super::client().await.ylock;
    let (mut locks, mut left) = (ylock.list().of_group(&group), 0);
    while locks.next().await.expect("a listing").is_some() {
        left += 1;
    }
    println!("{left} locks are left");
}

/// The work of a child process.
pub(crate) async fn work(folder: &str, name: &str) {
    stress::work(super::client_with(stress::LEASE).await.ylock, folder, name).await;
}
