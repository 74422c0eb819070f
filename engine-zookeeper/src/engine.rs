//! The engine: what is common to all operations, and which of them goes where.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use ylock_core::engine::{
    AcquisitionId, Diagnostics, Engine, Grant, Holder, Holding, Inspection, KeyPage, LossReason, Meter,
    Release, Renewal, Request, Ticket, TicketClock,
};
use ylock_core::environment::{Environment, SystemEnvironment};
use ylock_core::options::check_lease;
use ylock_core::{Error, ErrorKind, Guarantees, JobRun, Key, Options, Result};

use crate::NAME;
use crate::algorithm::acquire::Acquire;
use crate::algorithm::client::Client;
use crate::algorithm::session::Session;
use crate::algorithm::sessions::Sessions;
use crate::algorithm::store::Ensemble;
use crate::algorithm::{diagnose, inspect, keys, release, renew, runs};
use crate::driver::Servers;
use crate::options::ZookeeperOptions;

/// The number of times that closing looks whether everything is gone.
const CLOSE_STEPS: u32 = 20;

/// The engine for locks on a ZooKeeper ensemble: each lock is a queue of ephemeral nodes, all of one session; of several, if there are very
/// many.
///
/// The sessions live on the client's own thread.
pub struct ZookeeperEngine {
    sessions: Sessions,
    tickets: TicketClock,
}

impl ZookeeperEngine {
    /// Connects to an ensemble and makes a client.
    ///
    /// # Errors
    /// [`Config`](ylock_core::ErrorKind::Config) for bad options or a login without the rights;
    /// [`Unavailable`](ylock_core::ErrorKind::Unavailable) if no server grants a session.
    pub async fn connect(options: &ZookeeperOptions) -> Result<Self> {
        options.check()?;
        let environment = SystemEnvironment::shared();
        Self::over(Self::servers(options, &environment), environment, options).await
    }

    /// Returns the servers that the options name: a simulation is held to them.
    #[doc(hidden)]
    pub fn servers(options: &ZookeeperOptions, environment: &Arc<dyn Environment>) -> Arc<dyn Ensemble> {
        Arc::new(Servers::of(options, environment))
    }

    /// Makes a client over any servers and environment; a simulation brings its own.
    ///
    /// # Errors
    /// [`Unavailable`](ylock_core::ErrorKind::Unavailable) if no session is granted, and what the servers refuse.
    #[doc(hidden)]
    pub async fn over(
        ensemble: Arc<dyn Ensemble>,
        environment: Arc<dyn Environment>,
        options: &ZookeeperOptions,
    ) -> Result<Self> {
        let client = Client::new(ensemble, environment, options);
        Ok(Self { sessions: Sessions::open(client).await?, tickets: TicketClock::default() })
    }
}

#[async_trait]
impl Engine for ZookeeperEngine {
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
        Arc::clone(&self.sessions.client().environment)
    }

    /// Checks a lease against the sessions that there are: without one it is not known yet what the servers will grant. An acquisition
    /// whose lease was not checked gets what the session allows.
    fn check(&self, options: &Options) -> Result<()> {
        let lease = options.lease();
        for session in self.sessions.current() {
            check_lease(lease, session.request_timeout()).map_err(|error| error.with_engine(NAME))?;
            let (granted, longest) = (session.timeout(), session.longest_lease());
            if lease > longest {
                let message = format!(
                    "a lease of {lease:?} is too long for a session of {granted:?}, as the servers granted it: at most five sixths of it, \
                     {longest:?}. Ask for a longer session by session=…, or raise maxSessionTimeout on the servers"
                );
                return Err(Error::new(ErrorKind::Config, message).with_engine(NAME));
            }
        }
        Ok(())
    }

    fn ticket(&self) -> Ticket {
        self.tickets.next(&*self.sessions.client().environment)
    }

    fn meter(&self) -> &Meter {
        &self.sessions.client().meter
    }

    async fn acquire(&self, request: &Request) -> Result<Option<Grant>> {
        let room = self.sessions.room_for(request);
        if let Some(session) = room.connection().current() {
            check_lease(request.lease.min(session.longest_lease()), session.request_timeout())?;
        }
        let way = Acquire::new(room.connection(), request);
        way.run().await
    }

    async fn renew(&self, holdings: &[Holding]) -> Vec<Result<Renewal>> {
        let sessions: Vec<_> =
            holdings.iter().map(|holding| self.sessions.session_of(holding.grant.id)).collect();
        let renewals = holdings.iter().zip(&sessions).map(|(holding, session)| async move {
            match session {
                Some(session) => renew::renew(session, holding).await,
                None => Ok(Renewal::Lost(LossReason::Gone)),
            }
        });
        join_all(renewals).await
    }

    async fn release(&self, key: &Key, id: AcquisitionId, next: Option<&Request>) -> Result<Release> {
        let session = match self.sessions.session_of(id) {
            Some(session) => session,
            None => self.sessions.any().await?,
        };
        release::release(&session, key, id, next).await
    }

    async fn inspect(&self, key: &Key) -> Result<Inspection> {
        let session = self.sessions.any().await?;
        inspect::inspect(&session, key).await
    }

    async fn may_be_free(&self, key: &Key) -> Result<bool> {
        let session = self.sessions.any().await?;
        inspect::may_be_free(&session, key).await
    }

    async fn exact_holders(&self, key: &Key) -> Result<Vec<Holder>> {
        let session = self.sessions.any().await?;
        inspect::exact_holders(&session, key).await
    }

    async fn keys(&self, group: Option<&str>, after: Option<&str>) -> Result<KeyPage> {
        let session = self.sessions.any().await?;
        keys::keys(&session, group, after).await
    }

    async fn revoke(&self, key: &Key, id: AcquisitionId) -> Result<bool> {
        let session = self.sessions.any().await?;
        inspect::revoke(&session, key, id).await
    }

    async fn last_run(&self, key: &Key) -> Result<Option<JobRun>> {
        let session = self.sessions.any().await?;
        runs::last_run(&session, key).await
    }

    async fn store_run(&self, key: &Key, run: &JobRun, kept: Duration) -> Result<bool> {
        let session = self.sessions.any().await?;
        runs::store_run(&session, key, run, kept).await
    }

    async fn diagnose(&self) -> Result<Diagnostics> {
        let session = self.sessions.any().await?;
        diagnose::diagnose(self.sessions.client(), &session).await
    }

    fn in_memory(&self) -> Vec<(&'static str, usize)> {
        let sessions = self.sessions.current();
        let sum = |count: fn(&Session) -> usize| sessions.iter().map(|session| count(session)).sum();
        vec![
            ("claims", sum(|session| session.claims.count().0)),
            ("removals", sum(|session| session.claims.count().1)),
            ("announced", sum(|session| session.claims.announced())),
            ("bytes", sum(|session| session.claims.bytes())),
            ("emptied", sum(|session| session.lock_nodes.emptied())),
            ("reserved bytes", self.sessions.reserved()),
            ("sessions that have ended", self.sessions.remnants()),
        ]
    }

    /// Closes all sessions. Nodes that are still being removed have a moment to go; the rest goes with the session.
    async fn close(&self) -> Result<()> {
        for session in self.sessions.current() {
            for _ in 0..CLOSE_STEPS {
                if session.is_clean() {
                    break;
                }
                self.sessions.client().environment.sleep(session.request_timeout() / CLOSE_STEPS).await;
            }
        }
        self.sessions.close();
        Ok(())
    }
}

impl Drop for ZookeeperEngine {
    fn drop(&mut self) {
        self.sessions.close();
    }
}

impl fmt::Debug for ZookeeperEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZookeeperEngine").field("sessions", &self.sessions).finish_non_exhaustive()
    }
}
