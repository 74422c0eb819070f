//! The ZooKeeper engine, on one server and on an ensemble, asked by the suite that every engine answers.
#![allow(
    clippy::disallowed_methods,
    reason = "a test stands outside: it looks at real time and starts tasks of its own"
)]

mod server;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use server::Servers;
use server::proxy::{Link, Proxy};
use tokio::runtime::{Builder, Runtime};
use ylock_core::Guarantees;
use ylock_core::engine::Engine;
use ylock_engine_zookeeper::ZookeeperEngine;
use ylock_testkit::{Harness, Role};

/// The runtime of the proxies, which stand for the network: it outlives the runtimes of the clients.
static NETWORK: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap());

#[derive(Debug)]
struct Zookeeper {
    servers: Servers,
    /// The proxy through which each engine reaches the servers: a session outlives its client only if the client cannot say goodbye.
    lines: Mutex<HashMap<usize, Proxy>>,
}

impl Zookeeper {
    fn on(servers: Servers) -> Self {
        Self { servers, lines: Mutex::default() }
    }

    async fn engine_with(&self, session: Duration) -> Arc<dyn Engine> {
        let hosts = self.servers.hosts();
        let proxy = NETWORK.spawn(async move { Proxy::before(&hosts).await }).await.unwrap();
        let options = server::options(proxy.hosts()).with_session(session);
        let engine = ZookeeperEngine::connect(&options).await.expect("the servers under test answer");
        let engine: Arc<dyn Engine> = Arc::new(engine);
        self.lines.lock().insert(address(&engine), proxy);
        engine
    }
}

fn address(engine: &Arc<dyn Engine>) -> usize {
    Arc::as_ptr(engine).cast::<()>() as usize
}

#[async_trait]
impl Harness for Zookeeper {
    fn name(&self) -> &str {
        match self.servers {
            Servers::One => "zookeeper",
            Servers::Ensemble => "zookeeper ensemble",
        }
    }

    fn guarantees(&self) -> Guarantees {
        ylock_testkit::ALL_GUARANTEES
    }

    async fn engine(&self) -> Arc<dyn Engine> {
        self.engine_with(server::SESSION).await
    }

    /// All locks of a client end with its session, whatever their leases are.
    async fn engine_for(&self, lease: Duration) -> Arc<dyn Engine> {
        self.engine_with((lease * 6 / 5).clamp(server::SESSION, server::LONG_SESSION)).await
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

    async fn cut_off(&self, engine: &Arc<dyn Engine>) {
        let lines = self.lines.lock();
        lines.get(&address(engine)).expect("an engine of this harness").set(Link::Cut);
    }

    async fn left_behind(&self, group: &str) -> usize {
        server::left_behind(&self.servers.hosts(), group).await.len()
    }

    fn role(&self) -> Role {
        if self.servers != Servers::One { Role::Variant } else { Role::Whole }
    }
}

mod one {
    use super::{Servers, Zookeeper};

    ylock_testkit::conformance_tests!(
        Zookeeper::on(Servers::One),
        #[ignore = "needs zookeeper: run `cargo xtask test`"]
    );
}

mod ensemble {
    use super::{Servers, Zookeeper};

    ylock_testkit::conformance_tests!(
        Zookeeper::on(Servers::Ensemble),
        #[ignore = "needs zookeeper: run `cargo xtask test`"]
    );
}
