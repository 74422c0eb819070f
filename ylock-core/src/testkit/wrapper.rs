//! Engines that wrap another engine, and say only what differs.

use std::fmt;
use std::future::Future;
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

impl Call {
    /// All kinds, in the order of their definition.
    pub const ALL: &'static [Self] =
        &[Self::Acquire, Self::Renew, Self::Release, Self::Inspect, Self::Revoke, Self::Close];
}

/// An engine over another one. Each method hands the call on to [`inner`](Self::inner); a wrapper writes those that do something else. What
/// it does to every call of the store, it writes once, in [`around`](Self::around).
///
/// Every wrapper is an [`Engine`]. The methods of both traits have the same names: code of a wrapper calls those of the inner engine.
pub trait Wrapper: fmt::Debug + Send + Sync + 'static {
    /// Returns the engine that is wrapped.
    fn inner(&self) -> &dyn Engine;

    /// Makes one call of this wrapper: `answer` is what the method of the call does. An error of this method is the answer to the call; of
    /// [`renew`](Self::renew) the answer for every holding.
    fn around<T: Send>(
        &self,
        _call: Call,
        answer: impl Future<Output = Result<T>> + Send,
    ) -> impl Future<Output = Result<T>> + Send {
        answer
    }

    /// See [`Engine::name`].
    fn name(&self) -> &'static str {
        self.inner().name()
    }

    /// See [`Engine::guarantees`].
    fn guarantees(&self) -> Guarantees {
        self.inner().guarantees()
    }

    /// See [`Engine::environment`].
    fn environment(&self) -> Arc<dyn Environment> {
        self.inner().environment()
    }

    /// See [`Engine::meter`].
    fn meter(&self) -> &Meter {
        self.inner().meter()
    }

    /// See [`Engine::in_memory`].
    fn in_memory(&self) -> Vec<(&'static str, usize)> {
        self.inner().in_memory()
    }

    /// See [`Engine::concurrent_releases`].
    fn concurrent_releases(&self) -> Option<usize> {
        self.inner().concurrent_releases()
    }

    /// See [`Engine::check`].
    fn check(&self, options: &Options) -> Result<()> {
        self.inner().check(options)
    }

    /// See [`Engine::ticket`].
    fn ticket(&self) -> Ticket {
        self.inner().ticket()
    }

    /// See [`Engine::acquire`].
    fn acquire(&self, request: &Request) -> impl Future<Output = Result<Option<Grant>>> + Send {
        async move { self.inner().acquire(request).await }
    }

    /// See [`Engine::renew`].
    fn renew(&self, holdings: &[Holding]) -> impl Future<Output = Vec<Result<Renewal>>> + Send {
        async move { self.inner().renew(holdings).await }
    }

    /// See [`Engine::release`].
    fn release(
        &self,
        key: &Key,
        id: AcquisitionId,
        next: Option<&Request>,
    ) -> impl Future<Output = Result<Release>> + Send {
        async move { self.inner().release(key, id, next).await }
    }

    /// See [`Engine::inspect`].
    fn inspect(&self, key: &Key) -> impl Future<Output = Result<Inspection>> + Send {
        async move { self.inner().inspect(key).await }
    }

    /// See [`Engine::revoke`].
    fn revoke(&self, key: &Key, id: AcquisitionId) -> impl Future<Output = Result<bool>> + Send {
        async move { self.inner().revoke(key, id).await }
    }

    /// See [`Engine::close`].
    fn close(&self) -> impl Future<Output = Result<()>> + Send {
        async move { self.inner().close().await }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<W: Wrapper> Engine for W {
    fn name(&self) -> &'static str {
        Wrapper::name(self)
    }

    fn guarantees(&self) -> Guarantees {
        Wrapper::guarantees(self)
    }

    fn environment(&self) -> Arc<dyn Environment> {
        Wrapper::environment(self)
    }

    fn meter(&self) -> &Meter {
        Wrapper::meter(self)
    }

    fn in_memory(&self) -> Vec<(&'static str, usize)> {
        Wrapper::in_memory(self)
    }

    fn concurrent_releases(&self) -> Option<usize> {
        Wrapper::concurrent_releases(self)
    }

    fn check(&self, options: &Options) -> Result<()> {
        Wrapper::check(self, options)
    }

    fn ticket(&self) -> Ticket {
        Wrapper::ticket(self)
    }

    async fn acquire(&self, request: &Request) -> Result<Option<Grant>> {
        self.around(Call::Acquire, Wrapper::acquire(self, request)).await
    }

    async fn renew(&self, holdings: &[Holding]) -> Vec<Result<Renewal>> {
        let answers = async { Ok(Wrapper::renew(self, holdings).await) };
        let answers = self.around(Call::Renew, answers).await;
        answers.unwrap_or_else(|error| vec![Err(error); holdings.len()])
    }

    async fn release(&self, key: &Key, id: AcquisitionId, next: Option<&Request>) -> Result<Release> {
        self.around(Call::Release, Wrapper::release(self, key, id, next)).await
    }

    async fn inspect(&self, key: &Key) -> Result<Inspection> {
        self.around(Call::Inspect, Wrapper::inspect(self, key)).await
    }

    async fn revoke(&self, key: &Key, id: AcquisitionId) -> Result<bool> {
        self.around(Call::Revoke, Wrapper::revoke(self, key, id)).await
    }

    async fn close(&self) -> Result<()> {
        self.around(Call::Close, Wrapper::close(self)).await
    }
}
