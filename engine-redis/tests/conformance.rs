//! The Redis engine, on one server, behind Sentinels and on a cluster, asked by the suite that every engine answers.

mod server;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use server::Servers;
use ylock_core::Guarantees;
use ylock_core::engine::Engine;
use ylock_engine_redis::options::Notify;
use ylock_testkit::{Harness, Role};

const POLL: Notify = Notify::Off { poll: Duration::from_millis(5), poll_longest: Duration::from_millis(40) };

#[derive(Debug)]
struct Redis(Servers, Notify);

#[async_trait]
impl Harness for Redis {
    fn name(&self) -> &str {
        match (self.0, self.1) {
            (Servers::Single, Notify::On) => "redis",
            (Servers::Single, _) => "redis polling",
            (Servers::Sentinel, _) => "redis sentinel",
            (Servers::Cluster, _) => "redis cluster",
        }
    }

    fn guarantees(&self) -> Guarantees {
        let is_alone = self.0 == Servers::Single;
        ylock_testkit::ALL_GUARANTEES
            .with_durable(false)
            .with_fencing(is_alone)
            .with_exclusive_after_failover(is_alone)
    }

    async fn engine(&self) -> Arc<dyn Engine> {
        Arc::new(self.0.engine(self.1).await)
    }

    fn lease(&self) -> Duration {
        server::LEASE
    }

    fn trip(&self) -> Duration {
        Duration::from_millis(200)
    }

    fn notice(&self) -> Duration {
        Duration::from_millis(200)
    }

    async fn left_behind(&self, group: &str) -> usize {
        self.0.left_behind(group).await
    }

    fn role(&self) -> Role {
        if (self.0, self.1) != (Servers::Single, Notify::On) { Role::Variant } else { Role::Whole }
    }
}

ylock_testkit::conformance_tests!(
    Redis(Servers::Single, Notify::On),
    #[ignore = "needs redis: run `cargo xtask test`"]
);

mod polling {
    use super::{POLL, Redis, Servers};

    ylock_testkit::conformance_tests!(
        Redis(Servers::Single, POLL),
        #[ignore = "needs redis: run `cargo xtask test`"]
    );
}

mod sentinel {
    use super::{Notify, Redis, Servers};

    ylock_testkit::conformance_tests!(
        Redis(Servers::Sentinel, Notify::On),
        #[ignore = "needs redis: run `cargo xtask test`"]
    );
}

mod cluster {
    use super::{Notify, Redis, Servers};

    ylock_testkit::conformance_tests!(
        Redis(Servers::Cluster, Notify::On),
        #[ignore = "needs redis: run `cargo xtask test`"]
    );
}
