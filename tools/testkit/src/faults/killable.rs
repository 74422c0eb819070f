//! An engine of a process that can be paused and killed.

use std::future::Future;
use std::sync::Arc;

use ylock_core::Result;
use ylock_core::engine::Engine;

use crate::wrapper::{Call, Wrapped, Wrapper};

use super::process::Process;

/// An engine that stops when its [`Process`] does: whatever it has begun stays as it is, for a while or for ever.
#[derive(Debug)]
pub struct KillableEngine {
    inner: Arc<dyn Engine>,
    process: Process,
}

impl KillableEngine {
    /// Creates the engine, and what pauses and kills it.
    pub fn new(inner: Arc<dyn Engine>) -> (Wrapped<Self>, Process) {
        let process = Process::default();
        (Wrapped(Self { inner, process: process.clone() }), process)
    }
}

impl Wrapper for KillableEngine {
    fn inner(&self) -> &dyn Engine {
        &*self.inner
    }

    async fn around<T: Send>(&self, _: Call, answer: impl Future<Output = Result<T>> + Send) -> Result<T> {
        self.process.run(answer).await
    }
}
