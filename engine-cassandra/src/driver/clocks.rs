//! Checks whether the clocks of the nodes agree.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use scylla::policies::load_balancing::{NodeIdentifier, SingleTargetLoadBalancingPolicy};
use scylla::statement::{Consistency, Statement};
use ylock_core::environment::Environment;

use super::schema::Asker;
use super::session;
use crate::options::CassandraOptions;

/// The time that a node has to answer. A slower one is not asked again: what is looked for are wrong clocks, not slow nodes.
const PATIENCE: Duration = Duration::from_secs(1);
/// What clocks that are set right never differ by: as long as the shortest timeout by which Cassandra's nodes drop what is too old.
const ODD: Duration = Duration::from_secs(2);
/// Not `now()`: its identifiers are in order, so they stand still while the clock of a node that was set back catches up.
const TIME: &str = "SELECT toUnixTimestamp(currentTimestamp()) FROM system.local";

/// The lead of a node's clock over this machine's, at least and at most, in milliseconds.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    node: SocketAddr,
    least: i64,
    most: i64,
}

/// Warns if the clocks of two nodes differ by more than the rows of locks can bear: that costs locks, or grants one twice. Not an
/// error: the difference may be over before the first lock is taken, and may begin when no client looks.
pub(super) async fn look(
    Asker { session, profile }: Asker<'_>,
    options: &CassandraOptions,
    environment: &dyn Environment,
) {
    let cluster = session.get_cluster_state();
    let nodes = cluster.get_nodes_info().iter().filter(|node| node.is_connected());
    let asking = nodes.map(|node| async move {
        let mut statement = Statement::new(TIME);
        statement.set_execution_profile_handle(Some(profile.clone()));
        statement.set_consistency(Consistency::One);
        let target = SingleTargetLoadBalancingPolicy::new(NodeIdentifier::Node(Arc::clone(node)), None);
        statement.set_load_balancing_policy(Some(target));
        let before = environment.wall_micros() / 1_000;
        let answer =
            session::within(environment, PATIENCE, session.query_unpaged(statement, ())).await?.ok()?;
        let after = environment.wall_micros() / 1_000;
        let (time,) = answer.into_rows_result().ok()?.single_row::<(i64,)>().ok()?;
        // The server counts whole milliseconds, and so does this.
        Some(Ahead {
            node: SocketAddr::new(node.address.ip(), node.address.port()),
            least: time - after - 1,
            most: time - before + 1,
        })
    });
    let seen: Vec<_> = join_all(asking).await.into_iter().flatten().collect();
    let Some((slow, fast, apart)) = widest(&seen) else { return };
    let milliseconds = apart.as_millis() as u64;
    if apart > options.max_clock_skew() {
        tracing::warn!(
            slow = %slow, fast = %fast, milliseconds, max_clock_skew = ?options.max_clock_skew(),
            "the clocks of two nodes differ by more than max_clock_skew: locks are lost, or granted twice. Set the clocks right"
        );
    } else if apart > ODD {
        tracing::warn!(
            slow = %slow, fast = %fast, milliseconds,
            "the clocks of two nodes differ by seconds. No lock is lost or granted twice by that, but unless internode_timeout is false \
             (cross_node_timeout before 4.1) nodes drop what a node with a slow clock sends, as too old. Set the clocks right"
        );
    }
}

/// Returns the two nodes whose clocks differ most for certain, and by how much they do.
fn widest(seen: &[Ahead]) -> Option<(SocketAddr, SocketAddr, Duration)> {
    let slow = seen.iter().min_by_key(|ahead| ahead.most)?;
    let fast = seen.iter().max_by_key(|ahead| ahead.least)?;
    let apart = u64::try_from(fast.least - slow.most).ok()?;
    Some((slow.node, fast.node, Duration::from_millis(apart)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ahead(port: u16, least: i64, most: i64) -> Ahead {
        Ahead { node: ([127, 0, 0, 1], port).into(), least, most }
    }

    #[test]
    fn only_what_is_certain_counts() {
        let slow_answers = [ahead(1, -900, 100), ahead(2, -50, 950)];
        assert!(widest(&slow_answers).is_none());
        let (slow, fast, apart) =
            widest(&[ahead(1, 0, 5), ahead(2, -4_005, -4_000), ahead(3, 2, 9)]).unwrap();
        assert_eq!((slow.port(), fast.port(), apart), (2, 3, Duration::from_millis(4_002)));
    }
}
