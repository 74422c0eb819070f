//! Locks over a session that the program has already: feature `scylla-1`, for version 1 of the crate `scylla`.
//!
//! The only part of this crate that shows types of its driver.

use std::sync::Arc;

use scylla::client::session::Session;
use ylock_core::url::Host;

use crate::CassandraOptions;

/// Returns options for clients whose requests go over this session.
///
/// Hosts, login and TLS are those of the session. The options say how requests for locks are sent: each of
/// their statements has an execution profile of its own (consistency, time limit, nodes, no retries). The schema is checked or created
/// as [`schema`](CassandraOptions::with_schema) says. A session that fetches the metadata of the keyspace, as it does by default, finds
/// the replicas of a lock by itself. Closing a client leaves the session open.
///
/// # If the lock is lost
/// A session lives in the runtime in which it was built: connect there. When that runtime has ended, no other session is made: every
/// call fails with [`Unavailable`](ylock_core::ErrorKind::Unavailable), and what is held is lost at the end of its lease.
///
/// # Examples
/// Orders are kept in the same cluster as their locks:
/// ```no_run
/// use std::sync::Arc;
///
/// use scylla::client::session_builder::SessionBuilder;
/// use ylock::Ylock;
/// use ylock::cassandra::{CassandraEngine, driver_api};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let session = Arc::new(SessionBuilder::new().known_node("10.0.0.1:9042").build().await?);
/// let engine = CassandraEngine::connect(&driver_api::options(Arc::clone(&session), "shop")).await?;
/// let orders = Ylock::new(engine).locks("orders");
///
/// let paid = "UPDATE shop.orders SET state = 'paid' WHERE id = 4711";
/// orders.write("4711").run(|_| session.query_unpaged(paid, ())).await??;
/// # Ok(()) }
/// ```
pub fn options(session: Arc<Session>, keyspace: impl Into<String>) -> CassandraOptions {
    let cluster = session.get_cluster_state();
    let nodes = cluster.get_nodes_info().iter().map(|node| node.address);
    let hosts = nodes.map(|node| Host::new(node.ip().to_string(), node.port())).collect();
    CassandraOptions::new(keyspace).with_session(session, hosts)
}
