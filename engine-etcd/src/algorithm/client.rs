//! What all calls of one client share: the servers, the sessions, the claims.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::Mutex;
use ylock_core::engine::{Examination, Meter};
use ylock_core::environment::{BackgroundTask, Environment};
use ylock_core::{Error, ErrorKind, Result};

use super::claims::Claims;
use super::names::Names;
use super::session::Session;
use super::store::{
    Fault, Header, KeptAlive, Outcome, Pending, Step, Store, Transaction, Watching, failure, to_error,
};
use super::{cleanup, floor, keepalive};
use crate::options::EtcdOptions;
use crate::shared_attempt::SharedAttempt;

/// The number of times that an acquisition looks for a session: the runtime of the task that makes one may end, and a new one may be full at once.
const ATTEMPTS: u32 = 8;

/// A session that is being made.
type Making = SharedAttempt<Result<()>>;

/// One client of the servers.
pub(crate) struct Client {
    store: Arc<dyn Store>,
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) names: Names,
    pub(crate) request_timeout: Duration,
    pub(crate) meter: Meter,
    pub(crate) claims: Claims,
    pub(super) cleaner: BackgroundTask,
    /// Those that are in use, or were a moment ago.
    sessions: Mutex<Vec<Arc<Session>>>,
    /// The making of new ones, by the seconds for which they live.
    making: Mutex<Vec<(i64, Arc<Making>)>>,
    closed: AtomicBool,
    /// The number of requests that were sent.
    pub(crate) requests: AtomicU64,
    /// Those of them that were keep-alives.
    pub(crate) keep_alives: AtomicU64,
}

impl Client {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        environment: Arc<dyn Environment>,
        options: &EtcdOptions,
    ) -> Arc<Self> {
        Arc::new(Self {
            store,
            environment,
            names: Names::below(options.prefix()),
            request_timeout: options.request_timeout(),
            meter: Meter::of(crate::NAME, options.cluster()),
            claims: Claims::default(),
            cleaner: BackgroundTask::default(),
            sessions: Mutex::default(),
            making: Mutex::default(),
            closed: AtomicBool::new(false),
            requests: AtomicU64::new(0),
            keep_alives: AtomicU64::new(0),
        })
    }

    /// Carries out a transaction.
    pub(crate) async fn transact(
        &self,
        operation: &'static str,
        transaction: Transaction,
    ) -> Result<Outcome, Fault> {
        self.measured(operation, self.store.transact(transaction)).await
    }

    /// Deletes a key that is never there: an entry of the log, which every member carries out, and which changes nothing. Not a put under a condition that
    /// does not hold: the servers refuse that where their space is used up.
    pub(super) async fn carry_out_nothing(&self) -> Result<Header, Fault> {
        let then = vec![Step::Delete(self.names.nothing())];
        Ok(self.transact("entry", Transaction { then, ..Transaction::default() }).await?.header)
    }

    pub(super) async fn keep_alive(&self, lease: i64) -> Result<KeptAlive, Fault> {
        self.keep_alives.fetch_add(1, Ordering::Relaxed);
        self.measured("keep_alive", self.store.keep_alive(lease)).await
    }

    pub(super) async fn watch(&self, key: Vec<u8>, changes: bool) -> Result<Watching, Fault> {
        self.measured("watch", self.store.watch(key, changes)).await
    }

    /// Asks each server what it tells of itself.
    pub(crate) async fn examine(&self) -> Examination {
        self.store.examine().await
    }

    /// Makes a lease for something that is no lock.
    pub(super) async fn grant(&self, seconds: i64) -> Result<i64, Fault> {
        Ok(self.measured("grant", self.store.grant(seconds)).await?.lease)
    }

    pub(super) async fn revoke(&self, lease: i64) -> Result<(), Fault> {
        self.measured("revoke", self.store.revoke(lease)).await
    }

    async fn measured<T>(&self, operation: &'static str, request: Pending<'_, T>) -> Result<T, Fault> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.meter.measure_as(&*self.environment, operation, request, failure).await
    }

    /// Returns a session for a lock with this lease.
    pub(crate) async fn session_for(self: &Arc<Self>, lease: Duration) -> Result<Arc<Session>> {
        let seconds = Session::seconds_for(lease);
        for _ in 0..ATTEMPTS {
            if self.closed.load(Ordering::Acquire) {
                return Err(Error::new(ErrorKind::Closed, "the client was closed"));
            }
            if let Some(session) = self.usable(seconds) {
                return Ok(session);
            }
            let making = self.making(seconds);
            let client = Arc::clone(self);
            let work = || -> futures_util::future::BoxFuture<'static, Result<()>> {
                Box::pin(async move { client.make_session(seconds).await.map_err(to_error) })
            };
            let patience = self.request_timeout * 3;
            if let Some(Err(error)) = making.join(&self.environment, patience, work).await {
                return Err(error);
            }
        }
        Err(Error::new(ErrorKind::Unavailable, "no etcd lease could be made").with_engine(crate::NAME))
    }

    fn usable(&self, seconds: i64) -> Option<Arc<Session>> {
        let now = self.environment.now();
        let ttl = Duration::from_secs(seconds.unsigned_abs());
        let sessions = self.sessions.lock();
        let session = sessions.iter().find(|session| session.asked_for(ttl) && session.has_room())?;
        // In one step with the look: a session that is not used is given up.
        session.note_use(now);
        Some(Arc::clone(session))
    }

    fn making(&self, seconds: i64) -> Arc<Making> {
        let mut making = self.making.lock();
        if let Some((_, known)) = making.iter().find(|(of, _)| *of == seconds) {
            return Arc::clone(known);
        }
        // Programs have few different leases.
        let new = Arc::new(SharedAttempt::default());
        making.push((seconds, Arc::clone(&new)));
        new
    }

    async fn make_session(self: &Arc<Self>, seconds: i64) -> Result<(), Fault> {
        let sent = self.environment.now();
        let granted = self.measured("grant", self.store.grant(seconds)).await?;
        let floor = floor::agree(self, granted.header.cluster).await?;
        let session = Arc::new(Session::new(&granted, seconds, floor, sent));
        self.sessions.lock().push(Arc::clone(&session));
        keepalive::start(self, &session);
        cleanup::start(self);
        self.claims.work.notify_one();
        Ok(())
    }

    /// Gives a session up that has not been used for so long. Returns whether it is given up now.
    pub(super) fn give_up_idle(&self, session: &Arc<Session>, longest: Duration) -> bool {
        let mut sessions = self.sessions.lock();
        if session.idle(self.environment.now()) < longest {
            return false;
        }
        session.end();
        sessions.retain(|other| !Arc::ptr_eq(other, session));
        true
    }

    /// Forgets a session whose lease is gone.
    pub(super) fn forget(&self, session: &Arc<Session>) {
        self.sessions.lock().retain(|other| !Arc::ptr_eq(other, session));
    }

    /// Returns whether there is a session, or a claim that is left of one.
    pub(super) fn is_in_use(&self) -> bool {
        !self.sessions.lock().is_empty() || self.claims.count().0 > 0
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Ends all sessions, with all that they have in the store. Nothing is sent before the future is polled.
    pub(crate) fn close(self: &Arc<Self>) -> impl Future<Output = ()> + Send + 'static {
        self.closed.store(true, Ordering::Release);
        let sessions = std::mem::take(&mut *self.sessions.lock());
        for session in &sessions {
            session.end();
        }
        self.claims.work.notify_one();
        let client = Arc::clone(self);
        async move {
            let revoked = sessions.iter().map(|session| client.revoke(session.lease));
            for fault in join_all(revoked).await.into_iter().filter_map(Result::err) {
                tracing::debug!(
                    error = format!("{:#}", to_error(fault)),
                    "an etcd lease was left to end by itself"
                );
            }
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("store", &self.store).finish_non_exhaustive()
    }
}
