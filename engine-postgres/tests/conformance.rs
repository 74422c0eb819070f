//! The PostgreSQL engine, told and polling, asked by the suite that every engine answers.

mod server;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ylock_core::Guarantees;
use ylock_core::engine::Engine;
use ylock_engine_postgres::options::Notify;
use ylock_testkit::{Harness, Role};

const POLL: Notify = Notify::Off { poll: Duration::from_millis(5), poll_longest: Duration::from_millis(40) };

#[derive(Debug)]
struct Postgres(Notify);

#[async_trait]
impl Harness for Postgres {
    fn name(&self) -> &str {
        if self.role() == Role::Variant { "postgres polling" } else { "postgres" }
    }

    fn guarantees(&self) -> Guarantees {
        // The server of the tests does not wait for its disk.
        ylock_testkit::ALL_GUARANTEES.with_durable(false)
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

    fn role(&self) -> Role {
        if self.0 != Notify::Auto { Role::Variant } else { Role::Engine }
    }
}

ylock_testkit::conformance_tests!(
    Postgres(Notify::Auto),
    #[ignore = "needs postgres: run `cargo xtask test`"]
);

mod polling {
    use super::{POLL, Postgres};

    ylock_testkit::conformance_tests!(
        Postgres(POLL),
        #[ignore = "needs postgres: run `cargo xtask test`"]
    );
}
