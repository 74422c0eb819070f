//! The Cassandra engine, by the queue lock and by the old algorithm, asked by the suite that every engine answers.

mod cluster;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ylock_core::Guarantees;
use ylock_core::engine::Engine;
use ylock_engine_cassandra::options::Protocol;
use ylock_testkit::{Harness, LONGER_THAN_A_MINUTE};

#[derive(Debug)]
struct Cassandra(Protocol);

#[async_trait]
impl Harness for Cassandra {
    fn name(&self) -> &str {
        match self.0 {
            Protocol::ShadowRows => "cassandra by shadow rows",
            _ => "cassandra",
        }
    }

    fn guarantees(&self) -> Guarantees {
        match self.0 {
            Protocol::ShadowRows => Guarantees::ALL.with_fair(false).with_shared_reads(false),
            _ => Guarantees::ALL,
        }
    }

    async fn engine(&self) -> Arc<dyn Engine> {
        Arc::new(match self.0 {
            Protocol::ShadowRows => cluster::shadow_rows().await,
            _ => cluster::engine().await,
        })
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

    /// Every name is a partition, and acquiring them takes three trips each. Of the algorithm that is there for comparison fewer will do.
    fn many(&self) -> usize {
        if self.0 == Protocol::Queue { 10_000 } else { ylock_testkit::short_or_long(2_000, 10_000) }
    }

    fn long_hold(&self) -> Duration {
        if self.0 == Protocol::Queue { LONGER_THAN_A_MINUTE } else { self.lease() * 4 }
    }

    /// So long ten thousand names take on three nodes that share two cores with other work.
    fn bound(&self) -> Duration {
        Duration::from_secs(600)
    }
}

ylock_testkit::conformance_tests!(
    Cassandra(Protocol::Queue),
    #[ignore = "needs cassandra: run `cargo xtask test`"]
);

/// The baseline: what it promises it keeps.
mod shadow_rows {
    use super::{Cassandra, Protocol};

    ylock_testkit::conformance_tests!(
        Cassandra(Protocol::ShadowRows),
        #[ignore = "needs cassandra: run `cargo xtask test`"]
    );
}
