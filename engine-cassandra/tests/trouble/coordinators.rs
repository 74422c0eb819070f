//! Each node of the cluster as the coordinator that a test asks for.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::policies::host_filter::AllowListHostFilter;
use scylla::policies::load_balancing::{NodeIdentifier, SingleTargetLoadBalancingPolicy};
use scylla::statement::{Consistency, Statement};

/// A session, and the nodes in their order.
#[derive(Debug)]
pub(crate) struct Coordinators {
    pub(crate) session: Session,
    pub(crate) nodes: Vec<SocketAddr>,
}

impl Coordinators {
    pub(crate) async fn connect() -> Self {
        let nodes = std::env::var("YLOCK_TEST_CASSANDRA").expect("names the nodes");
        let nodes: Vec<SocketAddr> = nodes.split(',').map(address).collect();
        let session = SessionBuilder::new().known_nodes_addr(&nodes).build().await.unwrap();
        Self { session, nodes }
    }

    /// Returns a statement that goes to this node, as `cargo xtask node` counts them.
    pub(crate) fn statement(&self, node: usize, consistency: Consistency, cql: &str) -> Statement {
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

    /// Returns a session that knows no other node than this one, so that all its requests go there.
    pub(crate) async fn only(&self, node: usize) -> Arc<Session> {
        let node = self.nodes[node - 1];
        let filter = AllowListHostFilter::new([node]).expect("an address");
        let builder = SessionBuilder::new().known_node_addr(node).host_filter(Arc::new(filter));
        Arc::new(builder.build().await.expect("the node answers"))
    }
}

/// `host:port`, or a host that listens where Cassandra does by itself.
fn address(node: &str) -> SocketAddr {
    node.parse().unwrap_or_else(|_| SocketAddr::new(node.parse().expect("an address"), 9042))
}
