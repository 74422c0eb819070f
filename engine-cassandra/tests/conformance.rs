//! The Cassandra engine, asked by the suite that every engine answers.

mod cluster;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ylock_core::Guarantees;
use ylock_core::engine::Engine;
use ylock_core::testkit::Harness;

#[derive(Debug)]
struct Cassandra;

#[async_trait]
impl Harness for Cassandra {
    fn name(&self) -> &str {
        "cassandra"
    }

    fn guarantees(&self) -> Guarantees {
        Guarantees::ALL
    }

    async fn engine(&self) -> Arc<dyn Engine> {
        Arc::new(cluster::engine().await)
    }

    fn lease(&self) -> Duration {
        cluster::LEASE
    }

    fn trip(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn notice(&self) -> Duration {
        Duration::from_secs(1)
    }

    /// Every name is a partition, and acquiring them takes three trips each.
    fn many(&self) -> usize {
        10_000
    }

    fn bound(&self) -> Duration {
        Duration::from_secs(180)
    }
}

ylock_core::conformance_tests!(Cassandra, #[ignore = "needs cassandra: run `cargo xtask test`"]);
