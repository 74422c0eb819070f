//! Why a timestamp is sent once: what a cluster makes of two copies of one write that end at different times.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::policies::load_balancing::{NodeIdentifier, SingleTargetLoadBalancingPolicy};
use scylla::statement::{Consistency, Statement};
use tokio::time::Instant;
use ylock_testkit::eventually;

use super::cluster;
use super::nodes::{self, Broken, How};

/// One table, and each node of the cluster as the coordinator that a test asks for.
struct Coordinators {
    session: Session,
    nodes: Vec<SocketAddr>,
}

impl Coordinators {
    async fn connect() -> Self {
        // Makes the keyspace.
        cluster::client().await.close().await;
        let nodes = std::env::var("YLOCK_TEST_CASSANDRA").expect("names the nodes");
        let nodes: Vec<SocketAddr> = nodes.split(',').map(address).collect();
        let session = SessionBuilder::new().known_nodes_addr(&nodes).build().await.unwrap();
        let table =
            "CREATE TABLE IF NOT EXISTS ylock_engine_test.timestamps (name text PRIMARY KEY, value text)";
        session.query_unpaged(table, ()).await.unwrap();
        session.query_unpaged("TRUNCATE ylock_engine_test.timestamps", ()).await.unwrap();
        Self { session, nodes }
    }

    fn statement(&self, node: usize, consistency: Consistency, cql: &str) -> Statement {
        let target = NodeIdentifier::NodeAddress(self.nodes[node - 1]);
        let policy = SingleTargetLoadBalancingPolicy::new(target, None);
        let profile = ExecutionProfile::builder()
            .load_balancing_policy(policy)
            .request_timeout(Some(Duration::from_secs(5)))
            .build();
        let mut statement = Statement::new(cql);
        statement.set_execution_profile_handle(Some(profile.into_handle()));
        statement.set_consistency(consistency);
        statement
    }

    async fn write(&self, node: usize, consistency: Consistency, name: &str, stamp: i64, ttl: i32) {
        let cql = "UPDATE ylock_engine_test.timestamps USING TIMESTAMP ? AND TTL ? SET value = 'claimed' WHERE name = ?";
        let statement = self.statement(node, consistency, cql);
        let written =
            || async { self.session.query_unpaged(statement.clone(), (stamp, ttl, name)).await.is_ok() };
        eventually(Duration::from_secs(60), "the write is acknowledged", written).await;
    }

    /// Whether a quorum shows a row of this name.
    async fn shows(&self, node: usize, name: &str) -> bool {
        let cql = "SELECT value FROM ylock_engine_test.timestamps WHERE name = ?";
        let statement = self.statement(node, Consistency::Quorum, cql);
        let shown = Arc::new(parking_lot::Mutex::new(None));
        let answered = || async {
            let Ok(answer) = self.session.query_unpaged(statement.clone(), (name,)).await else {
                return false;
            };
            *shown.lock() = answer.into_rows_result().unwrap().maybe_first_row::<(String,)>().unwrap();
            true
        };
        eventually(Duration::from_secs(60), "a quorum answers", answered).await;
        shown.lock().is_some()
    }
}

/// `host:port`, or a host that listens where Cassandra does by itself.
fn address(node: &str) -> SocketAddr {
    node.parse().unwrap_or_else(|_| SocketAddr::new(node.parse().expect("an address"), 9042))
}

/// Node 1 alone has the first copy, which ends while it is down; a quorum has the second one, which lives for minutes. With one
/// timestamp for both the row is gone as soon as node 1 is asked; with a new one for the second it is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a cassandra that may be broken: run `cargo xtask test`"]
async fn a_write_that_is_sent_again_lives_only_with_a_new_timestamp() {
    let coordinators = Coordinators::connect().await;
    let (short, long, stamp): (i32, i32, i64) = (5, 600, 1_000_000);
    let others = Broken::two(2, 3, How::Stopped).await;
    for name in ["same timestamp", "new timestamp"] {
        coordinators.write(1, Consistency::One, name, stamp, short).await;
    }
    let written = Instant::now();
    // Node 1 must find them again: what a node writes just before it is killed is lost.
    nodes::flush(1).await;
    let first = Broken::one(1, How::Killed).await;
    others.mend().await;
    coordinators.write(3, Consistency::Quorum, "same timestamp", stamp, long).await;
    coordinators.write(3, Consistency::Quorum, "new timestamp", stamp + 1, long).await;
    // The coordinator keeps them for node 1. Had that one both copies before the first ones ended, the longer one would win.
    let coordinator = Broken::one(3, How::Stopped).await;
    tokio::time::sleep_until(
        written + Duration::from_secs(short.unsigned_abs().into()) + Duration::from_secs(2),
    )
    .await;
    first.mend().await;
    let shown = [coordinators.shows(2, "same timestamp").await, coordinators.shows(2, "new timestamp").await];
    coordinator.mend().await;
    assert_eq!(shown, [false, true], "what Cassandra makes of it has changed");
}
