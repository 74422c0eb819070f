//! Where the cluster is, how to log in, and how its answers are judged.

use std::time::Duration;

use ylock_core::Result;
use ylock_core::options::Reach;
use ylock_core::url::Host;

mod check;
mod url;
mod values;

pub use values::{Clock, Consistency, Protocol, SchemaMode};
pub use ylock_core::options::Tls;

/// The port of a host that names none.
pub const DEFAULT_PORT: u16 = 9042;

/// How to reach a cluster and how to use it.
///
/// Apache Cassandra 4.0 or later. Nothing is checked before [`check`](Self::check), which connecting does first.
#[derive(Clone, Debug)]
pub struct CassandraOptions {
    hosts: Vec<Host>,
    keyspace: String,
    table: String,
    reach: Reach,
    consistency: Consistency,
    datacenter: Option<String>,
    replication: u32,
    schema: SchemaMode,
    max_clock_skew: Duration,
    token_ttl: Duration,
    gc_grace: Duration,
    protocol: Protocol,
    clock: Clock,
}

impl CassandraOptions {
    /// Options with every default, for this keyspace and no host yet.
    pub fn new(keyspace: impl Into<String>) -> Self {
        Self {
            hosts: Vec::new(),
            keyspace: keyspace.into(),
            table: "locks".to_owned(),
            reach: Reach::default(),
            consistency: Consistency::default(),
            datacenter: None,
            replication: 3,
            schema: SchemaMode::default(),
            max_clock_skew: Duration::from_secs(2),
            token_ttl: Duration::from_secs(7 * 24 * 60 * 60),
            gc_grace: Duration::from_secs(20),
            protocol: Protocol::default(),
            clock: Clock::default(),
        }
    }

    /// One more node to begin with; the driver finds the others by itself.
    #[must_use]
    pub fn with_host(mut self, name: impl Into<String>, port: u16) -> Self {
        self.hosts.push(Host { name: name.into(), port: Some(port) });
        self
    }

    /// The table inside the keyspace; `locks` by default. Clients exclude each other within one table only.
    #[must_use]
    pub fn with_table(mut self, table: impl Into<String>) -> Self {
        self.table = table.into();
        self
    }

    ylock_core::reach_options! {
        reach:
        /// Logs in with a name and a password.
        with_login,
        /// Whether and whom to trust with TLS; off by default. A node's certificate must name its IP address.
        with_tls,
        /// How long reaching the first node may take in all, and how long checking the schema may take after it; 10 s by
        /// default.
        with_connect_timeout,
    }

    /// How many replicas must answer; a quorum of all of them by default.
    #[must_use]
    pub fn with_consistency(mut self, consistency: Consistency) -> Self {
        self.consistency = consistency;
        self
    }

    /// The data centre to send requests to. Needed by [`Consistency::LocalQuorum`]; with [`Consistency::Quorum`] it saves
    /// a trip between data centres per request.
    #[must_use]
    pub fn with_datacenter(mut self, datacenter: impl Into<String>) -> Self {
        self.datacenter = Some(datacenter.into());
        self
    }

    /// How many replicas a keyspace gets that [`SchemaMode::Create`] creates; 3 by default. Of an existing one nothing is changed.
    #[must_use]
    pub fn with_replication(mut self, factor: u32) -> Self {
        self.replication = factor;
        self
    }

    /// What to do about keyspace and table; they are only checked by default.
    #[must_use]
    pub fn with_schema(mut self, schema: SchemaMode) -> Self {
        self.schema = schema;
        self
    }

    /// By how much the clocks of two servers may differ; 2 s by default. More costs nothing but time after a crash: rows live longer by
    /// it.
    #[must_use]
    pub fn with_max_clock_skew(mut self, skew: Duration) -> Self {
        self.max_clock_skew = skew;
        self
    }

    /// How long the last tokens of an unused name are kept, in whole seconds; 7 days by default.
    ///
    /// After that a name starts anew, and its first token is larger only as far as the clients' clocks have moved on.
    #[must_use]
    pub fn with_token_ttl(mut self, ttl: Duration) -> Self {
        self.token_ttl = ttl;
        self
    }

    /// `gc_grace_seconds` of a table that [`SchemaMode::Create`] creates, in whole seconds; 20 s by default.
    ///
    /// A look has to step over what has ended since so long: with 60 s one client after the other at one name, 65 a second, made
    /// an acquisition three times as slow as with 10 s. It should be longer than a row lives, which is the lease and three
    /// seconds: else a node that missed a release may show the claim until that ends by itself. Nobody gets in by
    /// that; somebody may wait for it. It is also how long a node that was down still gets the writes it missed.
    #[must_use]
    pub fn with_gc_grace(mut self, grace: Duration) -> Self {
        self.gc_grace = grace;
        self
    }

    /// Which algorithm runs on the table.
    #[must_use]
    pub fn with_protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = protocol;
        self
    }

    /// Where places in the queue come from.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Options from `cassandra://user:password@host1,host2:port/keyspace?option=value`.
    ///
    /// `ylock_options` are those that the same URL gave for every engine; their lease bounds the request timeout.
    ///
    /// # Errors
    /// [`Config`](ylock_core::ErrorKind::Config) that names what is missing, unknown or wrong.
    pub fn from_url(url: &ylock_core::url::EngineUrl, ylock_options: &ylock_core::Options) -> Result<Self> {
        url::read(url, ylock_options).map_err(|error| error.with_engine(crate::NAME))
    }
}
