//! Eight processes, killed one after the other; see [`stress`].

use std::time::Duration;

use ylock_testkit::measure::stress;

use super::{client, connect};

/// The argument that makes a process a child of this benchmark.
pub(crate) const ROLE: &str = "stress-worker";

pub(crate) async fn run() {
    let group = stress::run(ROLE).await;
    // A client sweeps for as long as it is there.
    let _sweeps = client(stress::LEASE).await;
    println!("{} rows are left", left(&group).await);
    let retention = Duration::from_secs(75);
    tokio::time::sleep(retention + stress::LEASE * 2).await;
    println!("{} rows are left a minute later", left(&group).await);
}

/// The work of a child process.
pub(crate) async fn work(folder: &str, name: &str) {
    stress::work(client(stress::LEASE).await.ylock, folder, name).await;
}

async fn left(group: &str) -> i64 {
    let count = "select (select count(*) from ylock.lock where position($1 in key) = 1)
        + (select count(*) from ylock.reader where position($1 in key) = 1)
        + (select count(*) from ylock.waiter where position($1 in key) = 1)";
    connect().await.query_one(count, &[&group.as_bytes()]).await.expect("a count").get(0)
}
