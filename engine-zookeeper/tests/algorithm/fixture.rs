//! One lock on servers in memory, and clients that are used without a keeper.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use ylock_core::engine::{AcquisitionId, Engine, Grant, Holding, Renewal, Request};
use ylock_core::environment::{Environment, Moment, SystemEnvironment};
use ylock_core::url::Host;
use ylock_core::{ClientName, Key, Mode, Owner, Result};
use ylock_engine_zookeeper::{ZookeeperEngine, ZookeeperOptions};

use crate::fake::{Fake, SESSION, Servers};

const LEASE: Duration = Duration::from_secs(10);
/// The node of the lock.
pub(crate) const LOCK: &str = "/ylock/24/users:alice";

/// See the [module](self).
pub(crate) struct Fixture {
    environment: Arc<dyn Environment>,
    pub(crate) fake: Arc<Fake>,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let environment = SystemEnvironment::on_tokio_clock();
        Self { fake: Fake::new(&environment), environment }
    }

    pub(crate) async fn client(&self) -> Arc<ZookeeperEngine> {
        self.client_with(&Self::options()).await.unwrap()
    }

    pub(crate) async fn client_with(&self, options: &ZookeeperOptions) -> Result<Arc<ZookeeperEngine>> {
        self.client_in(Arc::clone(&self.environment), options).await
    }

    pub(crate) async fn client_in(
        &self,
        environment: Arc<dyn Environment>,
        options: &ZookeeperOptions,
    ) -> Result<Arc<ZookeeperEngine>> {
        let servers = Arc::new(Servers(Arc::clone(&self.fake)));
        ZookeeperEngine::over(servers, environment, options).await.map(Arc::new)
    }

    pub(crate) fn environment(&self) -> Arc<dyn Environment> {
        Arc::clone(&self.environment)
    }

    pub(crate) fn options() -> ZookeeperOptions {
        let host = Host::new("in-memory", None);
        ZookeeperOptions::new([host]).with_lease(LEASE)
    }

    pub(crate) fn now(&self) -> Moment {
        self.environment.now()
    }

    pub(crate) fn request(&self, mode: Mode) -> Request {
        let (key, id) = (Key::new("users", "alice").unwrap(), AcquisitionId::new(&*self.environment));
        Request::new(key, id, mode, Owner::new(), ClientName::default(), LEASE)
    }

    /// Acquires in a task of its own.
    pub(crate) fn acquiring(&self, engine: &Arc<ZookeeperEngine>, mode: Mode) -> JoinHandle<Option<Grant>> {
        let (engine, request) = (Arc::clone(engine), self.request(mode));
        tokio::spawn(async move { engine.acquire(&request).await.unwrap() })
    }

    /// Returns options for leases that are far shorter than the session.
    pub(crate) fn short_leases(lease: Duration) -> ZookeeperOptions {
        Self::options().with_lease(lease).with_session(SESSION)
    }

    /// Waits for a grant, within far less than a session.
    pub(crate) async fn granted(&self, acquiring: JoinHandle<Option<Grant>>) -> Grant {
        let grant = tokio::time::timeout(LEASE / 2, acquiring).await.expect("it is not let in");
        grant.unwrap().expect("it waits")
    }

    /// Makes the nodes above the lock.
    pub(crate) async fn make_bucket(&self, engine: &ZookeeperEngine) {
        let grant = engine.acquire(&self.request(Mode::Write)).await.unwrap().unwrap();
        engine.release(&grant.key, grant.id, None).await.unwrap();
    }

    /// Returns the names of the contenders.
    pub(crate) fn contenders(&self) -> Vec<String> {
        self.fake.nodes().names(LOCK).unwrap_or_default()
    }

    /// Waits until there are so many contenders.
    pub(crate) async fn until_contenders(&self, count: usize) {
        let all = async {
            while self.contenders().len() != count {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(LEASE, all).await.expect("there are not so many contenders");
    }
}

/// Renews one grant.
pub(crate) async fn renew(engine: &ZookeeperEngine, grant: &Grant) -> Result<Renewal> {
    let holding = Holding::new(grant.clone(), None);
    engine.renew(&[holding]).await.remove(0)
}
