//! The etcd engine, on one member and on a cluster, asked by the suite that every engine answers.
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
use tokio::runtime::{Builder, Runtime};
use ylock_core::Guarantees;
use ylock_core::engine::Engine;
use ylock_testkit::own_servers::{Link, Proxy};
use ylock_testkit::{Harness, Role};

/// The runtime of the proxies, which stand for the network: it outlives the runtimes of the clients.
static NETWORK: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap());

#[derive(Debug)]
struct Etcd {
    servers: Servers,
    /// The proxy through which each engine reaches the servers: a lease outlives its client only if the client cannot say goodbye.
    lines: Mutex<HashMap<usize, Proxy>>,
}

impl Etcd {
    fn on(servers: Servers) -> Self {
        Self { servers, lines: Mutex::default() }
    }
}

fn address(engine: &Arc<dyn Engine>) -> usize {
    Arc::as_ptr(engine).cast::<()>() as usize
}

#[async_trait]
impl Harness for Etcd {
    fn name(&self) -> &str {
        match self.servers {
            Servers::One => "etcd",
            Servers::Cluster => "etcd cluster",
        }
    }

    fn guarantees(&self) -> Guarantees {
        ylock_testkit::ALL_GUARANTEES
    }

    async fn engine(&self) -> Arc<dyn Engine> {
        let hosts = self.servers.hosts();
        let proxy = NETWORK.spawn(async move { Proxy::before(&hosts).await }).await.unwrap();
        let engine: Arc<dyn Engine> = Arc::new(server::engine(proxy.hosts()).await);
        self.lines.lock().insert(address(&engine), proxy);
        engine
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
        server::left_behind(&self.servers.hosts(), group).await
    }

    fn role(&self) -> Role {
        if self.servers != Servers::One { Role::Variant } else { Role::Engine }
    }
}

mod one {
    use super::{Etcd, Servers};

    ylock_testkit::conformance_tests!(
        Etcd::on(Servers::One),
        #[ignore = "needs etcd: run `cargo xtask test`"]
    );
}

mod cluster {
    use super::{Etcd, Servers};

    ylock_testkit::conformance_tests!(
        Etcd::on(Servers::Cluster),
        #[ignore = "needs etcd: run `cargo xtask test`"]
    );
}
