//! Eight processes, killed one after the other; see [`stress`].

use std::time::Duration;

use ylock_testkit::measure::stress;

use super::{address, client};

/// The argument that makes a process a child of this benchmark.
pub(crate) const ROLE: &str = "stress-worker";

pub(crate) async fn run() {
    let group = stress::run(ROLE).await;
    println!("{} fields are left of the locks beside the last tokens", left(&group).await);
    let retention = Duration::from_secs(60);
    tokio::time::sleep(retention + stress::LEASE * 2).await;
    println!("{} keys are left a minute later", keys(&group).await.len());
}

/// The work of a child process.
pub(crate) async fn work(folder: &str, name: &str) {
    stress::work(client(stress::LEASE).await.ylock, folder, name).await;
}

/// Counts holders, waiters and all else that there is in the locks of the group. The next acquisition ends what has expired.
async fn left(group: &str) -> usize {
    let mut connection = connect().await;
    let mut left = 0;
    for key in keys(group).await {
        let fields: Vec<String> =
            redis::cmd("HKEYS").arg(key).query_async(&mut connection).await.expect("fields");
        left += fields.iter().filter(|field| !["t", "e"].contains(&field.as_str())).count();
    }
    left
}

async fn keys(group: &str) -> Vec<String> {
    let pattern = format!("ylock:*:{group}:*");
    redis::cmd("KEYS").arg(pattern).query_async(&mut connect().await).await.expect("keys")
}

async fn connect() -> redis::aio::MultiplexedConnection {
    let client = redis::Client::open(address()).expect("an address");
    client.get_multiplexed_async_connection().await.expect("the server answers")
}
