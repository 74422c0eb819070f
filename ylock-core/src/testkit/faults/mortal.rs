//! An engine of a process that can be paused and killed.

use std::sync::Arc;

use async_trait::async_trait;

use crate::engine::{
    AcquisitionId, Engine, Grant, Holding, Inspection, Meter, Release, Renewal, Request, Ticket,
};
use crate::environment::Environment;
use crate::error::Result;
use crate::guarantees::Guarantees;
use crate::key::Key;
use crate::options::Options;

use super::life::Life;

/// An engine that stops when its [`Life`] does: whatever it has begun stays as it is, for a while or for ever.
#[derive(Debug)]
pub struct KillableEngine {
    inner: Arc<dyn Engine>,
    life: Life,
}

impl KillableEngine {
    /// Creates the engine, and what pauses and kills it.
    pub fn new(inner: Arc<dyn Engine>) -> (Self, Life) {
        let life = Life::default();
        (Self { inner, life: life.clone() }, life)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Engine for KillableEngine {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn guarantees(&self) -> Guarantees {
        self.inner.guarantees()
    }

    fn environment(&self) -> Arc<dyn Environment> {
        self.inner.environment()
    }

    fn check(&self, options: &Options) -> Result<()> {
        self.inner.check(options)
    }

    fn ticket(&self) -> Ticket {
        self.inner.ticket()
    }

    fn meter(&self) -> &Meter {
        self.inner.meter()
    }

    fn concurrent_releases(&self) -> Option<usize> {
        self.inner.concurrent_releases()
    }

    fn in_memory(&self) -> Vec<(&'static str, usize)> {
        self.inner.in_memory()
    }

    async fn acquire(&self, request: &Request) -> Result<Option<Grant>> {
        self.life.live(self.inner.acquire(request)).await
    }

    async fn renew(&self, holdings: &[Holding]) -> Vec<Result<Renewal>> {
        self.life.live(self.inner.renew(holdings)).await
    }

    async fn release(&self, key: &Key, id: AcquisitionId, next: Option<&Request>) -> Result<Release> {
        self.life.live(self.inner.release(key, id, next)).await
    }

    async fn inspect(&self, key: &Key) -> Result<Inspection> {
        self.life.live(self.inner.inspect(key)).await
    }

    async fn revoke(&self, key: &Key, id: AcquisitionId) -> Result<bool> {
        self.life.live(self.inner.revoke(key, id)).await
    }

    async fn close(&self) -> Result<()> {
        self.life.live(self.inner.close()).await
    }
}
