//! The engine of a client that has not connected yet: the first call connects.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use tokio::sync::OnceCell;
use ylock_core::engine::{
    AcquisitionId, Engine, Grant, Holder, Holding, Inspection, KeyPage, LossReason, Meter, Release, Renewal,
    Request, Ticket,
};
use ylock_core::environment::Environment;
use ylock_core::{Guarantees, JobRun, Key, Options, Result};

use crate::clocks::Clocks;

/// Connects a client.
pub type Connect = Box<dyn Fn() -> BoxFuture<'static, Result<Arc<dyn Engine>>> + Send + Sync>;

/// An engine that connects when it is first asked for something; see the [module](self).
pub struct Connecting {
    name: &'static str,
    connect: Connect,
    clocks: Arc<Clocks>,
    meter: Meter,
    last_ticket: AtomicI64,
    engine: OnceCell<Arc<dyn Engine>>,
}

impl Connecting {
    /// Creates an engine of this name that will connect in this way.
    pub fn new(name: &'static str, clocks: &Arc<Clocks>, connect: Connect) -> Self {
        Self {
            name,
            connect,
            clocks: Arc::clone(clocks),
            meter: Meter::of(name, "simulated"),
            last_ticket: AtomicI64::new(0),
            engine: OnceCell::new(),
        }
    }

    async fn engine(&self) -> Result<&Arc<dyn Engine>> {
        self.engine.get_or_try_init(&self.connect).await
    }
}

#[async_trait]
impl Engine for Connecting {
    fn name(&self) -> &'static str {
        self.name
    }

    fn guarantees(&self) -> Guarantees {
        Guarantees::NONE
            .with_exclusive(true)
            .with_fair(true)
            .with_fencing(true)
            .with_shared_reads(true)
            .with_durable(true)
            .with_exclusive_after_failover(true)
    }

    fn environment(&self) -> Arc<dyn Environment> {
        Arc::clone(&self.clocks) as _
    }

    fn meter(&self) -> &Meter {
        self.engine.get().map_or(&self.meter, |engine| engine.meter())
    }

    fn in_memory(&self) -> Vec<(&'static str, usize)> {
        self.engine.get().map(|engine| engine.in_memory()).unwrap_or_default()
    }

    fn check(&self, options: &Options) -> Result<()> {
        self.engine.get().map_or(Ok(()), |engine| engine.check(options))
    }

    fn ticket(&self) -> Ticket {
        let wall = self.clocks.wall_micros();
        let last = self.last_ticket.fetch_max(wall, Ordering::Relaxed);
        match wall > last {
            true => Ticket::from_number(wall),
            false => Ticket::from_number(self.last_ticket.fetch_add(1, Ordering::Relaxed) + 1),
        }
    }

    async fn acquire(&self, request: &Request) -> Result<Option<Grant>> {
        self.engine().await?.acquire(request).await
    }

    async fn renew(&self, holdings: &[Holding]) -> Vec<Result<Renewal>> {
        match self.engine.get() {
            Some(engine) => engine.renew(holdings).await,
            None => holdings.iter().map(|_| Ok(Renewal::Lost(LossReason::Gone))).collect(),
        }
    }

    async fn release(&self, key: &Key, id: AcquisitionId, next: Option<&Request>) -> Result<Release> {
        match self.engine.get() {
            Some(engine) => engine.release(key, id, next).await,
            // Nothing was asked for yet.
            None => Ok(Release::WasGone),
        }
    }

    async fn inspect(&self, key: &Key) -> Result<Inspection> {
        self.engine().await?.inspect(key).await
    }

    async fn may_be_free(&self, key: &Key) -> Result<bool> {
        self.engine().await?.may_be_free(key).await
    }

    async fn exact_holders(&self, key: &Key) -> Result<Vec<Holder>> {
        self.engine().await?.exact_holders(key).await
    }

    async fn keys(&self, group: Option<&str>, after: Option<&str>) -> Result<KeyPage> {
        self.engine().await?.keys(group, after).await
    }

    async fn revoke(&self, key: &Key, id: AcquisitionId) -> Result<bool> {
        self.engine().await?.revoke(key, id).await
    }

    async fn last_run(&self, key: &Key) -> Result<Option<JobRun>> {
        self.engine().await?.last_run(key).await
    }

    async fn store_run(&self, key: &Key, run: &JobRun, kept: Duration) -> Result<bool> {
        self.engine().await?.store_run(key, run, kept).await
    }

    async fn close(&self) -> Result<()> {
        match self.engine.get() {
            Some(engine) => engine.close().await,
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Connecting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Connecting").field(&self.engine).finish()
    }
}
