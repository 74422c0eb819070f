//! A value of the async API together with the runtime of its client: what every value of this module is.

use std::fmt;
use std::sync::Arc;

use super::outside::Outside;
use super::own_runtime::OwnRuntime;
use crate::Result;

/// A client and its runtime.
struct Shared {
    /// What went wrong is told by the first call that waits.
    runtime: Result<OwnRuntime>,
    client: crate::Ylock,
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Ok(runtime) = &mut self.runtime {
            let longest = self.client.options().lease() * 2;
            runtime.end_after(self.client.clone(), longest);
        }
    }
}

/// A value of the async API, and the client that it is of.
#[derive(Clone)]
pub struct Tied<T> {
    // In this order: a guard is given back before its client may be gone.
    pub(super) value: T,
    shared: Arc<Shared>,
}

impl Tied<crate::Ylock> {
    pub(super) fn new(client: crate::Ylock, runtime: Result<OwnRuntime>) -> Self {
        Self { value: client.clone(), shared: Arc::new(Shared { runtime, client }) }
    }
}

impl<T> Tied<T> {
    /// Returns another value of the same client.
    pub(super) fn tie<U>(&self, value: U) -> Tied<U> {
        Tied { value, shared: Arc::clone(&self.shared) }
    }

    /// Returns what becomes of the value, for the same client.
    pub(super) fn map<U>(self, change: impl FnOnce(T) -> U) -> Tied<U> {
        Tied { value: change(self.value), shared: self.shared }
    }

    /// Returns the value, and what ties another one to the same runtime.
    pub(super) fn apart(self) -> (T, Tied<()>) {
        (self.value, Tied { value: (), shared: self.shared })
    }

    /// Waits for the end of a future.
    pub(super) fn wait<F: Future>(&self, future: F) -> Result<F::Output> {
        self.runtime()?.wait(future)
    }

    /// Waits for a future that asks for work.
    pub(super) fn work<F, U, W, O>(&self, future: F, outside: &Outside<W, O>) -> Result<U>
    where
        F: Future<Output = Result<U>>,
        W: FnOnce() -> O,
    {
        self.runtime()?.wait_and_work(future, outside)?
    }

    /// Waits for a value of the same client.
    pub(super) fn acquire<U>(&self, future: impl Future<Output = Result<U>>) -> Result<Tied<U>> {
        Ok(self.tie(self.wait(future)??))
    }

    /// Waits for a value of the same client, if there is to be one.
    pub(super) fn try_acquire<U>(
        &self,
        future: impl Future<Output = Result<Option<U>>>,
    ) -> Result<Option<Tied<U>>> {
        Ok(self.wait(future)??.map(|value| self.tie(value)))
    }

    /// Waits for something that uses the value up.
    pub(super) fn finish<F: Future<Output = Result<U>>, U>(self, end: impl FnOnce(T) -> F) -> Result<U> {
        let Self { value, shared } = self;
        let ended = match &shared.runtime {
            Ok(runtime) => runtime.wait(end(value)),
            Err(error) => Err(error.clone()),
        };
        ended?
    }

    pub(super) fn runtime(&self) -> Result<&OwnRuntime> {
        self.shared.runtime.as_ref().map_err(Clone::clone)
    }
}

/// Shows the value, as that of the async API.
impl<T: fmt::Debug> fmt::Debug for Tied<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}
