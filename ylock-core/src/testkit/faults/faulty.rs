//! An engine with something in the way.

use std::fmt;
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

/// A kind of call of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named like the calls")]
#[allow(clippy::exhaustive_enums, reason = "as many as the engine has calls")]
pub enum Call {
    Acquire,
    Renew,
    Release,
    Inspect,
    Revoke,
    Close,
}

/// A fault that happens to the calls of an engine.
#[async_trait]
pub trait Fault: fmt::Debug + Send + Sync + 'static {
    /// Called before anything is sent; an error is returned instead of sending.
    async fn before(&self, call: Call) -> Result<()>;

    /// Called after the call was done; an error is returned instead of the result.
    async fn after(&self, call: Call) -> Result<()>;
}

/// An engine all of whose calls meet a [`Fault`].
#[derive(Debug)]
pub struct Faulty<F> {
    inner: Arc<dyn Engine>,
    fault: Arc<F>,
}

impl<F: Fault> Faulty<F> {
    /// Returns the engine behind the fault, as a stage wants it.
    pub fn over(inner: Arc<dyn Engine>, fault: &Arc<F>) -> Arc<dyn Engine> {
        Arc::new(Self { inner, fault: Arc::clone(fault) })
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<F: Fault> Engine for Faulty<F> {
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
        self.fault.before(Call::Acquire).await?;
        let result = self.inner.acquire(request).await;
        self.fault.after(Call::Acquire).await?;
        result
    }

    async fn renew(&self, holdings: &[Holding]) -> Vec<Result<Renewal>> {
        if let Err(error) = self.fault.before(Call::Renew).await {
            return vec![Err(error); holdings.len()];
        }
        let results = self.inner.renew(holdings).await;
        match self.fault.after(Call::Renew).await {
            Ok(()) => results,
            Err(error) => vec![Err(error); holdings.len()],
        }
    }

    async fn release(&self, key: &Key, id: AcquisitionId, next: Option<&Request>) -> Result<Release> {
        self.fault.before(Call::Release).await?;
        let result = self.inner.release(key, id, next).await;
        self.fault.after(Call::Release).await?;
        result
    }

    async fn inspect(&self, key: &Key) -> Result<Inspection> {
        self.fault.before(Call::Inspect).await?;
        let result = self.inner.inspect(key).await;
        self.fault.after(Call::Inspect).await?;
        result
    }

    async fn revoke(&self, key: &Key, id: AcquisitionId) -> Result<bool> {
        self.fault.before(Call::Revoke).await?;
        let result = self.inner.revoke(key, id).await;
        self.fault.after(Call::Revoke).await?;
        result
    }

    async fn close(&self) -> Result<()> {
        self.fault.before(Call::Close).await?;
        let result = self.inner.close().await;
        self.fault.after(Call::Close).await?;
        result
    }
}
