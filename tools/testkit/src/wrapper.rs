//! Engines that wrap another engine, and say only what differs.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ylock_core::engine::{
    AcquisitionId, AtOnce, Diagnostics, EarlyRenewals, Engine, Grant, Holder, Holding, Inspection, KeyPage,
    Meter, Release, Renewal, Request, Ticket,
};
use ylock_core::environment::Environment;
use ylock_core::{Guarantees, JobRun, Key, Options, Result};

/// A kind of call of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named like the calls")]
#[allow(clippy::exhaustive_enums, reason = "as many as the engine has calls")]
pub enum Call {
    Acquire,
    Renew,
    Release,
    Inspect,
    Keys,
    Revoke,
    LastRun,
    StoreRun,
    Examine,
    Close,
}

impl Call {
    /// All kinds, in the order of their definition.
    pub const ALL: &'static [Self] = &[
        Self::Acquire,
        Self::Renew,
        Self::Release,
        Self::Inspect,
        Self::Keys,
        Self::Revoke,
        Self::LastRun,
        Self::StoreRun,
        Self::Examine,
        Self::Close,
    ];
}

/// What is put around another engine; [`Wrapped`] makes an engine of it. Each method hands the call on to [`inner`](Self::inner); a wrapper
/// writes those that do something else. What it does to every call of the store, it writes once, in [`around`](Self::around).
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

    /// See [`Engine::early_renewals`].
    fn early_renewals(&self) -> Option<&EarlyRenewals> {
        self.inner().early_renewals()
    }

    /// See [`Engine::at_once`]. Nothing by default: what a wrapper does to the calls of the store is done around futures.
    fn at_once(&self) -> Option<&dyn AtOnce> {
        None
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

    /// See [`Engine::may_be_free`].
    fn may_be_free(&self, key: &Key) -> impl Future<Output = Result<bool>> + Send {
        async move { self.inner().may_be_free(key).await }
    }

    /// See [`Engine::exact_holders`].
    fn exact_holders(&self, key: &Key) -> impl Future<Output = Result<Vec<Holder>>> + Send {
        async move { self.inner().exact_holders(key).await }
    }

    /// See [`Engine::keys`].
    fn keys(&self, group: Option<&str>, after: Option<&str>) -> impl Future<Output = Result<KeyPage>> + Send {
        async move { self.inner().keys(group, after).await }
    }

    /// See [`Engine::revoke`].
    fn revoke(&self, key: &Key, id: AcquisitionId) -> impl Future<Output = Result<bool>> + Send {
        async move { self.inner().revoke(key, id).await }
    }

    /// See [`Engine::last_run`].
    fn last_run(&self, key: &Key) -> impl Future<Output = Result<Option<JobRun>>> + Send {
        async move { self.inner().last_run(key).await }
    }

    /// See [`Engine::store_run`].
    fn store_run(
        &self,
        key: &Key,
        run: &JobRun,
        kept: Duration,
    ) -> impl Future<Output = Result<bool>> + Send {
        async move { self.inner().store_run(key, run, kept).await }
    }

    /// See [`Engine::diagnose`].
    fn diagnose(&self) -> impl Future<Output = Result<Diagnostics>> + Send {
        async move { self.inner().diagnose().await }
    }

    /// See [`Engine::close`].
    fn close(&self) -> impl Future<Output = Result<()>> + Send {
        async move { self.inner().close().await }
    }
}

/// The engine that a [`Wrapper`] makes of another one.
#[derive(Debug)]
pub struct Wrapped<W>(pub W);

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<W: Wrapper> Engine for Wrapped<W> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn guarantees(&self) -> Guarantees {
        self.0.guarantees()
    }

    fn environment(&self) -> Arc<dyn Environment> {
        self.0.environment()
    }

    fn meter(&self) -> &Meter {
        self.0.meter()
    }

    fn in_memory(&self) -> Vec<(&'static str, usize)> {
        self.0.in_memory()
    }

    fn concurrent_releases(&self) -> Option<usize> {
        self.0.concurrent_releases()
    }

    fn early_renewals(&self) -> Option<&EarlyRenewals> {
        self.0.early_renewals()
    }

    fn at_once(&self) -> Option<&dyn AtOnce> {
        self.0.at_once()
    }

    fn check(&self, options: &Options) -> Result<()> {
        self.0.check(options)
    }

    fn ticket(&self) -> Ticket {
        self.0.ticket()
    }

    async fn acquire(&self, request: &Request) -> Result<Option<Grant>> {
        self.0.around(Call::Acquire, self.0.acquire(request)).await
    }

    async fn renew(&self, holdings: &[Holding]) -> Vec<Result<Renewal>> {
        let answers = async { Ok(self.0.renew(holdings).await) };
        let answers = self.0.around(Call::Renew, answers).await;
        answers.unwrap_or_else(|error| vec![Err(error); holdings.len()])
    }

    async fn release(&self, key: &Key, id: AcquisitionId, next: Option<&Request>) -> Result<Release> {
        self.0.around(Call::Release, self.0.release(key, id, next)).await
    }

    async fn inspect(&self, key: &Key) -> Result<Inspection> {
        self.0.around(Call::Inspect, self.0.inspect(key)).await
    }

    async fn may_be_free(&self, key: &Key) -> Result<bool> {
        self.0.around(Call::Inspect, self.0.may_be_free(key)).await
    }

    async fn exact_holders(&self, key: &Key) -> Result<Vec<Holder>> {
        self.0.around(Call::Inspect, self.0.exact_holders(key)).await
    }

    async fn keys(&self, group: Option<&str>, after: Option<&str>) -> Result<KeyPage> {
        self.0.around(Call::Keys, self.0.keys(group, after)).await
    }

    async fn revoke(&self, key: &Key, id: AcquisitionId) -> Result<bool> {
        self.0.around(Call::Revoke, self.0.revoke(key, id)).await
    }

    async fn last_run(&self, key: &Key) -> Result<Option<JobRun>> {
        self.0.around(Call::LastRun, self.0.last_run(key)).await
    }

    async fn store_run(&self, key: &Key, run: &JobRun, kept: Duration) -> Result<bool> {
        self.0.around(Call::StoreRun, self.0.store_run(key, run, kept)).await
    }

    async fn diagnose(&self) -> Result<Diagnostics> {
        self.0.around(Call::Examine, self.0.diagnose()).await
    }

    async fn close(&self) -> Result<()> {
        self.0.around(Call::Close, self.0.close()).await
    }
}
