//! One driver session per client.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use scylla::client::SelfIdentity;
use scylla::client::execution_profile::{ExecutionProfile, ExecutionProfileHandle};
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::policies::load_balancing::{DefaultPolicy, LoadBalancingPolicy};
use scylla::policies::retry::FallthroughRetryPolicy;
use scylla::statement::{Consistency as DriverConsistency, SerialConsistency};
use ylock_core::Result;
use ylock_core::environment::Environment;

use super::errors::connect;
use super::tls;
use crate::options::{CassandraOptions, Consistency};

/// A node that is only busy must not be taken for dead.
const SHORTEST_PROBE: Duration = Duration::from_millis(500);

/// Connects to the cluster.
pub(super) async fn open(options: &CassandraOptions, environment: &dyn Environment) -> Result<Session> {
    let builder = builder(options)?;
    match within(environment, options.connect_timeout(), builder.build()).await {
        Some(outcome) => outcome.map_err(|error| connect::failed(error, options)),
        None => Err(connect::too_slow("nobody answered in time", options)),
    }
}

/// The future's outcome, or nothing if it takes longer than `limit`.
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

fn builder(options: &CassandraOptions) -> Result<SessionBuilder> {
    let addresses = options.addresses();
    // The addresses are tried one after the other: one that swallows packets must not use up the time of all.
    let share = options.connect_timeout() / u32::try_from(addresses.len() + 1).unwrap_or(u32::MAX);
    // A node that is stopped takes connections and answers nothing, and nothing but these ends such a connection, also
    // while it is being set up. Until then every third request waits for the node in vain. Connecting may meet it twice, first
    // for the control connection and then for the pool: both must fit into the time for connecting.
    let interval = options.connect_timeout() / 8;
    let patience = options.request_timeout().min(options.connect_timeout() / 5).max(SHORTEST_PROBE);
    let mut builder = SessionBuilder::new()
        .known_nodes(addresses)
        .tls_context(tls::config(options.tls())?)
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
        .default_execution_profile_handle(profile(options));
    if let Some(login) = options.login() {
        builder = builder.user(&login.user, login.password.reveal());
    }
    Ok(builder)
}

/// How every request is sent.
fn profile(options: &CassandraOptions) -> ExecutionProfileHandle {
    let (consistency, serial) = match options.consistency() {
        Consistency::Quorum => (DriverConsistency::Quorum, SerialConsistency::Serial),
        Consistency::LocalQuorum => (DriverConsistency::LocalQuorum, SerialConsistency::LocalSerial),
    };
    ExecutionProfile::builder()
        .consistency(consistency)
        .serial_consistency(Some(serial))
        .request_timeout(Some(options.request_timeout()))
        .load_balancing_policy(balancing(options))
        // The algorithm sends again by itself, and counts what it sends; a driver that tried on its own would let
        // it believe that time is left which is not.
        .retry_policy(Arc::new(FallthroughRetryPolicy::new()))
        .speculative_execution_policy(None)
        .build()
        .into_handle_with_label("ylock".to_owned())
}

/// A replica of the key first, so that the coordinator's own answer counts; of the named data centre if there is one.
fn balancing(options: &CassandraOptions) -> Arc<dyn LoadBalancingPolicy> {
    let builder = DefaultPolicy::builder().token_aware(true);
    let Some(datacenter) = options.datacenter() else {
        return builder.build();
    };
    // A local quorum of another data centre would not be a quorum of this one.
    let elsewhere = options.consistency() == Consistency::Quorum;
    builder.prefer_datacenter(datacenter.to_owned()).permit_dc_failover(elsewhere).build()
}
