//! Checks whether the clocks of the nodes agree.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use scylla::cluster::Node;
use scylla::policies::load_balancing::{NodeIdentifier, SingleTargetLoadBalancingPolicy};
use scylla::statement::{Consistency, Statement};
use ylock_core::engine::{ClockReading, Diagnostics, ServerReport};
use ylock_core::environment::Environment;

use super::schema::Asker;
use super::session;
use crate::options::CassandraOptions;

/// The time that a node has to answer. A slower one is not asked again: what is looked for are wrong clocks, not slow nodes.
const PATIENCE: Duration = Duration::from_secs(1);
/// What clocks that are set right never differ by: as long as the shortest timeout by which Cassandra's nodes drop what is too old.
const ODD: Duration = Duration::from_secs(2);
/// Not `now()`: its identifiers are in order, so they stand still while the clock of a node that was set back catches up.
const TIME: &str =
    "SELECT toUnixTimestamp(currentTimestamp()), release_version, data_center FROM system.local";
/// A server tells its time in whole milliseconds; in microseconds.
const GRAIN: i64 = 1_000;

/// Warns if the clocks of two nodes differ by more than the rows of locks can bear: that costs locks, or grants one twice. Not an
/// error: the difference may be over before the first lock is taken, and may begin when no client looks.
pub(super) async fn look(asker: Asker<'_>, options: &CassandraOptions, environment: &dyn Environment) {
    let mut seen = Diagnostics::default();
    seen.servers = ask(asker, environment).await;
    let Some((slow, fast, apart)) = seen.clocks_apart() else { return };
    let (slow, fast) = (&slow.address, &fast.address);
    let milliseconds = apart.as_millis() as u64;
    if apart > options.max_clock_skew() {
        tracing::warn!(
            %slow, %fast, milliseconds, max_clock_skew = ?options.max_clock_skew(),
            "the clocks of two nodes differ by more than max_clock_skew: locks are lost, or granted twice. Set the clocks right"
        );
    } else if apart > ODD {
        tracing::warn!(
            %slow, %fast, milliseconds,
            "the clocks of two nodes differ by seconds. No lock is lost or granted twice by that, but unless internode_timeout is false \
             (cross_node_timeout before 4.1) nodes drop what a node with a slow clock sends, as too old. Set the clocks right"
        );
    }
}

/// Asks each node for its time, and for what else it tells of itself.
pub(super) async fn ask(asker: Asker<'_>, environment: &dyn Environment) -> Vec<ServerReport> {
    let cluster = asker.session.get_cluster_state();
    let asking = cluster.get_nodes_info().iter().map(|node| async move {
        let address = SocketAddr::new(node.address.ip(), node.address.port()).to_string();
        if !node.is_connected() {
            return ServerReport::failed(address, "no connection to it can be made");
        }
        let told = session::within(environment, PATIENCE, ask_node(asker, node, &address, environment)).await;
        told.flatten().unwrap_or_else(|| {
            ServerReport::failed(address, format!("it did not answer within {PATIENCE:?}"))
        })
    });
    join_all(asking).await
}

async fn ask_node(
    Asker { session, profile }: Asker<'_>,
    node: &Arc<Node>,
    address: &str,
    environment: &dyn Environment,
) -> Option<ServerReport> {
    let mut statement = Statement::new(TIME);
    statement.set_execution_profile_handle(Some(profile.clone()));
    statement.set_consistency(Consistency::One);
    let target = SingleTargetLoadBalancingPolicy::new(NodeIdentifier::Node(Arc::clone(node)), None);
    statement.set_load_balancing_policy(Some(target));
    let (before, asked) = (environment.wall_micros(), environment.now());
    let answer = session.query_unpaged(statement, ()).await.ok()?;
    let (round_trip, after) = (environment.now().since(asked), environment.wall_micros());
    let (time, version, datacenter) =
        answer.into_rows_result().ok()?.single_row::<(i64, String, String)>().ok()?;
    let mut facts = ServerReport::new(address);
    facts.clock = Some(ClockReading::of(before, time.saturating_mul(1_000), after, GRAIN));
    facts.round_trip = Some(round_trip);
    facts.version = Some(version);
    facts.role = Some(format!("in {datacenter}"));
    Some(facts)
}
