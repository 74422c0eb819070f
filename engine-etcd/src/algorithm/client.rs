//! What all calls of one client share: the servers, the sessions, the claims.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::Mutex;
use ylock_core::connection::{Place, SharedAttempt};
use ylock_core::engine::{Examination, Meter};
use ylock_core::environment::{Answer, BackgroundTask, Environment, Moment};
use ylock_core::{Error, ErrorKind, Result};

use super::claims::Claims;
use super::moves::YOUNG_PART;
use super::names::Names;
use super::session::Session;
use super::store::{Fault, Outcome, Pending, Store, Transaction, Watching, failure, to_error};
use super::{cleanup, floor, upkeep};
use crate::options::EtcdOptions;

/// The number of times that no session came of making one, after which a caller is told: the runtime of the task that makes it may end.
const ATTEMPTS: u32 = 8;
/// The number of attempts to make one lease that a caller waits for, each for as long as a request may take.
const TRIES: u32 = 3;

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
    making: Mutex<Vec<(i64, Arc<SharedAttempt>)>>,
    closed: AtomicBool,
    /// The number of requests that were sent.
    pub(crate) requests: AtomicU64,
    /// Those of them that have made leases.
    pub(crate) leases: AtomicU64,
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
            leases: AtomicU64::new(0),
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

    /// Returns a session for a lock with this lease, whose etcd lease is not as old as that.
    pub(crate) async fn session_for(
        self: &Arc<Self>,
        lease: Duration,
        oldest: Duration,
    ) -> Result<Arc<Session>> {
        let (seconds, began) = (Session::seconds_for(lease), self.environment.now());
        let mut in_vain = 0;
        while in_vain < ATTEMPTS {
            if self.is_closed() {
                return Err(closed());
            }
            if let Some(session) = self.usable(seconds, began, oldest) {
                return Ok(session);
            }
            // One that was made may be full at once: very many locks are renewed at the same time.
            let before = self.newest_lease(seconds);
            self.make(seconds).await?;
            let made = self.newest_lease(seconds);
            in_vain = if made.is_some() && made != before { 0 } else { in_vain + 1 };
        }
        Err(Error::new(ErrorKind::Unavailable, "no etcd lease could be made").with_engine(crate::NAME))
    }

    /// Returns the youngest session for a lock with this lease, if there is a young one.
    pub(crate) fn young(&self, lease: Duration) -> Option<Arc<Session>> {
        self.usable(Session::seconds_for(lease), self.environment.now(), lease / YOUNG_PART)
    }

    /// Returns the moment at which the youngest lease was asked for that lives as long as locks with this lease want.
    pub(crate) fn last_made(&self, lease: Duration) -> Option<Moment> {
        newest(&self.sessions.lock(), Session::seconds_for(lease)).map(|session| session.made())
    }

    fn newest_lease(&self, seconds: i64) -> Option<i64> {
        newest(&self.sessions.lock(), seconds).map(|session| session.lease)
    }

    /// Makes a session. All that need one at the same time have the same: a client with very many locks, or waiters, is not to make as many leases.
    async fn make(self: &Arc<Self>, seconds: i64) -> Result<()> {
        let (making, before) = (self.making(seconds), self.newest_lease(seconds));
        let times = (self.request_timeout, self.request_timeout / 4);
        let work = || -> Answer<Result<()>> {
            let client = Arc::clone(self);
            Box::pin(async move { client.make_session(seconds).await.map_err(to_error) })
        };
        // One that does not come back must not cost locks their leases: all that have waited for it go on to the same next one, which
        // another caller may have made a moment ago.
        for _ in 0..TRIES {
            if self.newest_lease(seconds) != before {
                return Ok(());
            }
            tokio::select! {
                biased;
                made = making.join(&self.environment, Place::ForAll, times, work) => return made.unwrap_or(Ok(())),
                () = self.environment.sleep(self.request_timeout) => {}
            }
        }
        Err(Error::new(ErrorKind::Unavailable, "the servers did not make an etcd lease in time"))
    }

    /// Makes the session that follows this one.
    pub(super) async fn make_next(self: &Arc<Self>, session: &Session) -> Result<()> {
        self.make(session.asked_seconds()).await
    }

    /// Returns the youngest session, if it is younger than `oldest`, or was made for the call that began then.
    fn usable(&self, seconds: i64, began: Moment, oldest: Duration) -> Option<Arc<Session>> {
        let now = self.environment.now();
        let sessions = self.sessions.lock();
        let session = newest(&sessions, seconds).filter(|session| session.has_room())?;
        if session.made() < began && now.since(session.made()) >= oldest {
            return None;
        }
        // In one step with the look: a session that is not used is given up.
        session.note_use(now);
        Some(Arc::clone(session))
    }

    /// Returns whether no session is younger that lives for as long. None that is older is used for anything new: a key must not go from a younger lease
    /// to an older one.
    pub(super) fn is_newest(&self, session: &Arc<Session>) -> bool {
        let sessions = self.sessions.lock();
        newest(&sessions, session.asked_seconds()).is_none_or(|newest| Arc::ptr_eq(newest, session))
    }

    fn making(&self, seconds: i64) -> Arc<SharedAttempt> {
        let mut making = self.making.lock();
        if let Some((_, known)) = making.iter().find(|(of, _)| *of == seconds) {
            return Arc::clone(known);
        }
        // Programs have few different leases.
        let new = Arc::<SharedAttempt>::default();
        making.push((seconds, Arc::clone(&new)));
        new
    }

    async fn make_session(self: &Arc<Self>, seconds: i64) -> Result<(), Fault> {
        let made = self.environment.now();
        let before = newest(&self.sessions.lock(), seconds).cloned();
        self.leases.fetch_add(1, Ordering::Relaxed);
        let granted = self.measured("grant", self.store.grant(seconds)).await?;
        let least = before.as_ref().map_or(0, |before| before.floor());
        let agreed = floor::agree(self, granted.header.cluster, least).await;
        if let Err(Fault::Refused(_)) = agreed {
            // A program may try again and again, and the servers would keep a lease for each time. Where this fails it ends by itself.
            drop(self.revoke(granted.lease).await);
        }
        let floor = agreed?;
        let session = Arc::new(Session::new(&granted, seconds, floor, made, before.as_deref()));
        if !self.begins(&session) {
            // Where that fails it ends by itself: the caller is told that the client is closed in any case.
            drop(self.revoke(session.lease).await);
            return Err(Fault::Refused(closed()));
        }
        upkeep::start(self, &session);
        cleanup::start(self);
        self.claims.work.notify_one();
        Ok(())
    }

    /// Notes a session that was made. Returns `false` if the client was closed meanwhile: the task that closes it ends what is noted.
    fn begins(&self, session: &Arc<Session>) -> bool {
        let mut sessions = self.sessions.lock();
        let is_open = !self.is_closed();
        if is_open {
            sessions.push(Arc::clone(session));
        }
        is_open
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

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the client was closed")
}

/// Returns the session whose lease was made last, of those that live for so long and are not over.
fn newest(sessions: &[Arc<Session>], seconds: i64) -> Option<&Arc<Session>> {
    let usable = sessions.iter().filter(|session| session.asked_seconds() == seconds && !session.is_over());
    usable.max_by_key(|session| session.made())
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("store", &self.store).finish_non_exhaustive()
    }
}
