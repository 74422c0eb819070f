//! The engine: one script per operation, and what this client knows in addition to what the server has.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use ylock_core::connecting::patiently;
use ylock_core::engine::{
    AcquisitionId, Diagnostics, Engine, Grant, Holding, Inspection, KeyPage, Meter, Release, Renewal,
    Request, Ticket,
};
use ylock_core::environment::Environment;
use ylock_core::options::check_lease;
use ylock_core::{Guarantees, JobRun, Key, Options, Result};

use crate::acquire::Acquire;
use crate::client::Client;
use crate::driver::Surroundings;
use crate::options::{RedisOptions, Topology};
use crate::transport::Transport;
use crate::{NAME, inspect, keys, release, renew, runs};

/// The engine for locks on Redis: each lock is one hash.
#[derive(Debug)]
pub struct RedisEngine {
    client: Arc<Client>,
    request_timeout: Duration,
    guarantees: Guarantees,
}

impl RedisEngine {
    /// Connects to the servers and makes a client. It is tried again while a server is too slow for a request, for as long as connecting may take.
    ///
    /// # Errors
    /// [`Config`](ylock_core::ErrorKind::Config) for bad options, a refused login or a server that is too old, of the wrong kind, or throws away keys when its memory is full;
    /// [`Unavailable`](ylock_core::ErrorKind::Unavailable) if no server answers.
    pub async fn connect(options: &RedisOptions) -> Result<Self> {
        Self::connect_over(options, &Surroundings::of_the_system()).await
    }

    /// Connects as [`connect`](Self::connect) does, over streams that the program brings, and with time, chance and tasks of its own: for
    /// simulations. TLS is not used on these streams, and the crate `redis` measures no time.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    #[doc(hidden)]
    pub async fn over(
        transport: Arc<dyn Transport>,
        environment: Arc<dyn Environment>,
        options: &RedisOptions,
    ) -> Result<Self> {
        Self::connect_over(options, &Surroundings { environment, transport: Some(transport) }).await
    }

    async fn connect_over(options: &RedisOptions, surroundings: &Surroundings) -> Result<Self> {
        options.check()?;
        let guarantees = guarantees(options.topology());
        let (environment, request_timeout) = (&*surroundings.environment, options.request_timeout());
        let attempt =
            || Client::connect(options, guarantees.fencing, release::release_unwanted, surroundings);
        let client = patiently(environment, options.connect_timeout(), request_timeout, attempt).await?;
        Ok(Self { client, request_timeout, guarantees })
    }

    /// Returns how many scripts this client has called.
    pub fn requests(&self) -> u64 {
        self.client.store.requests()
    }
}

#[async_trait]
impl Engine for RedisEngine {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Without exclusion for as long as a server may throw away locks, or does not say that it keeps them. Tokens grow all the same: they follow
    /// the server's clock where the last one is not known.
    fn guarantees(&self) -> Guarantees {
        if self.client.store.keeps_locks() {
            return self.guarantees;
        }
        self.guarantees.with_exclusive(false).with_exclusive_after_failover(false)
    }

    fn environment(&self) -> Arc<dyn Environment> {
        Arc::clone(&self.client.environment)
    }

    fn check(&self, options: &Options) -> Result<()> {
        check_lease(options.lease(), self.request_timeout).map_err(|error| error.with_engine(NAME))
    }

    fn ticket(&self) -> Ticket {
        Ticket::from_number(self.client.clock.shows())
    }

    fn meter(&self) -> &Meter {
        self.client.store.meter()
    }

    fn in_memory(&self) -> Vec<(&'static str, usize)> {
        vec![("acquisitions", self.client.records.len())]
    }

    async fn acquire(&self, request: &Request) -> Result<Option<Grant>> {
        check_lease(request.lease, self.request_timeout)?;
        self.client.clock.keep_fresh();
        self.client.store.keep_looking();
        Acquire::new(&self.client, request, self.request_timeout).run().await
    }

    /// Renews each grant with a request of its own; all are on their way at once over one connection.
    async fn renew(&self, holdings: &[Holding]) -> Vec<Result<Renewal>> {
        self.client.store.keep_looking();
        join_all(holdings.iter().map(|holding| renew::renew(&self.client, holding))).await
    }

    async fn release(&self, key: &Key, id: AcquisitionId, next: Option<&Request>) -> Result<Release> {
        release::release(&self.client, key, id, next).await
    }

    async fn inspect(&self, key: &Key) -> Result<Inspection> {
        inspect::inspect(&self.client, key).await
    }

    async fn may_be_free(&self, key: &Key) -> Result<bool> {
        inspect::may_be_free(&self.client, key).await
    }

    async fn keys(&self, group: Option<&str>, after: Option<&str>) -> Result<KeyPage> {
        keys::keys(&self.client, group, after).await
    }

    async fn revoke(&self, key: &Key, id: AcquisitionId) -> Result<bool> {
        inspect::revoke(&self.client, key, id).await
    }

    async fn last_run(&self, key: &Key) -> Result<Option<JobRun>> {
        runs::last_run(&self.client, key).await
    }

    async fn store_run(&self, key: &Key, run: &JobRun, kept: Duration) -> Result<bool> {
        runs::store_run(&self.client, key, run, kept).await
    }

    async fn diagnose(&self) -> Result<Diagnostics> {
        self.client.store.diagnose().await
    }

    async fn close(&self) -> Result<()> {
        self.client.subscriber.close();
        self.client.records.clear();
        Ok(())
    }
}

impl Drop for RedisEngine {
    fn drop(&mut self) {
        self.client.subscriber.close();
    }
}

/// Returns the guarantees of a topology. A server that takes over may lack the last writes, and its clock may differ: then tokens can fall.
fn guarantees(topology: &Topology) -> Guarantees {
    let is_alone = *topology == Topology::Single;
    Guarantees::NONE
        .with_exclusive(true)
        .with_fair(true)
        .with_fencing(is_alone)
        .with_shared_reads(true)
        .with_exclusive_after_failover(is_alone)
}
