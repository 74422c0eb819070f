//! The Cassandra engine, by the queue lock, with hints and without, and by the old algorithm, asked by the suite that every engine answers.

mod cluster;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ylock_core::Guarantees;
use ylock_core::engine::Engine;
use ylock_engine_cassandra::options::{Notify, Protocol};
use ylock_testkit::{Harness, Role, short_or_long};

#[derive(Debug)]
struct Cassandra(Protocol, Notify);

#[async_trait]
impl Harness for Cassandra {
    fn name(&self) -> &str {
        match (self.0, self.1) {
            (Protocol::ShadowRows, _) => "cassandra by shadow rows",
            (_, Notify::Off) => "cassandra without hints",
            _ => "cassandra",
        }
    }

    fn guarantees(&self) -> Guarantees {
        match self.0 {
            Protocol::ShadowRows => ylock_testkit::ALL_GUARANTEES.with_fair(false).with_shared_reads(false),
            _ => ylock_testkit::ALL_GUARANTEES,
        }
    }

    async fn engine(&self) -> Arc<dyn Engine> {
        Arc::new(match (self.0, self.1) {
            (Protocol::ShadowRows, _) => cluster::shadow_rows().await,
            (_, Notify::Off) => cluster::without_hints().await,
            _ => cluster::engine().await,
        })
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

    fn role(&self) -> Role {
        if (self.0, self.1) != (Protocol::Queue, Notify::Auto) { Role::Variant } else { Role::Whole }
    }

    /// Most of what the short run asks of two cores is what these three nodes do. Races are searched for in the simulation, with all of the seeds that the time allows.
    fn many(&self) -> usize {
        short_or_long(1_000, 10_000)
    }

    fn rounds(&self) -> usize {
        short_or_long(100, 500)
    }
}

ylock_testkit::conformance_tests!(
    Cassandra(Protocol::Queue, Notify::Auto),
    #[ignore = "needs cassandra: run `cargo xtask test`"]
);

/// Waiters that look by themselves.
mod without_hints {
    use super::{Cassandra, Notify, Protocol};

    ylock_testkit::conformance_tests!(
        Cassandra(Protocol::Queue, Notify::Off),
        #[ignore = "needs cassandra: run `cargo xtask test`"]
    );
}

/// The baseline: what it promises it keeps.
mod shadow_rows {
    use super::{Cassandra, Notify, Protocol};

    ylock_testkit::conformance_tests!(
        Cassandra(Protocol::ShadowRows, Notify::Off),
        #[ignore = "needs cassandra: run `cargo xtask test`"]
    );
}
