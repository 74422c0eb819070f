//! The options of the engine: where the servers are, how to log in, and how waiters learn of their turn.

use std::time::Duration;

use ylock_core::Result;
use ylock_core::options::{Login, Reach};
use ylock_core::url::{Address, Secret};

use crate::driver::ConnectionInfo;

mod check;
mod topology;
mod url;

pub(crate) use topology::Topology;
pub use ylock_core::options::{ClientCertificate, Tls};

/// The port of a server that names none.
pub const DEFAULT_PORT: u16 = 6379;
/// The port of a Sentinel that names none.
pub const DEFAULT_SENTINEL_PORT: u16 = 26_379;
/// The first pause of a waiter that asks by itself.
const FIRST_PAUSE: Duration = Duration::from_millis(20);

/// The way in which a waiter learns that its turn has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notify {
    /// The server tells the waiter, by a message to its client. Should a message get lost, the waiter asks by itself a moment later.
    #[default]
    On,
    /// The waiter asks, again and again. For servers without publish and subscribe.
    Off {
        /// The first pause.
        poll: Duration,
        /// The longest pause: each is about twice as long as the one before, up to this. Equal to `poll` for a constant pause.
        poll_longest: Duration,
    },
}

/// The demand on the policy by which servers make room when their memory is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Eviction {
    /// No server may throw keys away: it has no `maxmemory`, or `maxmemory-policy noeviction`.
    #[default]
    Refused,
    /// Servers may throw keys away. Locks that are held are lost then and granted again, and jobs are run again in their periods.
    LostLocksAccepted,
}

ylock_core::option_words!(Eviction: Refused = "refused", LostLocksAccepted = "lost_locks_accepted");

ylock_core::define_options! {
    /// Options of the engine: how to reach the servers and how to use them.
    ///
    /// Redis 7.0 or later; not tested with Valkey. Nothing is checked before [`check`](Self::check), which connecting does first. The
    /// [connect timeout](Self::with_connect_timeout) is for reaching one server.
    #[derive(Clone, Debug)]
    pub struct RedisOptions {
        addresses: Vec<Address>,
        topology: Topology,
        database: i64,
        handed_over: Option<Box<ConnectionInfo>>,
    }
    includes reach: Reach;

    /// What the names of all locks on the server begin with. Programs with different ones share a server, or a cluster, without meeting.
    prefix / with_prefix: String = "ylock";

    /// How many replicas must have a grant before it counts; otherwise it is given back.
    ///
    /// A grant that they do not have within the [request timeout](Self::with_request_timeout) is given back, and the acquisition fails with
    /// [`Unavailable`](ylock_core::ErrorKind::Unavailable). Costs one more trip, and that of the server to the slowest of so many replicas.
    ///
    /// This makes it rarer that a replica which takes over lacks a grant. It does not exclude it: renewals and releases are not waited
    /// for, and Redis may let another replica take over.
    min_replicas / with_min_replicas: u32 = "0";

    /// Whether a server is `refused` that throws keys away when its memory is full, or its loss of locks is accepted (`lost_locks_accepted`).
    ///
    /// Where it is accepted, [`Guarantees`](ylock_core::Guarantees) do not promise exclusion, whatever the servers say now.
    eviction / with_eviction: Eviction = "refused";

    /// Whether the server tells the waiter that is next. With `off` waiters ask by themselves, for servers without publish and subscribe.
    notify: bool or "`on`";

    /// With `notify=off`: the first pause of a waiter.
    poll: Duration or "`20ms` with `notify=off`";

    /// With `notify=off`: the longest pause of a waiter. Each is about twice the one before.
    poll_longest: Duration or "the same as `poll`";

    /// The user to log in as to the Sentinels, if they want one.
    sentinel_user: String or "";

    /// The password for the Sentinels.
    sentinel_password: Secret or "";
}

impl RedisOptions {
    /// Returns options with every default, for this server.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self::with_addresses(vec![Address::new(host, port)], Topology::Single)
    }

    /// Returns options with every default, for the master that these Sentinels know under the name of a service.
    ///
    /// When another server takes over, clients go to that server. Those of the last writes that it does not have are lost: locks that were
    /// granted in them are granted again. So there are no tokens.
    pub fn sentinel(hosts: impl IntoIterator<Item = (String, u16)>, service: impl Into<String>) -> Self {
        Self::with_addresses(addresses(hosts), Topology::Sentinel { service: service.into() })
    }

    /// Returns options with every default, for a Redis Cluster; any of its servers will do, and several are better than one.
    ///
    /// When a replica takes over, those of the last writes that it does not have are lost: locks that were granted in them are granted
    /// again. So there are no tokens.
    pub fn cluster(hosts: impl IntoIterator<Item = (String, u16)>) -> Self {
        Self::with_addresses(addresses(hosts), Topology::Cluster)
    }

    /// Returns options for the server of a client that the program has.
    #[cfg(feature = "redis-1")]
    pub(crate) fn of_server(server: ConnectionInfo) -> Self {
        let options = Self::with_addresses(vec![crate::driver::address_of(&server)], Topology::Single);
        let database = server.redis_settings().db();
        Self { handed_over: Some(Box::new(server)), ..options }.with_database(database)
    }

    /// Returns how to reach the server of a client that the program has handed over: all but the database, and what the options say of the
    /// login.
    pub(crate) fn handed_over(&self) -> Option<&ConnectionInfo> {
        self.handed_over.as_deref()
    }

    fn with_addresses(addresses: Vec<Address>, topology: Topology) -> Self {
        Self::with_defaults(addresses, topology, 0, None, Reach::default())
    }

    /// Sets the number of the database; 0 by default, and always in a cluster. Clients exclude each other only within one database.
    #[must_use]
    pub fn with_database(mut self, database: i64) -> Self {
        self.database = database;
        self
    }

    /// Sets the login to the Sentinels; without it clients do not log in to them. An empty name is the default user.
    #[must_use]
    pub fn with_sentinel_login(mut self, user: impl Into<String>, password: Secret) -> Self {
        (self.sentinel_user, self.sentinel_password) = (Some(user.into()), Some(password));
        self
    }

    /// Sets how waiters learn of their turn; they are told by default.
    #[must_use]
    pub fn with_notify(mut self, notify: Notify) -> Self {
        (self.notify, self.poll, self.poll_longest) = match notify {
            Notify::On => (Some(true), None, None),
            Notify::Off { poll, poll_longest } => (Some(false), Some(poll), Some(poll_longest)),
        };
        self
    }

    /// Reads options from `redis://user:password@host:port/database?option=value`,
    /// `redis+sentinel://user:password@host1,host2:port/service/database` or `redis+cluster://user:password@host1,host2:port`;
    /// `rediss` for TLS.
    ///
    /// `ylock_options` are the options of every engine from the same URL; their lease bounds the request timeout.
    ///
    /// # Errors
    /// [`Config`](ylock_core::ErrorKind::Config) that names what is missing, unknown or wrong.
    pub fn from_url(url: &ylock_core::url::EngineUrl, ylock_options: &ylock_core::Options) -> Result<Self> {
        url::place(url)
            .and_then(|options| options.read(url, ylock_options))
            .map_err(|error| error.with_engine(crate::NAME))
    }

    /// Returns how waiters learn of their turn; see [`with_notify`](Self::with_notify).
    pub fn notify(&self) -> Notify {
        match (self.notify, self.poll, self.poll_longest) {
            (None | Some(true), None, None) => Notify::On,
            (_, poll, longest) => {
                let poll = poll.unwrap_or(FIRST_PAUSE);
                Notify::Off { poll, poll_longest: longest.unwrap_or(poll) }
            }
        }
    }

    pub(crate) fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    pub(crate) fn topology(&self) -> &Topology {
        &self.topology
    }

    pub(crate) fn database(&self) -> i64 {
        self.database
    }

    pub(crate) fn sentinel_login(&self) -> Option<Login> {
        let user = self.sentinel_user.clone().unwrap_or_default();
        self.sentinel_password.clone().map(|password| Login { user, password })
    }
}

fn addresses(hosts: impl IntoIterator<Item = (String, u16)>) -> Vec<Address> {
    hosts.into_iter().map(|(host, port)| Address::new(host, port)).collect()
}
