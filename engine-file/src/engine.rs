//! The engine: one operation is a change of one file, made by the caller.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ylock_core::engine::{
    AcquisitionId, AtOnce, Diagnostics, Engine, Grant, Holding, Inspection, KeyPage, Meter, Patience,
    Release, Renewal, Request, Ticket,
};
use ylock_core::environment::{Environment, SystemEnvironment};
use ylock_core::queue::Now;
use ylock_core::{Error, ErrorKind, Guarantees, JobRun, Key, Options, Result};

use crate::acquire::{self, Look};
use crate::client::Client;
use crate::options::FileOptions;
use crate::place::place;
use crate::{NAME, attend, inspect, release, renew, runs, sweep};

/// The engine for locks among the processes of one host: each lock is one file.
#[derive(Debug)]
pub struct FileEngine {
    client: Arc<Client>,
}

impl FileEngine {
    /// Opens the folder and makes a client.
    ///
    /// # Errors
    /// [`Config`](ErrorKind::Config) for a folder that processes of other users, or of other hosts, could change, or that
    /// cannot be made; [`Unavailable`](ErrorKind::Unavailable) if there is no room.
    pub async fn connect(options: &FileOptions) -> Result<Self> {
        Self::over(options, SystemEnvironment::shared()).await
    }

    /// The same in another environment. For tests.
    #[doc(hidden)]
    pub async fn over(options: &FileOptions, environment: Arc<dyn Environment>) -> Result<Self> {
        let client = Client::open(options, environment).await;
        let client = client.map_err(|error| error.with_engine(NAME))?;
        attend::start(&client);
        sweep::sweep(&client).await;
        Ok(Self { client })
    }
}

impl AtOnce for FileEngine {
    fn acquire(&self, request: &Request) -> Option<Result<Option<Grant>>> {
        // What has failed, or has to wait, is for the call that may wait.
        match acquire::look(&self.client, request).ok()?? {
            Look::Entered(grant) => Some(Ok(Some(grant))),
            Look::Waits { .. } if request.patience == Patience::Try => Some(Ok(None)),
            Look::Waits { .. } => None,
        }
    }

    fn release(&self, key: &Key, id: AcquisitionId, next: Option<&Request>) -> Result<Release> {
        let released = release::release_at_once(&self.client, key, id, next)?;
        released.ok_or_else(|| Error::new(ErrorKind::Unavailable, "another process is changing this lock"))
    }
}

#[async_trait]
impl Engine for FileEngine {
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

    fn in_memory(&self) -> Vec<(&'static str, usize)> {
        vec![("waiters", self.client.waiters.len()), ("idle files", self.client.idle.len())]
    }

    fn at_once(&self) -> Option<&dyn AtOnce> {
        Some(self)
    }

    fn check(&self, options: &Options) -> Result<()> {
        crate::check(options).map_err(|error| error.with_engine(NAME))
    }

    fn ticket(&self) -> Ticket {
        place(Now::of(&*self.client.environment))
    }

    async fn acquire(&self, request: &Request) -> Result<Option<Grant>> {
        attend::start(&self.client);
        acquire::acquire(&self.client, request).await
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
        inspect::keys(&self.client, group, after).await
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
        self.client.folder.check_is_there()?;
        let mut seen = Diagnostics::default();
        seen.facts = self.client.folder.facts();
        Ok(seen)
    }

    async fn close(&self) -> Result<()> {
        self.client.closed.notify_one();
        sweep::remove_idle(&self.client, true).await;
        self.client.folder.remove_pipe(self.client.id)
    }
}
