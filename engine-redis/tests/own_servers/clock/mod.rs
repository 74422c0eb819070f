//! A server whose clock can be set, and what becomes of locks then.

mod counter;
mod random;
mod steps;

use std::time::Duration;

use ylock_core::engine::{AcquisitionId, Engine, Request};
use ylock_core::{ClientName, Key, Mode, Owner};
use ylock_engine_redis::RedisEngine;
use ylock_testkit::own_servers::SetClock;

use super::own_server::OwnServer;

const HOUR: Duration = Duration::from_secs(60 * 60);

/// See the [module](self).
struct SetServer {
    server: OwnServer,
    clock: SetClock,
}

impl SetServer {
    async fn start() -> Self {
        let clock = SetClock::make();
        Self { server: OwnServer::start_by(&clock).await, clock }
    }

    async fn forwards(&mut self, by: Duration) {
        self.clock.forwards(by, async || time(&self.server).await).await;
    }

    async fn backwards(&mut self, by: Duration) {
        self.clock.backwards(by, async || time(&self.server).await).await;
    }

    async fn step(&mut self, by: i64) {
        self.clock.step(by, async || time(&self.server).await).await;
    }
}

/// In microseconds since 1970.
async fn time(server: &OwnServer) -> i64 {
    let (seconds, micros): (i64, i64) = server.ask(&["TIME"]).await.unwrap();
    seconds * 1_000_000 + micros
}

fn request(engine: &RedisEngine, mode: Mode, lease: Duration) -> Request {
    Request::new(
        Key::new("users", "alice").unwrap(),
        AcquisitionId::new(&*engine.environment()),
        mode,
        Owner::new(),
        ClientName::default(),
        lease,
    )
}
