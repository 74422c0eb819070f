//! Why a timestamp is sent once: what a cluster makes of two copies of one write that end at different times.

use std::sync::Arc;
use std::time::Duration;

use scylla::statement::Consistency;
use tokio::time::Instant;
use ylock_testkit::eventually;

use super::cluster;
use super::coordinators::Coordinators;
use super::nodes::{self, Broken, How};

/// One table, and each node of the cluster as the coordinator that a test asks for.
struct Copies(Coordinators);

impl Copies {
    async fn connect() -> Self {
        // Makes the keyspace.
        cluster::client().await.close().await;
        let coordinators = Coordinators::connect().await;
        let table =
            "CREATE TABLE IF NOT EXISTS ylock_engine_test.timestamps (name text PRIMARY KEY, value text)";
        coordinators.session.query_unpaged(table, ()).await.unwrap();
        coordinators.session.query_unpaged("TRUNCATE ylock_engine_test.timestamps", ()).await.unwrap();
        Self(coordinators)
    }

    async fn write(&self, node: usize, consistency: Consistency, name: &str, stamp: i64, ttl: i32) {
        let cql = "UPDATE ylock_engine_test.timestamps USING TIMESTAMP ? AND TTL ? SET value = 'claimed' WHERE name = ?";
        let statement = self.0.statement(node, consistency, cql);
        let written =
            || async { self.0.session.query_unpaged(statement.clone(), (stamp, ttl, name)).await.is_ok() };
        eventually(Duration::from_secs(60), "the write is acknowledged", written).await;
    }

    /// Whether a quorum shows a row of this name.
    async fn shows(&self, node: usize, name: &str) -> bool {
        let cql = "SELECT value FROM ylock_engine_test.timestamps WHERE name = ?";
        let statement = self.0.statement(node, Consistency::Quorum, cql);
        let shown = Arc::new(parking_lot::Mutex::new(None));
        let answered = || async {
            let Ok(answer) = self.0.session.query_unpaged(statement.clone(), (name,)).await else {
                return false;
            };
            *shown.lock() = answer.into_rows_result().unwrap().maybe_first_row::<(String,)>().unwrap();
            true
        };
        eventually(Duration::from_secs(60), "a quorum answers", answered).await;
        shown.lock().is_some()
    }
}

/// Node 1 alone has the first copy, which ends while it is down; a quorum has the second one, which lives for minutes. With one
/// timestamp for both the row is gone as soon as node 1 is asked; with a new one for the second it is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a cassandra that may be broken: run `cargo xtask test`"]
async fn a_write_that_is_sent_again_lives_only_with_a_new_timestamp() {
    let copies = Copies::connect().await;
    let (short, long, stamp): (i32, i32, i64) = (5, 600, 1_000_000);
    let others = Broken::two(2, 3, How::Stopped).await;
    for name in ["same timestamp", "new timestamp"] {
        copies.write(1, Consistency::One, name, stamp, short).await;
    }
    let written = Instant::now();
    // Node 1 must find them again: what a node writes just before it is killed is lost.
    nodes::flush(1).await;
    let first = Broken::one(1, How::Killed).await;
    others.mend().await;
    copies.write(3, Consistency::Quorum, "same timestamp", stamp, long).await;
    copies.write(3, Consistency::Quorum, "new timestamp", stamp + 1, long).await;
    // The coordinator keeps them for node 1. Had that one both copies before the first ones ended, the longer one would win.
    let coordinator = Broken::one(3, How::Stopped).await;
    tokio::time::sleep_until(
        written + Duration::from_secs(short.unsigned_abs().into()) + Duration::from_secs(2),
    )
    .await;
    first.mend().await;
    let shown = [copies.shows(2, "same timestamp").await, copies.shows(2, "new timestamp").await];
    coordinator.mend().await;
    assert_eq!(shown, [false, true], "what Cassandra makes of it has changed");
}
