//! Locks over a session of the program.
#![cfg(feature = "scylla-1")]
#![allow(clippy::disallowed_methods, reason = "tests wait in real time")]

mod cluster;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::cluster::{ClusterState, NodeRef};
use scylla::policies::load_balancing::{DefaultPolicy, FallbackPlan, LoadBalancingPolicy, RoutingInfo};
use scylla::routing::Shard;
use tokio::runtime::Builder;
use ylock_core::{ErrorKind, Options, Ylock};
use ylock_engine_cassandra::options::SchemaMode;
use ylock_engine_cassandra::{CassandraEngine, driver_api};
use ylock_testkit::within;

const SOON: Duration = Duration::from_secs(10);

/// Counts the requests that the session's own profile is used for.
#[derive(Clone, Debug)]
struct Counting {
    inner: Arc<dyn LoadBalancingPolicy>,
    requests: Arc<AtomicUsize>,
}

impl Counting {
    fn new() -> Self {
        Self { inner: DefaultPolicy::builder().build(), requests: Arc::default() }
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

impl LoadBalancingPolicy for Counting {
    fn pick<'a>(
        &'a self,
        request: &'a RoutingInfo,
        cluster: &'a ClusterState,
    ) -> Option<(NodeRef<'a>, Option<Shard>)> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        self.inner.pick(request, cluster)
    }

    fn fallback<'a>(&'a self, request: &'a RoutingInfo, cluster: &'a ClusterState) -> FallbackPlan<'a> {
        self.inner.fallback(request, cluster)
    }

    fn name(&self) -> String {
        "counting".to_owned()
    }
}

async fn session(policy: &Counting) -> Arc<Session> {
    let profile = ExecutionProfile::builder().load_balancing_policy(Arc::new(policy.clone())).build();
    let hosts = std::env::var("YLOCK_TEST_CASSANDRA").unwrap();
    let nodes: Vec<_> = hosts.split(',').map(|host| format!("{host}:9042")).collect();
    let builder = SessionBuilder::new().known_nodes(nodes);
    Arc::new(builder.default_execution_profile_handle(profile.into_handle()).build().await.unwrap())
}

async fn over(session: &Arc<Session>) -> Ylock {
    let options = driver_api::options(Arc::clone(session), cluster::options().keyspace());
    let engine =
        CassandraEngine::connect(&options.with_schema(SchemaMode::Create).with_lease(cluster::LEASE))
            .await
            .unwrap();
    Ylock::new(engine).with_options(Options::default().with_lease(cluster::LEASE))
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn locks_over_a_session_of_the_program_are_those_of_all_and_sent_as_always() {
    let (usual, policy, group) = (cluster::client().await, Counting::new(), cluster::group());
    let session = session(&policy).await;
    let sent = policy.requests();
    let (one, other) = (over(&session).await, over(&session).await);
    assert_eq!(policy.requests(), sent, "what connecting asks has a profile of its own");
    let holder = one.locks(&group).write("alice").await.unwrap();
    for ylock in [&other, &usual] {
        assert!(ylock.locks(&group).write("alice").now().await.unwrap().is_none());
    }
    let (locks, waiter) = (other.locks(&group), usual.locks(&group));
    let waits = tokio::spawn(async move { locks.read("alice").await });
    tokio::time::sleep(cluster::LEASE).await;
    assert!(holder.is_valid(), "it is renewed");
    assert_eq!(one.inspect(&group, "alice").await.unwrap().queue.len(), 1);
    assert!(holder.unlock().await.unwrap().is_released());
    let reader = within(SOON, "the waiter gets in", waits).await.unwrap().unwrap();
    drop(within(SOON, "another reader gets in", waiter.read("alice")).await.unwrap());
    assert!(reader.unlock().await.unwrap().is_released());
    one.close().await;
    other.close().await;
    assert_eq!(policy.requests(), sent, "requests for locks have a profile of their own");
    session.query_unpaged("SELECT key FROM system.local", ()).await.expect("it is the program's, and open");
    assert_eq!(policy.requests(), sent + 1, "the policy counts");
}

#[test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
fn locks_end_with_the_runtime_of_the_session_and_their_holder_is_told() {
    let runtime = || Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (first, second) = (runtime(), runtime());
    let ylock = first.block_on(async { over(&session(&Counting::new()).await).await });
    let group = cluster::group();
    let guard = second.block_on(ylock.locks(&group).write("alice")).unwrap();
    drop(first);
    second.block_on(async {
        let error = within(SOON, "an answer", ylock.locks(&group).write("bob").now()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(
            format!("{error:#}").contains("the runtime of the session that was handed over"),
            "{error:#}"
        );
        within(cluster::LEASE + SOON, "the loss", guard.lost()).await;
        // Nothing of this client stands in the way of others.
        let usual = cluster::client().await;
        drop(
            within(cluster::LEASE + SOON, "the next one", usual.locks(&group).write("alice")).await.unwrap(),
        );
    });
}
