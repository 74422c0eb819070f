//! The Redis engine, told and polling, asked by the suite that every engine answers.

mod server;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ylock_core::Guarantees;
use ylock_core::engine::Engine;
use ylock_core::testkit::Harness;
use ylock_engine_redis::options::Waiting;

const POLL: Waiting = Waiting::Poll { first: Duration::from_millis(5), longest: Duration::from_millis(40) };

#[derive(Debug)]
struct Redis(Waiting);

#[async_trait]
impl Harness for Redis {
    fn name(&self) -> &str {
        match self.0 {
            Waiting::Told => "redis",
            _ => "redis polling",
        }
    }

    fn guarantees(&self) -> Guarantees {
        Guarantees::ALL.with_durable(false)
    }

    async fn engine(&self) -> Arc<dyn Engine> {
        Arc::new(server::engine(self.0).await)
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
        server::left_behind(group).await
    }

    fn bound(&self) -> Duration {
        Duration::from_secs(120)
    }
}

ylock_core::conformance_tests!(
    Redis(Waiting::Told),
    #[ignore = "needs redis: run `cargo xtask test`"]
);

mod polling {
    use super::{POLL, Redis};

    ylock_core::conformance_tests!(
        Redis(POLL),
        #[ignore = "needs redis: run `cargo xtask test`"]
    );
}
