//! The options of the engine: where the servers are, how to log in, and how waiters learn of their turn.

use std::time::Duration;

use ylock_core::Result;
use ylock_core::backoff::Backoff;
use ylock_core::options::Reach;
use ylock_core::url::{Address, Host};

mod check;
mod url;
mod values;

use values::NotifyWord;
pub use values::{Notify, SchemaMode, Standby};
pub use ylock_core::options::{ClientCertificate, Tls};

/// The port of a server that names none.
pub const DEFAULT_PORT: u16 = 5432;
/// The first pause of a waiter that asks by itself, and the longest one, if the options name none.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

ylock_core::define_options! {
    /// Options of the engine: how to reach the servers and how to use them.
    ///
    /// PostgreSQL 14 or later. Nothing is checked before [`check`](Self::check), which connecting does first. The
    /// [connect timeout](Self::with_connect_timeout) is for reaching all of the hosts together.
    #[derive(Clone, Debug)]
    pub struct PostgresOptions {
        addresses: Vec<Address>,
        database: String,
    }
    includes reach: Reach;

    /// The schema of PostgreSQL that the locks are in. Programs with different ones share a database without meeting.
    namespace / with_namespace: String = "ylock";

    /// Whether tables and functions are made where there are none (`create`), or must be there (`check`).
    schema / with_schema: SchemaMode = "create";

    /// Whether the server tells the waiter that is next. With `off` waiters ask by themselves; `auto` finds out.
    notify: NotifyWord or "`auto`";

    /// With `notify=off`: the first pause of a waiter.
    poll: Duration or "`20ms` with `notify=off`";

    /// With `notify=off`: the longest pause of a waiter. Each is about twice the one before.
    poll_longest: Duration or "the same as `poll`, if that is given";

    /// The address of the server itself, for the connection that listens, where the others go through a pooler.
    listen: Host or "";

    /// Whether standbys must have what is confirmed (`synchronous`), or may lack it (`lost_writes_accepted`).
    standby / with_standby: Standby = "synchronous";
}

impl PostgresOptions {
    /// Returns options with every default, for this server and database.
    pub fn new(host: impl Into<String>, port: u16, database: impl Into<String>) -> Self {
        Self::of_hosts([(host.into(), port)], database)
    }

    /// Returns options with every default, for the first of these servers that takes writes.
    pub fn of_hosts(hosts: impl IntoIterator<Item = (String, u16)>, database: impl Into<String>) -> Self {
        let addresses = hosts.into_iter().map(|(host, port)| Address::new(host, port)).collect();
        Self::with_defaults(addresses, database.into(), Reach::default())
    }

    /// Sets how waiters learn of their turn.
    #[must_use]
    pub fn with_notify(mut self, notify: Notify) -> Self {
        (self.notify, self.poll, self.poll_longest) = match notify {
            Notify::Auto => (Some(NotifyWord::Auto), None, None),
            Notify::On => (Some(NotifyWord::On), None, None),
            Notify::Off { poll, poll_longest } => (Some(NotifyWord::Off), Some(poll), Some(poll_longest)),
        };
        self
    }

    /// Sets the address of the server itself, for the connection that listens, where the others go through a pooler.
    #[must_use]
    pub fn with_listen(mut self, host: impl Into<String>, port: u16) -> Self {
        self.listen = Some(Host::new(host, port));
        self
    }

    /// Reads options from `postgres://user:password@host1,host2:port/database?option=value`; `postgresql://` is the same.
    ///
    /// `ylock_options` are the options of every engine from the same URL; their lease bounds the request timeout.
    ///
    /// # Errors
    /// [`Config`](ylock_core::ErrorKind::Config) that names what is missing, unknown or wrong.
    pub fn from_url(url: &ylock_core::url::EngineUrl, ylock_options: &ylock_core::Options) -> Result<Self> {
        url::place(url)
            .and_then(|(options, url)| options.read(&url, ylock_options))
            .map_err(|error| error.with_engine(crate::NAME))
    }

    /// Returns how waiters learn of their turn; see [`with_notify`](Self::with_notify).
    pub fn notify(&self) -> Notify {
        match (self.notify, self.poll, self.poll_longest) {
            (None | Some(NotifyWord::Auto), None, None) => Notify::Auto,
            (Some(NotifyWord::On), None, None) => Notify::On,
            (_, None, longest) => {
                Notify::Off { poll: FIRST_PAUSE, poll_longest: longest.unwrap_or(LONGEST_PAUSE) }
            }
            (_, Some(poll), longest) => Notify::Off { poll, poll_longest: longest.unwrap_or(poll) },
        }
    }

    /// Returns how often a waiter asks that hears no messages.
    pub(crate) fn backoff(&self) -> Backoff {
        match self.notify() {
            Notify::Off { poll, poll_longest } => Backoff::new(poll, poll_longest),
            _ => Backoff::new(FIRST_PAUSE, LONGEST_PAUSE),
        }
    }

    pub(crate) fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    pub(crate) fn database(&self) -> &str {
        &self.database
    }

    pub(crate) fn listens_at(&self) -> Option<Address> {
        self.listen.as_ref().map(|host| host.at(DEFAULT_PORT))
    }
}
