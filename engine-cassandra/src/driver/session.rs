//! One driver session per client.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use scylla::client::SelfIdentity;
use scylla::client::execution_profile::{ExecutionProfile, ExecutionProfileBuilder, ExecutionProfileHandle};
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::policies::load_balancing::LoadBalancingPolicy;
use scylla::policies::retry::FallthroughRetryPolicy;
use scylla::policies::speculative_execution::SimpleSpeculativeExecutionPolicy;
use scylla::statement::{Consistency as DriverConsistency, SerialConsistency};
use ylock_core::Result;
use ylock_core::environment::Environment;

use super::balancing::Balancing;
use super::errors::connect;
use super::nodes::Nodes;
use crate::options::{CassandraOptions, Consistency};

/// How long a page of locks may take: as long as Cassandra itself gives it by default. No lease depends on it.
const PAGE_TIMEOUT: Duration = Duration::from_secs(10);

/// The shortest time that a node has to answer a keepalive: one that is only busy must not be taken for dead.
const SHORTEST_PROBE: Duration = Duration::from_millis(500);

/// The part of the request timeout after which a node that has not answered is doubted.
const PATIENCE_PART: u32 = 8;

/// Returns what is known of the nodes before any of them was asked.
pub(super) fn nodes(options: &CassandraOptions, environment: &Arc<dyn Environment>) -> Arc<Nodes> {
    Arc::new(Nodes::new(Arc::clone(environment), options.request_timeout() / PATIENCE_PART))
}

/// Connects to the cluster.
pub(super) async fn open(
    options: &CassandraOptions,
    nodes: &Arc<Nodes>,
    environment: &dyn Environment,
) -> Result<Session> {
    let builder = builder(options, nodes)?;
    match within(environment, options.connect_timeout(), builder.build()).await {
        Some(outcome) => outcome.map_err(|error| connect::failed(error, options)),
        None => Err(connect::too_slow("no node answered in time", options)),
    }
}

/// Returns the future's outcome, or nothing if it takes longer than `limit`.
pub(super) async fn within<T>(
    environment: &dyn Environment,
    limit: Duration,
    future: impl Future<Output = T>,
) -> Option<T> {
    match select(pin!(future), environment.sleep(limit)).await {
        Either::Left((outcome, _)) => Some(outcome),
        Either::Right(_) => None,
    }
}

fn builder(options: &CassandraOptions, nodes: &Arc<Nodes>) -> Result<SessionBuilder> {
    let addresses = options.addresses();
    // The addresses are tried one after the other: one that swallows packets must not use up the time of all.
    let share = options.connect_timeout() / u32::try_from(addresses.len() + 1).unwrap_or(u32::MAX);
    // A node that is stopped takes connections and answers nothing, and nothing but keepalives ends such a connection, also while it is
    // being set up. Until then every third request waits for the node in vain. Connecting may meet it twice, first for the control
    // connection and then for the pool: both must fit into the time for connecting.
    let interval = options.connect_timeout() / 8;
    let patience = options.request_timeout().min(options.connect_timeout() / 5).max(SHORTEST_PROBE);
    let tls = options.tls().client_config(options.client_certificate().as_ref());
    let tls = tls.map_err(|error| error.with_engine(crate::NAME))?.map(Arc::new);
    let mut builder = SessionBuilder::new()
        .known_nodes(addresses)
        .tls_context(tls)
        .connection_timeout(share)
        .keepalive_interval(interval)
        .keepalive_timeout(patience)
        .metadata_request_serverside_timeout(options.connect_timeout())
        .metadata_request_clientside_timeout(options.connect_timeout())
        .keyspaces_to_fetch([options.keyspace()])
        .fetch_full_schema_metadata(false)
        // Saves calls to the kernel under load, and costs every single request a round of the scheduler.
        .write_coalescing(false)
        .driver_config_reporting(false)
        .custom_identity(SelfIdentity::new().with_application_name("ylock"))
        .default_execution_profile_handle(of_writes(options, nodes));
    if let Some(login) = options.login() {
        builder = builder.user(&login.user, login.password.reveal());
    }
    Ok(builder)
}

/// The profiles by which statements are sent. Each statement has one, whatever that of the session is: the session may be the
/// program's.
#[derive(Debug)]
pub(super) struct Profiles {
    pub(super) writes: ExecutionProfileHandle,
    pub(super) reads: ExecutionProfileHandle,
    pub(super) pages: ExecutionProfileHandle,
}

pub(super) fn profiles(options: &CassandraOptions, nodes: &Arc<Nodes>) -> Profiles {
    Profiles {
        writes: of_writes(options, nodes),
        reads: of_reads(options, nodes),
        pages: of_pages(options, nodes),
    }
}

/// Returns the profile of reads, which are sent to a second node where the first one does not answer.
///
/// That is safe: each copy begins after whatever its caller has waited for. It keeps a node that hangs from costing a caller more than
/// a moment, and it finds out that the node hangs before a write goes there.
fn of_reads(options: &CassandraOptions, nodes: &Arc<Nodes>) -> ExecutionProfileHandle {
    let hedge = SimpleSpeculativeExecutionPolicy { max_retry_count: 1, retry_interval: nodes.patience() };
    profile(options, Balancing::of_reads(options, nodes))
        .speculative_execution_policy(Some(Arc::new(hedge)))
        .build()
        .into_handle_with_label("ylock reads".to_owned())
}

/// Returns the profile of all other statements, which are sent once.
///
/// Not even a second copy side by side: the row ends at a time that its coordinator computes when the write arrives. When one node has
/// answered, a copy that lies in another node that hangs would arrive whenever that node goes on, and end later than any client counts
/// on. The algorithm sends again by itself, under a new timestamp.
fn of_writes(options: &CassandraOptions, nodes: &Arc<Nodes>) -> ExecutionProfileHandle {
    profile(options, Balancing::of_writes(options, nodes))
        .speculative_execution_policy(None)
        .build()
        .into_handle_with_label("ylock".to_owned())
}

/// Returns the profile of reads of many partitions, which take longer than those of one: so they are not sent twice, and have more time.
fn of_pages(options: &CassandraOptions, nodes: &Arc<Nodes>) -> ExecutionProfileHandle {
    profile(options, Balancing::of_pages(options, nodes))
        .speculative_execution_policy(None)
        .request_timeout(Some(PAGE_TIMEOUT))
        .build()
        .into_handle_with_label("ylock pages".to_owned())
}

fn profile(options: &CassandraOptions, balancing: Arc<dyn LoadBalancingPolicy>) -> ExecutionProfileBuilder {
    let (consistency, serial) = match options.consistency() {
        Consistency::Quorum => (DriverConsistency::Quorum, SerialConsistency::Serial),
        Consistency::LocalQuorum => (DriverConsistency::LocalQuorum, SerialConsistency::LocalSerial),
    };
    ExecutionProfile::builder()
        .consistency(consistency)
        .serial_consistency(Some(serial))
        .request_timeout(Some(options.request_timeout()))
        .load_balancing_policy(balancing)
        // The algorithm sends again by itself, and counts what it sends; a driver that tried on its own would let
        // it believe that time is left which is not.
        .retry_policy(Arc::new(FallthroughRetryPolicy::new()))
}
