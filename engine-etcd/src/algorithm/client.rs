//! What all calls of one client share: the link to the servers, the sessions, the claims.

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::Mutex;
use ylock_core::connection::SharedAttempt;
use ylock_core::environment::{BackgroundTask, Environment, Moment};
use ylock_core::{Error, ErrorKind, Result};

use super::claim::Begin;
use super::claims::Claims;
use super::link::Link;
use super::session::{Session, YOUNG_PART};
use super::store::{Store, to_error};
use crate::options::EtcdOptions;

/// One client of the servers.
pub(crate) struct Client {
    /// What sends. A client can do all that it can.
    link: Link,
    pub(crate) claims: Claims,
    pub(super) cleaner: BackgroundTask,
    /// Those that are in use, or were a moment ago.
    sessions: Mutex<Vec<Arc<Session>>>,
    /// The making of new ones, by the seconds for which they live.
    making: Mutex<Vec<(i64, Arc<SharedAttempt>)>>,
    closed: AtomicBool,
}

impl Client {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        environment: Arc<dyn Environment>,
        options: &EtcdOptions,
    ) -> Arc<Self> {
        Arc::new(Self {
            link: Link::new(store, environment, options),
            claims: Claims::default(),
            cleaner: BackgroundTask::default(),
            sessions: Mutex::default(),
            making: Mutex::default(),
            closed: AtomicBool::new(false),
        })
    }

    /// Returns what a claim has when it begins now in a session.
    pub(super) fn begin<'a>(&'a self, session: &'a Arc<Session>) -> Begin<'a> {
        let (now, since) = (self.environment.now(), self.environment.wall_micros());
        Begin { names: &self.names, session, now, since }
    }

    /// Returns when the cleaner takes over a removal that another task begins now.
    pub(super) fn due(&self) -> Moment {
        self.environment.now().plus(self.request_timeout * 2)
    }

    /// Returns whether nothing is left to be removed.
    pub(crate) fn is_clean(&self) -> bool {
        self.claims.count().1 == 0
    }

    /// Returns the youngest session for a lock with this lease, if there is a young one.
    pub(crate) fn young(&self, lease: Duration) -> Option<Arc<Session>> {
        self.usable(Session::seconds_for(lease), self.environment.now(), lease / YOUNG_PART)
    }

    /// Returns the moment at which the youngest lease was asked for that lives as long as locks with this lease want.
    pub(crate) fn last_made(&self, lease: Duration) -> Option<Moment> {
        newest(&self.sessions.lock(), Session::seconds_for(lease)).map(|session| session.made())
    }

    pub(super) fn newest(&self, seconds: i64) -> Option<Arc<Session>> {
        newest(&self.sessions.lock(), seconds).cloned()
    }

    pub(super) fn newest_lease(&self, seconds: i64) -> Option<i64> {
        newest(&self.sessions.lock(), seconds).map(|session| session.lease)
    }

    /// Returns the youngest session, if it is younger than `oldest`, or was made for the call that began then.
    pub(super) fn usable(&self, seconds: i64, began: Moment, oldest: Duration) -> Option<Arc<Session>> {
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

    /// Returns the making of sessions that live for so long.
    pub(super) fn making(&self, seconds: i64) -> Arc<SharedAttempt> {
        let mut making = self.making.lock();
        if let Some((_, known)) = making.iter().find(|(of, _)| *of == seconds) {
            return Arc::clone(known);
        }
        // Programs have few different leases.
        let new = Arc::<SharedAttempt>::default();
        making.push((seconds, Arc::clone(&new)));
        new
    }

    /// Notes a session that was made. Returns `false` if the client was closed meanwhile: the task that closes it ends what is noted.
    pub(super) fn begins(&self, session: &Arc<Session>) -> bool {
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

pub(super) fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the client was closed")
}

/// Returns the session whose lease was made last, of those that live for so long and are not over.
fn newest(sessions: &[Arc<Session>], seconds: i64) -> Option<&Arc<Session>> {
    let usable = sessions.iter().filter(|session| session.asked_seconds() == seconds && !session.is_over());
    usable.max_by_key(|session| session.made())
}

impl Deref for Client {
    type Target = Link;

    fn deref(&self) -> &Link {
        &self.link
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("link", &self.link).finish_non_exhaustive()
    }
}
