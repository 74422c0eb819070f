//! Sends statements about the schema to the one node at which all clients meet.

use std::sync::Arc;
use std::time::Duration;

use scylla::client::execution_profile::ExecutionProfileHandle;
use scylla::client::session::Session;
use scylla::errors::ExecutionError;
use scylla::policies::load_balancing::{
    LoadBalancingPolicy, NodeIdentifier, SingleTargetLoadBalancingPolicy,
};
use scylla::response::query_result::QueryResult;
use scylla::serialize::row::SerializeRow;
use scylla::statement::{Consistency, Statement};

/// The time that one statement about the schema may take. Creating a table on a busy cluster takes seconds.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A session, and the profile by which what connecting has to ask is sent. That of the session may be the program's: with a time limit, a
/// consistency and a choice of nodes for other work than this.
#[derive(Clone, Copy)]
pub(in crate::driver) struct Asker<'a> {
    pub(in crate::driver) session: &'a Session,
    pub(in crate::driver) profile: &'a ExecutionProfileHandle,
}

impl Asker<'_> {
    /// Sends a statement about the schema to the one node at which all clients meet.
    ///
    /// Two nodes that create the same table at once give it two identities, and the nodes quarrel until an operator restarts them. One
    /// node does one thing after the other, and the second `IF NOT EXISTS` does nothing. So all clients go to the node with the smallest
    /// identity. Clients that see different nodes up may still miss each other; then nothing is left but to look again.
    pub(super) async fn ask(
        self,
        cql: &str,
        values: impl SerializeRow,
    ) -> Result<QueryResult, ExecutionError> {
        let mut statement = self.statement(cql);
        statement.set_request_timeout(Some(TIMEOUT));
        statement.set_consistency(Consistency::One);
        statement.set_load_balancing_policy(meeting_point(self.session));
        self.session.query_unpaged(statement, values).await
    }

    /// Sends a statement as all others are sent that are not about the schema.
    pub(super) async fn probe(self, cql: &str) -> Result<QueryResult, ExecutionError> {
        self.session.query_unpaged(self.statement(cql), ()).await
    }

    fn statement(self, cql: &str) -> Statement {
        let mut statement = Statement::new(cql);
        statement.set_execution_profile_handle(Some(self.profile.clone()));
        statement
    }
}

fn meeting_point(session: &Session) -> Option<Arc<dyn LoadBalancingPolicy>> {
    let cluster = session.get_cluster_state();
    let nodes = cluster.get_nodes_info().iter().filter(|node| node.is_connected());
    let node = nodes.min_by_key(|node| node.host_id)?;
    Some(SingleTargetLoadBalancingPolicy::new(NodeIdentifier::Node(Arc::clone(node)), None))
}
