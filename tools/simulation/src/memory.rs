//! The in-memory engine as other processes would reach it: on a server, over a wire that takes a while; or on their own machine, where it
//! answers at once.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use parking_lot::Mutex;
use ylock_core::engine::{
    AcquisitionId, AtOnce, Engine, Grant, Holding, Inspection, Release, Renewal, Request,
};
use ylock_core::environment::Environment;
use ylock_core::{JobRun, Key, MemoryEngine, MemoryStore, Result};
use ylock_testkit::{Wrapped, Wrapper};

use crate::chance::Chance;
use crate::clocks::Clocks;
use crate::world::{World, sleep};

/// The longest that a message takes.
const LATENCY: Duration = Duration::from_millis(20);

/// One store, which never fails, with a clock of its own.
#[derive(Debug)]
pub struct Server {
    world: Arc<World>,
    store: MemoryStore,
    chance: Mutex<Chance>,
}

impl Server {
    /// Creates an empty store.
    pub fn new(world: &Arc<World>, mut chance: Chance) -> Arc<Self> {
        let clocks = Clocks::new(world, world.new_actor(), 1.0, 0, chance.fork());
        let store = MemoryStore::in_environment(clocks);
        Arc::new(Self { world: Arc::clone(world), store, chance: chance.into() })
    }

    /// Connects a client to this store, on its own clocks. `near` is where it is answered at once.
    pub fn connect(self: &Arc<Self>, clocks: &Arc<Clocks>, near: bool) -> Arc<dyn Engine> {
        let (server, inner) = (Arc::clone(self), self.store.engine());
        Arc::new(Wrapped(Client { server, inner, near, clocks: Arc::clone(clocks) }))
    }

    /// Returns the holders and waiters of these keys, where there should be none.
    pub fn left(&self, keys: &[Key]) -> Vec<String> {
        let inspections = keys.iter().filter_map(|key| self.store.engine().inspect(key).now_or_never());
        let somebody = |seen: &Inspection| !seen.holders.is_empty() || !seen.queue.is_empty();
        let mut left: Vec<_> =
            inspections.flatten().filter(somebody).map(|seen| format!("{seen:?}")).collect();
        // Only now: the store forgets holders and waiters whose lease has ended when it is inspected.
        if !self.store.is_empty() {
            left.push(format!("{:?}", self.store));
        }
        left
    }

    async fn travel(&self) {
        let time = self.chance.lock().between(Duration::ZERO, LATENCY);
        sleep(&self.world, time).await;
    }
}

/// A client of the server; see [`Server::connect`].
#[derive(Debug)]
struct Client {
    server: Arc<Server>,
    inner: MemoryEngine,
    near: bool,
    clocks: Arc<Clocks>,
}

impl Client {
    /// Returns the grant on the client's clock. The store has granted it in this moment: by its own clock then, and by the client's now.
    fn of_now(&self, grant: Grant) -> Grant {
        grant.with_sent(self.clocks.now())
    }
}

impl AtOnce for Client {
    fn acquire(&self, request: &Request) -> Option<Result<Option<Grant>>> {
        let answer = AtOnce::acquire(&self.inner, request)?;
        Some(answer.map(|granted| granted.map(|grant| self.of_now(grant))))
    }

    fn release(&self, key: &Key, id: AcquisitionId, next: Option<&Request>) -> Result<Release> {
        AtOnce::release(&self.inner, key, id, next)
    }
}

impl Wrapper for Client {
    fn inner(&self) -> &dyn Engine {
        &self.inner
    }

    /// Returns the environment of the client, not of the server.
    fn environment(&self) -> Arc<dyn Environment> {
        Arc::clone(&self.clocks) as _
    }

    fn at_once(&self) -> Option<&dyn AtOnce> {
        self.near.then_some(self)
    }

    async fn acquire(&self, request: &Request) -> Result<Option<Grant>> {
        self.server.travel().await;
        let granted = Engine::acquire(&self.inner, request).await?.map(|grant| self.of_now(grant));
        self.server.travel().await;
        Ok(granted)
    }

    async fn renew(&self, holdings: &[Holding]) -> Vec<Result<Renewal>> {
        let asked = self.clocks.now();
        self.server.travel().await;
        let answers = self.inner.renew(holdings).await;
        self.server.travel().await;
        let on_own_clock = |answer| match answer {
            Renewal::Renewed { contended, .. } => Renewal::Renewed { sent: asked, contended },
            Renewal::Kept { .. } => Renewal::Kept { sent: asked },
            lost @ Renewal::Lost(_) => lost,
        };
        answers.into_iter().map(|answer| answer.map(on_own_clock)).collect()
    }

    async fn release(&self, key: &Key, id: AcquisitionId, next: Option<&Request>) -> Result<Release> {
        self.server.travel().await;
        let answer = Engine::release(&self.inner, key, id, next).await;
        self.server.travel().await;
        answer
    }

    async fn inspect(&self, key: &Key) -> Result<Inspection> {
        self.server.travel().await;
        self.inner.inspect(key).await
    }

    async fn last_run(&self, key: &Key) -> Result<Option<JobRun>> {
        self.server.travel().await;
        let last = self.inner.last_run(key).await;
        self.server.travel().await;
        last
    }

    async fn store_run(&self, key: &Key, run: &JobRun, kept: Duration) -> Result<bool> {
        self.server.travel().await;
        let stored = self.inner.store_run(key, run, kept).await;
        self.server.travel().await;
        stored
    }

    async fn revoke(&self, key: &Key, id: AcquisitionId) -> Result<bool> {
        self.server.travel().await;
        self.inner.revoke(key, id).await
    }
}
