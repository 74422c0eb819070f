//! An engine with something in the way.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use ylock_core::Result;
use ylock_core::engine::Engine;

use crate::wrapper::{Call, Wrapped, Wrapper};

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
    /// Returns the engine behind the fault, as a fixture wants it.
    pub fn over(inner: Arc<dyn Engine>, fault: &Arc<F>) -> Arc<dyn Engine> {
        Arc::new(Wrapped(Self { inner, fault: Arc::clone(fault) }))
    }
}

impl<F: Fault> Wrapper for Faulty<F> {
    fn inner(&self) -> &dyn Engine {
        &*self.inner
    }

    async fn around<T: Send>(&self, call: Call, answer: impl Future<Output = Result<T>> + Send) -> Result<T> {
        self.fault.before(call).await?;
        let answer = answer.await;
        self.fault.after(call).await?;
        answer
    }
}
