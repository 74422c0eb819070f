//! The engine: one function per operation, and what this client knows in addition to what the server has.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ylock_core::connecting::patiently;
use ylock_core::engine::{
    AcquisitionId, Diagnostics, Engine, Grant, Holding, Inspection, KeyPage, Meter, Release, Renewal,
    Request, Ticket,
};
use ylock_core::environment::{Environment, SystemEnvironment};
use ylock_core::options::check_lease;
use ylock_core::{Guarantees, JobRun, Key, Options, Result};

use crate::acquire::Acquire;
use crate::client::Client;
use crate::driver::Store;
use crate::options::PostgresOptions;
use crate::{NAME, inspect, keys, release, renew, runs, sweep};

/// The number of releases that are on their way at once, to begin with. Each is a commit, and one connection commits one after the other: thousands that
/// are sent together would wait for each other until they time out.
const RELEASES: usize = 64;

/// The engine for locks on PostgreSQL: each lock is one row.
#[derive(Debug)]
pub struct PostgresEngine {
    client: Arc<Client>,
    request_timeout: Duration,
}

impl PostgresEngine {
    /// Connects to the server and makes a client. It is tried again while the server is too slow for a request, for as long as connecting may take.
    ///
    /// # Errors
    /// [`Config`](ylock_core::ErrorKind::Config) for bad options, a refused login, a server that is too old, tables that are missing or of another
    /// version, and standbys that may lack what was confirmed; [`Unavailable`](ylock_core::ErrorKind::Unavailable) if no server answers
    /// that takes writes.
    pub async fn connect(options: &PostgresOptions) -> Result<Self> {
        options.check()?;
        let environment: Arc<dyn Environment> = SystemEnvironment::shared();
        let attempt = || Self::connect_once(options, &environment);
        patiently(&*environment, options.connect_timeout(), options.request_timeout(), attempt).await
    }

    async fn connect_once(options: &PostgresOptions, environment: &Arc<dyn Environment>) -> Result<Self> {
        let store = Store::open(options, environment).await?;
        let unwanted = release::release_unwanted;
        let client = Client::new(Arc::new(store), options, environment, unwanted).await?;
        sweep::start(&client);
        Ok(Self { client, request_timeout: options.request_timeout() })
    }

    /// Returns how many requests for locks this client has sent.
    pub fn requests(&self) -> u64 {
        self.client.store.requests()
    }
}

#[async_trait]
impl Engine for PostgresEngine {
    fn name(&self) -> &'static str {
        NAME
    }

    fn guarantees(&self) -> Guarantees {
        let promises = self.client.store.promises();
        let loses_nothing = promises.as_ref().is_ok_and(|promises| promises.loses_nothing);
        Guarantees::NONE
            .with_exclusive(true)
            .with_fair(true)
            .with_shared_reads(true)
            .with_durable(promises.is_ok_and(|promises| promises.durable))
            .with_fencing(loses_nothing)
            .with_exclusive_after_failover(loses_nothing)
    }

    fn environment(&self) -> Arc<dyn Environment> {
        Arc::clone(&self.client.environment)
    }

    fn concurrent_releases(&self) -> Option<usize> {
        Some(RELEASES)
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
        sweep::start(&self.client);
        Acquire::new(&self.client, request, self.request_timeout).run().await
    }

    async fn renew(&self, holdings: &[Holding]) -> Vec<Result<Renewal>> {
        renew::renew(&self.client, holdings).await
    }

    async fn release(&self, key: &Key, id: AcquisitionId, next: Option<&Request>) -> Result<Release> {
        release::release(&self.client, key, id, next).await
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
        self.client.store.diagnose().await
    }

    async fn close(&self) -> Result<()> {
        self.client.listener.close();
        self.client.records.clear();
        Ok(())
    }
}

impl Drop for PostgresEngine {
    fn drop(&mut self) {
        self.client.listener.close();
    }
}
