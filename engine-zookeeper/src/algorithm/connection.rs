//! The session of this client: made again when it has ended.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use ylock_core::connection::REST;
use ylock_core::environment::{Environment, Moment};
use ylock_core::{Error, ErrorKind, Result};

use super::client::Client;
use super::keepalive;
use super::session::Session;
use super::store::Store;

/// The way to the session of this client; see the [module](self).
pub(crate) struct Connection {
    client: Arc<Client>,
    state: Mutex<State>,
    /// Has a clone for each session of which something is left in this process.
    alive: Arc<()>,
}

#[derive(Default)]
struct State {
    current: Option<Arc<Session>>,
    /// The last attempt to make a session.
    attempt: Option<Attempt>,
    closed: bool,
}

/// An attempt to make a session. Only one is made at a time, and all callers that want a session wait for its result. No caller owns it: a
/// caller that waits may be in a runtime that is not driven any more, and must keep no other caller from a session.
struct Attempt {
    began: Moment,
    /// The session that is to be, unless the attempt has failed. Ends when no caller waits for it any more.
    store: Option<Weak<dyn Store>>,
}

/// An attempt that is under way, and the time that is left for it.
type UnderWay = (Arc<dyn Store>, Duration);

impl Connection {
    /// Creates a connection without a session yet.
    pub(crate) fn new(client: &Arc<Client>) -> Self {
        Self { client: Arc::clone(client), state: Mutex::default(), alive: Arc::default() }
    }

    pub(crate) fn environment(&self) -> &dyn Environment {
        &*self.client.environment
    }

    pub(crate) fn request_timeout(&self) -> Duration {
        self.client.options.request_timeout()
    }

    /// Returns the session, unless it has ended.
    pub(crate) fn current(&self) -> Option<Arc<Session>> {
        self.state.lock().current.clone().filter(|session| !session.is_over())
    }

    /// Returns how many sessions have ended of which something is left in this process.
    pub(crate) fn remnants(&self) -> usize {
        let current = usize::from(self.state.lock().current.is_some());
        (Arc::strong_count(&self.alive) - 1).saturating_sub(current)
    }

    /// Returns the session; a new one if the last one has ended.
    pub(crate) async fn session(&self) -> Result<Arc<Session>> {
        loop {
            if let Some(session) = self.current() {
                return Ok(session);
            }
            match self.join()? {
                Ok(attempt) => return self.finish(attempt).await,
                Err(pause) => self.environment().sleep(pause).await,
            }
        }
    }

    /// Returns the attempt that is under way, or a new one, and the time that is left for it; or how long to wait before the next.
    fn join(&self) -> Result<std::result::Result<UnderWay, Duration>> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(closed());
        }
        let (now, time) = (self.environment().now(), self.client.options.connect_timeout());
        if let Some(Attempt { began, store }) = &state.attempt {
            let since = now.since(*began);
            // The last attempt may be the one that made the session that has ended: that one leads nowhere.
            let leads_on = |store: &Arc<dyn Store>| since < time && !store.is_over();
            match store.as_ref().and_then(Weak::upgrade).filter(leads_on) {
                Some(store) => return Ok(Ok((store, time - since))),
                None if since < REST => return Ok(Err(REST - since)),
                None => {}
            }
        }
        let store = self.client.ensemble.session();
        state.attempt = Some(Attempt { began: now, store: Some(Arc::downgrade(&store)) });
        Ok(Ok((store, time)))
    }

    async fn finish(&self, (store, left): UnderWay) -> Result<Arc<Session>> {
        let attached = tokio::select! {
            biased;
            attached = store.attach() => attached,
            () = self.environment().sleep(left) => Err(self.client.ensemble.no_session()),
        };
        if let Err(error) = attached {
            self.fail(&store);
            return Err(error);
        }
        self.begin(store)
    }

    /// Notes that an attempt has failed, so that no caller joins it.
    fn fail(&self, store: &Arc<dyn Store>) {
        let failed = Arc::downgrade(store);
        if let Some(attempt) = &mut self.state.lock().attempt {
            attempt.store.take_if(|store| store.ptr_eq(&failed));
        }
    }

    fn begin(&self, store: Arc<dyn Store>) -> Result<Arc<Session>> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(closed());
        }
        // Another caller that waited for the same attempt, or for a later one, was here before.
        if let Some(session) = state.current.as_ref().filter(|session| !session.is_over()) {
            return Ok(Arc::clone(session));
        }
        let number = self.client.next_session();
        let session = Arc::new(Session::new(store, number, &self.client, &self.alive));
        let last = state.current.replace(Arc::clone(&session));
        drop(state);
        if let Some(last) = last {
            // The tasks that look after the last session let go of it then.
            last.end();
        }
        let (granted, lease) = (session.timeout(), session.longest_lease());
        if lease < self.client.options.lease() {
            tracing::warn!(session = ?granted, ?lease, "the servers grant a short session; no lease is longer than this");
        }
        keepalive::start(&session);
        Ok(session)
    }

    /// Ends the session. What it still has in the store goes with it.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        let session = state.current.take();
        drop(state);
        if let Some(session) = session {
            session.close();
        }
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the client is closed").with_engine(crate::NAME)
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("client", &self.client).finish_non_exhaustive()
    }
}
