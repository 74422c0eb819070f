//! Eight processes, killed one after the other; see [`stress`].

use std::time::Duration;

use ylock_testkit::measure::stress;

/// The argument that makes a process a child of this benchmark.
pub(crate) const ROLE: &str = "stress-worker";
const SESSION: Duration = Duration::from_secs(3);

pub(crate) async fn run() {
    let group = stress::run(ROLE).await;
    tokio::time::sleep(SESSION * 2).await;
    println!("{} nodes are left of the locks", left(&group).await);
}

/// The work of a child process.
pub(crate) async fn work(folder: &str, name: &str) {
    stress::work(super::client_with(SESSION, stress::LEASE).await.ylock, folder, name).await;
}

async fn left(group: &str) -> usize {
    let seen = super::raw().await;
    let buckets = seen.list_children("/ylock-bench").await.expect("the buckets");
    let mut left = 0;
    for bucket in buckets {
        let locks = seen.list_children(&format!("/ylock-bench/{bucket}")).await.expect("the locks");
        left += locks.iter().filter(|lock| lock.contains(group)).count();
    }
    left
}
