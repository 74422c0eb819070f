//! The session of this client: made again when it has ended.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Mutex as AsyncMutex;
use ylock_core::engine::Meter;
use ylock_core::environment::{Environment, Moment};
#[cfg(feature = "tls")]
use ylock_core::options::Tls;
use ylock_core::{Error, ErrorKind, Result};
use zookeeper_client::{Client, Connector};

use super::errors::{Fault, to_error};
use super::session::Session;
use crate::options::ZookeeperOptions;
use crate::pulse;

/// Between two tries to make a session: very many may want one when the servers are back.
const PAUSE: Duration = Duration::from_millis(100);

/// See the [module](self).
pub(crate) struct Connection {
    options: ZookeeperOptions,
    environment: Arc<dyn Environment>,
    state: Mutex<State>,
    /// Only one connects at a time; the others wait for what comes of it. When it was last tried.
    connecting: AsyncMutex<Option<Moment>>,
    /// Of this client, over all of its connections.
    sessions: Arc<AtomicU64>,
    meter: Meter,
}

#[derive(Default)]
struct State {
    current: Option<Arc<Session>>,
    closed: bool,
}

impl Connection {
    /// Without a session yet. `sessions`: how many there have been.
    pub(crate) fn new(
        options: &ZookeeperOptions,
        environment: &Arc<dyn Environment>,
        sessions: &Arc<AtomicU64>,
        meter: &Meter,
    ) -> Self {
        Self {
            options: options.clone(),
            environment: Arc::clone(environment),
            state: Mutex::default(),
            connecting: AsyncMutex::new(None),
            sessions: Arc::clone(sessions),
            meter: meter.clone(),
        }
    }

    pub(crate) fn environment(&self) -> &dyn Environment {
        &*self.environment
    }

    /// The session, unless it has ended.
    pub(crate) fn current(&self) -> Option<Arc<Session>> {
        self.state().current.clone().filter(|session| !session.is_over())
    }

    /// The session, or a new one if it has ended.
    pub(crate) async fn session(&self) -> Result<Arc<Session>> {
        if let Some(session) = self.current() {
            return Ok(session);
        }
        let mut last_try = self.connecting.lock().await;
        if let Some(session) = self.current() {
            return Ok(session);
        }
        if self.state().closed {
            return Err(closed());
        }
        if let Some(then) = *last_try {
            self.environment.sleep(PAUSE.saturating_sub(self.environment.now().since(then))).await;
        }
        *last_try = Some(self.environment.now());
        let (client, sent) = tokio::select! {
            biased;
            client = self.connect() => client?,
            () = self.environment.sleep(self.options.connect_timeout()) => return Err(self.nobody(None)),
        };
        self.begin(client, sent)
    }

    fn begin(&self, client: Client, sent: Moment) -> Result<Arc<Session>> {
        let mut state = self.state();
        if state.closed {
            return Err(closed());
        }
        let number = self.sessions.fetch_add(1, Ordering::Relaxed) + 1;
        let (environment, meter) = (Arc::clone(&self.environment), self.meter.clone());
        let session = Session::new(client, number, environment, meter, &self.options);
        // A session is made by a write as well.
        session.confirm(sent);
        let session = Arc::new(session);
        state.current = Some(Arc::clone(&session));
        drop(state);
        let (granted, lease) = (session.timeout(), session.longest_lease());
        if lease < self.options.lease() {
            tracing::warn!(session = ?granted, ?lease, "the servers grant a short session; no lease is longer than this");
        }
        pulse::look_after(&session);
        Ok(session)
    }

    /// Answers also when it was asked for.
    async fn connect(&self) -> Result<(Client, Moment)> {
        loop {
            let sent = self.environment.now();
            match self.connector()?.connect(&self.options.cluster()).await {
                Ok(client) => return Ok((client, sent)),
                // It gives up after the time of a session, which may be short.
                Err(Fault::Timeout | Fault::ConnectionLoss | Fault::NoHosts) => {}
                Err(fault @ (Fault::AuthFailed | Fault::BadArguments(_))) => return Err(to_error(fault)),
                Err(fault) => return Err(self.nobody(Some(fault))),
            }
            self.environment.sleep(self.environment.jitter(self.options.connect_timeout() / 50)).await;
        }
    }

    /// One that can only read is of no use, and the driver passes over servers that offer no other.
    fn connector(&self) -> Result<Connector> {
        let mut connector = Client::connector().with_session_timeout(self.options.session());
        if let Some(login) = self.options.login() {
            let words = format!("{}:{}", login.user, login.password.reveal());
            connector = connector.with_auth("digest", words.as_bytes());
        }
        #[cfg(feature = "tls")]
        if let Tls::Authority(file) = self.options.tls() {
            connector = connector.with_tls(tls(file)?);
        }
        Ok(connector)
    }

    fn nobody(&self, fault: Option<Fault>) -> Error {
        let message = format!("none of the servers {} makes a session", self.options.cluster());
        let error = Error::new(ErrorKind::Unavailable, message).with_engine(crate::NAME);
        match fault {
            Some(fault) => error.with_source(fault),
            None => error,
        }
    }

    /// Ends the session. What it still has in the store goes with it.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        let session = state.current.take();
        drop(state);
        if let Some(session) = session {
            session.end();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(feature = "tls")]
fn tls(authority: &std::path::Path) -> Result<zookeeper_client::TlsOptions> {
    let wrong = |error: &dyn fmt::Display| {
        let message = format!("tls_ca={} cannot be used: {error}", authority.display());
        Error::new(ErrorKind::Config, message).with_engine(crate::NAME)
    };
    let text = std::fs::read_to_string(authority).map_err(|error| wrong(&error))?;
    zookeeper_client::TlsOptions::new().with_pem_ca(&text).map_err(|error| wrong(&error))
}

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the client is closed").with_engine(crate::NAME)
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("cluster", &self.options.cluster()).finish_non_exhaustive()
    }
}
