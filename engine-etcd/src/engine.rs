//! The engine: what is common to all operations, and which of them goes where.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use ylock_core::engine::{
    AcquisitionId, Diagnostics, Engine, Grant, Holding, Inspection, KeyPage, Meter, Release, Renewal,
    Request, Ticket, TicketClock,
};
use ylock_core::environment::{Environment, SystemEnvironment};
use ylock_core::options::check_lease;
use ylock_core::{Guarantees, JobRun, Key, Options, Result};

use crate::NAME;
use crate::algorithm::acquire::Acquire;
use crate::algorithm::client::Client;
use crate::algorithm::store::Store;
use crate::algorithm::{inspect, keys, release, renew, runs};
use crate::driver::Servers;
use crate::options::EtcdOptions;

/// The number of times that closing looks whether everything is gone.
const CLOSE_STEPS: u32 = 20;
/// The most releases at once, to begin with. Fewer would be slower: servers write what comes together to their disks together.
const RELEASES: usize = 128;

/// The engine for locks on an etcd cluster: each lock is a queue of keys, all under one etcd lease of their client; under several, if there are
/// very many or locks have different leases.
///
/// The connection lives in the runtime in which it was made. When that runtime ends, the client goes on over another connection, in whatever
/// runtime it is used in.
pub struct EtcdEngine {
    client: Arc<Client>,
    tickets: TicketClock,
}

impl EtcdEngine {
    /// Connects to a cluster and makes a client.
    ///
    /// # Errors
    /// [`Config`](ylock_core::ErrorKind::Config) for bad options, a refused login or servers that are too old;
    /// [`Unavailable`](ylock_core::ErrorKind::Unavailable) if no member answers.
    pub async fn connect(options: &EtcdOptions) -> Result<Self> {
        options.check()?;
        let environment = SystemEnvironment::shared();
        let servers = Servers::of(options, &environment)?;
        servers.connected().await?;
        Ok(Self::over(Arc::new(servers), environment, options))
    }

    /// Returns the servers that the options name, without a client: a benchmark compares with what is sent to them by hand.
    ///
    /// # Errors
    /// [`Config`](ylock_core::ErrorKind::Config) if a file that the options name cannot be read.
    #[doc(hidden)]
    pub fn servers(options: &EtcdOptions, environment: &Arc<dyn Environment>) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(Servers::of(options, environment)?))
    }

    /// Returns how many requests this client has sent.
    pub fn requests(&self) -> u64 {
        self.client.requests.load(Ordering::Relaxed)
    }

    /// Returns how many of the requests have made leases.
    #[doc(hidden)]
    pub fn leases(&self) -> u64 {
        self.client.leases.load(Ordering::Relaxed)
    }

    /// Makes a client over any servers and environment; a simulation brings its own.
    #[doc(hidden)]
    pub fn over(servers: Arc<dyn Store>, environment: Arc<dyn Environment>, options: &EtcdOptions) -> Self {
        Self { client: Client::new(servers, environment, options), tickets: TicketClock::default() }
    }
}

#[async_trait]
impl Engine for EtcdEngine {
    fn name(&self) -> &'static str {
        NAME
    }

    fn guarantees(&self) -> Guarantees {
        Guarantees::NONE
            .with_exclusive(true)
            .with_fair(true)
            .with_fencing(true)
            .with_shared_reads(true)
            .with_durable(true)
            .with_exclusive_after_failover(true)
    }

    fn environment(&self) -> Arc<dyn Environment> {
        Arc::clone(&self.client.environment)
    }

    fn meter(&self) -> &Meter {
        &self.client.meter
    }

    fn concurrent_releases(&self) -> Option<usize> {
        Some(RELEASES)
    }

    fn in_memory(&self) -> Vec<(&'static str, usize)> {
        let (claims, removals) = self.client.claims.count();
        vec![("claims", claims), ("removals", removals), ("announced", self.client.claims.announced())]
    }

    fn check(&self, options: &Options) -> Result<()> {
        check_lease(options.lease(), self.client.request_timeout).map_err(|error| error.with_engine(NAME))
    }

    fn ticket(&self) -> Ticket {
        self.tickets.next(&*self.client.environment)
    }

    async fn acquire(&self, request: &Request) -> Result<Option<Grant>> {
        check_lease(request.lease, self.client.request_timeout)?;
        Acquire::new(&self.client, request).run().await
    }

    async fn renew(&self, holdings: &[Holding]) -> Vec<Result<Renewal>> {
        renew::renew(&self.client, holdings).await
    }

    async fn release(&self, _: &Key, id: AcquisitionId, next: Option<&Request>) -> Result<Release> {
        release::release(&self.client, id, next).await
    }

    async fn inspect(&self, key: &Key) -> Result<Inspection> {
        inspect::inspect(&self.client, key).await
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
        Ok(self.client.diagnose().await)
    }

    /// Ends the etcd leases of the client. Keys that are still being removed have a moment to go; the rest goes with the leases.
    async fn close(&self) -> Result<()> {
        for _ in 0..CLOSE_STEPS {
            if self.client.is_clean() {
                break;
            }
            self.client.environment.sleep(self.client.request_timeout / CLOSE_STEPS).await;
        }
        self.client.close().await;
        Ok(())
    }
}

impl Drop for EtcdEngine {
    fn drop(&mut self) {
        if !self.client.is_closed() {
            self.client.environment.spawn(Box::pin(self.client.close()));
        }
    }
}

impl fmt::Debug for EtcdEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdEngine").field("client", &self.client).finish_non_exhaustive()
    }
}
