//! What sends: the servers, and what every request of a client needs. It knows nothing of sessions
//! and claims.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ylock_core::engine::{Diagnostics, Meter};
use ylock_core::environment::Environment;

use super::names::Names;
use super::store::{Fault, Granted, Outcome, Pending, Store, Transaction, Watching, failure};
use crate::options::EtcdOptions;

/// The way of a client to the servers; see the [module](self).
pub(crate) struct Link {
    store: Arc<dyn Store>,
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) names: Names,
    pub(crate) request_timeout: Duration,
    pub(crate) meter: Meter,
    /// The number of requests that were sent.
    pub(crate) requests: AtomicU64,
    /// Those of them that have made leases for sessions.
    pub(crate) leases: AtomicU64,
}

impl Link {
    pub(super) fn new(
        store: Arc<dyn Store>,
        environment: Arc<dyn Environment>,
        options: &EtcdOptions,
    ) -> Self {
        Self {
            store,
            environment,
            names: Names::below(options.prefix()),
            request_timeout: options.request_timeout(),
            meter: Meter::of(crate::NAME, options.cluster()),
            requests: AtomicU64::new(0),
            leases: AtomicU64::new(0),
        }
    }

    /// Carries out a transaction.
    pub(crate) async fn transact(
        &self,
        operation: &'static str,
        transaction: Transaction,
    ) -> Result<Outcome, Fault> {
        self.measured(operation, self.store.transact(transaction)).await
    }

    pub(super) async fn watch(&self, key: Vec<u8>, changes: bool) -> Result<Watching, Fault> {
        self.measured("watch", self.store.watch(key, changes)).await
    }

    /// Asks each server what it tells of itself.
    pub(crate) async fn diagnose(&self) -> Diagnostics {
        self.store.diagnose().await
    }

    /// Makes a lease for something that is no lock.
    pub(super) async fn grant(&self, seconds: i64) -> Result<i64, Fault> {
        Ok(self.measured("grant", self.store.grant(seconds)).await?.lease)
    }

    /// Makes a lease for a session.
    pub(super) async fn grant_for_session(&self, seconds: i64) -> Result<Granted, Fault> {
        self.leases.fetch_add(1, Ordering::Relaxed);
        self.measured("grant", self.store.grant(seconds)).await
    }

    pub(super) async fn revoke(&self, lease: i64) -> Result<(), Fault> {
        self.measured("revoke", self.store.revoke(lease)).await
    }

    async fn measured<T>(&self, operation: &'static str, request: Pending<'_, T>) -> Result<T, Fault> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.meter.measure_as(&*self.environment, operation, request, failure).await
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("store", &self.store).finish_non_exhaustive()
    }
}
