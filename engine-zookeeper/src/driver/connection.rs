//! The session of this client: made again when it has ended.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use ylock_core::engine::Meter;
use ylock_core::environment::{Environment, Moment};
use ylock_core::{Error, ErrorKind, Result};

use super::dialer::Dialer;
use super::line::Line;
use super::session::Session;
use crate::algorithm::pulse;
use crate::options::ZookeeperOptions;

/// The pause between two attempts to make a session: very many callers may want one when the servers are back.
const PAUSE: Duration = Duration::from_millis(100);

/// The way to the session of this client; see the [module](self).
pub(crate) struct Connection {
    dialer: Arc<Dialer>,
    state: Mutex<State>,
    /// The number of sessions of this client, over all of its connections.
    sessions: Arc<AtomicU64>,
    meter: Meter,
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
    /// Ends when no caller waits for it any more.
    line: Weak<Line>,
}

impl Connection {
    /// Creates a connection without a session yet. `sessions` counts those that there have been.
    pub(crate) fn new(
        options: &ZookeeperOptions,
        environment: &Arc<dyn Environment>,
        sessions: &Arc<AtomicU64>,
        meter: &Meter,
    ) -> Self {
        let dialer = Dialer { options: options.clone(), environment: Arc::clone(environment) };
        Self {
            dialer: Arc::new(dialer),
            state: Mutex::default(),
            sessions: Arc::clone(sessions),
            meter: meter.clone(),
            alive: Arc::default(),
        }
    }

    pub(crate) fn environment(&self) -> &dyn Environment {
        &*self.dialer.environment
    }

    pub(crate) fn request_timeout(&self) -> Duration {
        self.dialer.options.request_timeout()
    }

    /// Returns the session, unless it has ended.
    pub(crate) fn current(&self) -> Option<Arc<Session>> {
        self.state().current.clone().filter(|session| !session.is_over())
    }

    /// Returns how many sessions have ended of which something is left in this process.
    pub(crate) fn remnants(&self) -> usize {
        let current = usize::from(self.state().current.is_some());
        (Arc::strong_count(&self.alive) - 1).saturating_sub(current)
    }

    /// Returns the session, with a connection; a new session if the last one has ended.
    pub(crate) async fn session(&self) -> Result<Arc<Session>> {
        loop {
            if let Some(session) = self.attached().await? {
                return Ok(session);
            }
            match self.join()? {
                Ok((line, left)) => return self.finish(line, left).await,
                Err(pause) => self.environment().sleep(pause).await,
            }
        }
    }

    /// Returns the attempt that is under way, or a new one, and the time that is left for it; or how long to wait before the next.
    fn join(&self) -> Result<std::result::Result<(Arc<Line>, Duration), Duration>> {
        let mut state = self.state();
        if state.closed {
            return Err(closed());
        }
        let (now, time) = (self.environment().now(), self.dialer.options.connect_timeout());
        if let Some(Attempt { began, line }) = &state.attempt {
            let since = now.since(*began);
            match line.upgrade().filter(|_| since < time) {
                Some(line) => return Ok(Ok((line, time - since))),
                None if since < PAUSE => return Ok(Err(PAUSE - since)),
                None => {}
            }
        }
        let line = Line::new(&self.dialer);
        state.attempt = Some(Attempt { began: now, line: Arc::downgrade(&line) });
        Ok(Ok((line, time)))
    }

    async fn finish(&self, line: Arc<Line>, left: Duration) -> Result<Arc<Session>> {
        let attached = tokio::select! {
            biased;
            attached = line.attach() => attached,
            () = self.environment().sleep(left) => Err(self.dialer.no_session(None)),
        };
        if let Err(error) = attached {
            self.fail(&line);
            return Err(error);
        }
        self.begin(line)
    }

    /// Notes that an attempt has failed, so that no caller joins it.
    fn fail(&self, line: &Arc<Line>) {
        let mut state = self.state();
        if let Some(attempt) = state.attempt.as_mut().filter(|it| it.line.as_ptr() == Arc::as_ptr(line)) {
            attempt.line = Weak::new();
        }
    }

    /// Returns the session, with a connection, unless it has ended: the runtime in which its last connection was made may have ended.
    async fn attached(&self) -> Result<Option<Arc<Session>>> {
        let Some(session) = self.current() else { return Ok(None) };
        match session.attach().await {
            Ok(()) => Ok(Some(session)),
            Err(_) if session.is_over() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn begin(&self, line: Arc<Line>) -> Result<Arc<Session>> {
        let mut state = self.state();
        if state.closed {
            return Err(closed());
        }
        // Another caller that waited for the same attempt, or for a later one, was here before.
        if let Some(session) = state.current.as_ref().filter(|session| !session.is_over()) {
            return Ok(Arc::clone(session));
        }
        let number = self.sessions.fetch_add(1, Ordering::Relaxed) + 1;
        let session = Arc::new(Session::new(line, number, &self.dialer, &self.meter, &self.alive));
        let last = state.current.replace(Arc::clone(&session));
        drop(state);
        if let Some(last) = last {
            // The tasks that look after the last session let go of it then.
            last.end();
        }
        let (granted, lease) = (session.timeout(), session.longest_lease());
        if lease < self.dialer.options.lease() {
            tracing::warn!(session = ?granted, ?lease, "the servers grant a short session; no lease is longer than this");
        }
        pulse::look_after(&session);
        Ok(session)
    }

    /// Ends the session. What it still has in the store goes with it.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        let session = state.current.take();
        drop(state);
        if let Some(session) = session {
            session.close();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the client is closed").with_engine(crate::NAME)
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("dialer", &self.dialer).finish_non_exhaustive()
    }
}
