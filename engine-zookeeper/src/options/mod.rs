//! Where the servers are, how to log in, how long a session lives, and who may touch what it leaves there.

#[cfg(feature = "tls")]
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use ylock_core::Result;
use ylock_core::options::default_request_timeout;
use ylock_core::url::{Host, Secret};

mod check;
mod url;

/// The port of a host that names none.
pub const DEFAULT_PORT: u16 = 2181;
/// Below which node the locks are.
pub const DEFAULT_BASE: &str = "/ylock";

/// Who may read, change and remove the nodes that this client makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Access {
    /// Everybody who reaches the servers.
    #[default]
    Open,
    /// Only who logs in as the same user. All clients that share locks must.
    Creator,
}

/// How to reach an ensemble and how to use it.
///
/// ZooKeeper 3.5.3 or later; 3.8.2 or later is better. Nothing is checked before [`check`](Self::check), which connecting does
/// first.
#[derive(Clone, Debug)]
pub struct ZookeeperOptions {
    hosts: Vec<Host>,
    base: String,
    login: Option<Login>,
    access: Access,
    tls: bool,
    authority: Option<PathBuf>,
    lease: Duration,
    session: Option<Duration>,
    request_timeout: Option<Duration>,
    connect_timeout: Duration,
}

/// Whom to log in as, with the scheme `digest`.
#[derive(Clone, Debug)]
pub(crate) struct Login {
    pub(crate) user: String,
    pub(crate) password: Secret,
}

impl ZookeeperOptions {
    /// Options with every default, for these servers.
    pub fn new(hosts: impl IntoIterator<Item = Host>) -> Self {
        Self {
            hosts: hosts.into_iter().collect(),
            base: DEFAULT_BASE.to_owned(),
            login: None,
            access: Access::default(),
            tls: false,
            authority: None,
            lease: ylock_core::Options::default().lease(),
            session: None,
            request_timeout: None,
            connect_timeout: Duration::from_secs(10),
        }
    }

    /// The node that all locks are below, such as `/apps/ylock`; [`DEFAULT_BASE`] by default. It is made if it is missing. Clients
    /// exclude each other within one only.
    #[must_use]
    pub fn with_base(mut self, base: impl Into<String>) -> Self {
        self.base = base.into();
        self
    }

    /// Logs in with the scheme `digest`.
    #[must_use]
    pub fn with_login(mut self, user: impl Into<String>, password: Secret) -> Self {
        self.login = Some(Login { user: user.into(), password });
        self
    }

    /// Who may touch the nodes of this client; everybody by default.
    #[must_use]
    pub fn with_access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// TLS; needs the feature `tls` of this crate, and [an authority](Self::with_authority).
    #[must_use]
    pub fn with_tls(mut self, tls: bool) -> Self {
        self.tls = tls;
        self
    }

    /// The only authorities to trust with TLS, in a PEM file.
    #[must_use]
    pub fn with_authority(mut self, file: impl Into<PathBuf>) -> Self {
        self.authority = Some(file.into());
        self
    }

    /// The lease of the client, from which the defaults of [session](Self::with_session) and
    /// [request timeout](Self::with_request_timeout) come; 10 s by default.
    #[must_use]
    pub fn with_lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// How long the servers keep the session, and with it all locks, of a client that is gone; six fifths of the lease by default.
    ///
    /// The servers have limits of their own, from 2 to 20 of their ticks (4 s to 40 s) unless they are configured otherwise, and what
    /// they grant counts. No lease is longer than five sixths of it.
    #[must_use]
    pub fn with_session(mut self, session: Duration) -> Self {
        self.session = Some(session);
        self
    }

    /// How long one request may take before its outcome counts as unknown; a fifth of the lease, at most 2 s, by default.
    ///
    /// Less than a third of the lease: a heartbeat that gets no answer must leave time for another one.
    #[must_use]
    pub fn with_request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = Some(timeout);
        self
    }

    /// How long connecting may take in all; 10 s by default.
    #[must_use]
    pub fn with_connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Options from `zookeeper://user:password@host1,host2:port/path?option=value`.
    ///
    /// `ylock_options` are those that the same URL gave for every engine.
    ///
    /// # Errors
    /// [`Config`](ylock_core::ErrorKind::Config) that names what is missing, unknown or wrong.
    pub fn from_url(url: &ylock_core::url::EngineUrl, ylock_options: &ylock_core::Options) -> Result<Self> {
        url::read(url, ylock_options)
    }

    /// See [`with_lease`](Self::with_lease).
    pub fn lease(&self) -> Duration {
        self.lease
    }

    /// See [`with_session`](Self::with_session).
    pub fn session(&self) -> Duration {
        self.session.unwrap_or(self.lease * 6 / 5)
    }

    /// See [`with_request_timeout`](Self::with_request_timeout).
    pub fn request_timeout(&self) -> Duration {
        self.request_timeout.unwrap_or_else(|| default_request_timeout(self.lease))
    }

    /// See [`with_connect_timeout`](Self::with_connect_timeout).
    pub fn connect_timeout(&self) -> Duration {
        self.connect_timeout
    }

    /// See [`with_base`](Self::with_base).
    pub fn base(&self) -> &str {
        &self.base
    }

    /// See [`with_access`](Self::with_access).
    pub fn access(&self) -> Access {
        self.access
    }

    /// The servers as the driver wants them. For messages too: it has no login in it.
    pub(crate) fn cluster(&self) -> String {
        let scheme = if self.tls { "tcp+tls://" } else { "" };
        let server = |host: &Host| {
            let (name, port) = (&host.name, host.port.unwrap_or(DEFAULT_PORT));
            if name.contains(':') {
                format!("{scheme}[{name}]:{port}")
            } else {
                format!("{scheme}{name}:{port}")
            }
        };
        self.hosts.iter().map(server).collect::<Vec<_>>().join(",")
    }

    pub(crate) fn login(&self) -> Option<&Login> {
        self.login.as_ref()
    }

    #[cfg(feature = "tls")]
    pub(crate) fn tls(&self) -> bool {
        self.tls
    }

    #[cfg(feature = "tls")]
    pub(crate) fn authority(&self) -> Option<&Path> {
        self.authority.as_deref()
    }
}
