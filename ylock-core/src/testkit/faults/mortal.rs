//! An engine of a process that can be paused and killed.

use std::future::Future;
use std::sync::Arc;

use crate::engine::Engine;
use crate::error::Result;
use crate::testkit::wrapper::{Call, Wrapper};

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

impl Wrapper for KillableEngine {
    fn inner(&self) -> &dyn Engine {
        &*self.inner
    }

    async fn around<T: Send>(&self, _: Call, answer: impl Future<Output = Result<T>> + Send) -> Result<T> {
        self.life.live(answer).await
    }
}
