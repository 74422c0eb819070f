//! The conformance suite, asked of nodes whose clocks are far apart.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use tokio::task::spawn_blocking;
use ylock_core::Guarantees;
use ylock_core::engine::Engine;
use ylock_engine_cassandra::CassandraEngine;
use ylock_testkit::{CASES, Case, Harness, Role, run_test};

use super::clients::Rule;
use crate::cluster;

#[derive(Debug)]
struct Apart(Rule);

#[async_trait]
impl Harness for Apart {
    fn name(&self) -> &str {
        "cassandra with clocks apart"
    }

    fn guarantees(&self) -> Guarantees {
        ylock_testkit::ALL_GUARANTEES
    }

    async fn engine(&self) -> Arc<dyn Engine> {
        let options = self.0.tell(cluster::options());
        Arc::new(CassandraEngine::connect(&options).await.expect("the cluster under test answers"))
    }

    fn role(&self) -> Role {
        Role::Whole
    }

    fn lease(&self) -> Duration {
        cluster::LEASE
    }

    fn trip(&self) -> Duration {
        cluster::TRIP
    }

    fn notice(&self) -> Duration {
        cluster::NOTICE
    }

    fn many(&self) -> usize {
        1_000
    }

    fn rounds(&self) -> usize {
        100
    }
}

/// Runs the cases that are wanted, eight at a time and each in a runtime of its own, as elsewhere. Returns those that ran, and those of them
/// that failed.
pub(super) async fn run(rule: Rule, is_wanted: impl Fn(&Case) -> bool) -> (usize, Vec<Case>) {
    let wanted = CASES.iter().filter(|case| is_wanted(case));
    let runs =
        wanted.map(async |case| (*case, spawn_blocking(move || run_test(Apart(rule), *case)).await.is_ok()));
    let ran: Vec<_> = stream::iter(runs).buffer_unordered(8).collect().await;
    (ran.len(), ran.into_iter().filter(|(_, passed)| !passed).map(|(case, _)| case).collect())
}
