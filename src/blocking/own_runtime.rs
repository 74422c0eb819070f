//! The runtime of a client: one thread, which ends with the last value of the client.

use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};

use super::outside::Outside;
use super::stalls::refuse_to_stall;
use super::waiting;
use crate::{Error, ErrorKind, Result};

/// The pause between two looks whether everything is given back.
const PAUSE: Duration = Duration::from_millis(10);

/// A runtime that nothing waits for when it ends.
pub(super) struct OwnRuntime {
    handle: Handle,
    /// `None` when it has been told to end.
    runtime: Option<Runtime>,
}

impl OwnRuntime {
    pub(super) fn start() -> Result<Self> {
        // Of more threads than one: one of them alone would run only while a caller waits.
        let mut builder = Builder::new_multi_thread();
        let built = builder.worker_threads(1).thread_name("ylock-blocking").enable_all().build();
        let runtime = built.map_err(|error| {
            Error::new(ErrorKind::Unavailable, "the thread of the client cannot be started")
                .with_source(error)
        })?;
        Ok(Self { handle: runtime.handle().clone(), runtime: Some(runtime) })
    }

    /// Waits for a future on this thread.
    pub(super) fn wait<F: Future>(&self, future: F) -> Result<F::Output> {
        self.wait_and_work(future, &Outside::<fn(), ()>::new())
    }

    /// Waits for a future on this thread, and does the work that it asks for.
    pub(super) fn wait_and_work<F: Future, W: FnOnce() -> T, T>(
        &self,
        future: F,
        outside: &Outside<W, T>,
    ) -> Result<F::Output> {
        refuse_to_stall()?;
        Ok(waiting::wait(&self.handle, future, outside))
    }

    /// Ends the runtime when this client has given back everything, and after `longest` in any case.
    #[allow(clippy::disallowed_methods, reason = "this is the runtime, and it is not the client that waits")]
    pub(super) fn end_after(&mut self, client: crate::Ylock, longest: Duration) {
        let Some(runtime) = self.runtime.take() else { return };
        let is_idle = async move {
            while client.keys_in_use() > 0 {
                tokio::time::sleep(PAUSE).await;
            }
        };
        drop(self.handle.spawn(async move {
            // What has not been given back by then the store frees by itself.
            let _ = tokio::time::timeout(longest, is_idle).await;
            runtime.shutdown_background();
        }));
    }
}

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
