//! The options: where the cluster is, how to log in, and how its answers are judged.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ylock_core::options::Reach;
use ylock_core::url::{EngineUrl, Host};
use ylock_core::{Options, Result};

use crate::driver::Session;
use crate::hints::{Address, Networks};

mod check;
mod rules;
#[cfg(test)]
mod tests;
mod values;

pub(crate) use check::check_tokens;
pub(crate) use rules::Rules;
pub use values::{Clock, Consistency, Expiry, Notify, Protocol, SchemaMode};
pub use ylock_core::options::{ClientCertificate, Tls};

/// A node that was away for less gets the writes that it missed.
const SHORTEST_GRACE: Duration = Duration::from_secs(20);

/// The port of a host that names none.
pub const DEFAULT_PORT: u16 = 9042;

ylock_core::define_options! {
    /// The options of a cluster: where it is and how to use it.
    ///
    /// Apache Cassandra 4.0 or later. Nothing is checked before [`check`](Self::check), which connecting does first. The
    /// [connect timeout](Self::with_connect_timeout) is for reaching the first node, and again for checking the schema after it. With
    /// [TLS](Self::with_tls) the certificate of a node must name its IP address.
    #[derive(Clone, Debug)]
    pub struct CassandraOptions {
        hosts: Vec<Host>,
        keyspace: String,
        handed_over: Option<Arc<Session>>,
    }
    includes reach: Reach;

    /// What to do about keyspace and table: `check` that they are there and fit, or `create` first what is missing.
    schema / with_schema: SchemaMode = "check";

    /// How many replicas a keyspace gets that is created. Of an existing one nothing is changed.
    replication / with_replication: u32 = "3";

    /// The table inside the keyspace. Clients exclude each other within one table only.
    table / with_table: String = "locks";

    /// How many replicas must answer: a `quorum` of all, or a `local_quorum`, which is right only if every client names the same
    /// `datacenter`.
    consistency / with_consistency: Consistency = "quorum";

    /// The data centre to send requests to. Needed by `local_quorum`; with `quorum` it saves a trip between data centres per request.
    datacenter / with_datacenter: String or "";

    /// How the row of a client that died goes, the same for all clients of a table: by its `ttl`, and so by the servers' clocks; or when it
    /// was `observed` unchanged for a lease, by the clock of a client that waits.
    ///
    /// A table records in its comment which of the two its clients have. A client that names none takes what the table says; one that names the
    /// other is refused. A table without such a record, made by an earlier version, counts as one of `ttl`.
    expiry / with_expiry: Expiry or "that of the table; `observed` for a table that is created";

    /// By how much the clocks of two servers may differ. One that is further off costs locks, and can grant one twice: connecting looks, and
    /// warns.
    ///
    /// A table records it, as `expiry`: the smallest of any client would bound what is promised to all.
    ///
    /// With `expiry=ttl` more costs time after a crash, because rows live longer by it; at most an hour. With `expiry=observed` it costs a
    /// client that waits nothing; at most half of `token_ttl`, less the lease. But `gc_grace` of a table that is created is three times that, 9 days
    /// for 3 days, and a name that many clients use once piles up what they leave for as long.
    max_clock_skew / with_max_clock_skew: Duration or "that of the table; `60s`, or `2s` with `expiry=ttl`, for a table that is created";

    /// How long the last tokens of an unused name are kept, in whole seconds.
    ///
    /// After that a name starts anew, and its first token is larger only as far as the clients' clocks have moved on. A table records it, as
    /// `expiry`: the client that has used a name last decides for how long its token is kept.
    token_ttl / with_token_ttl: Duration or "that of the table; `7days` for a table that is created";

    /// `gc_grace_seconds` of a table that is created, in whole seconds; should be as long as any node may show a row.
    ///
    /// That is the lease, a second, and three times `max_clock_skew`: a row lives longer by it, the node that shows the row may be late by it, and
    /// the node that throws away what came after the row early by it. With less, a node that missed a release may show the claim until that ends
    /// by itself: no client gets in by that, but a client may wait for it. It is also how long a node that was down still gets the writes that it
    /// missed.
    ///
    /// A look has to step over everything that has ended and was written within this time: with 60 s one client after the other at one
    /// name, 65 a second, made an acquisition three times as slow as with 10 s. With 191 s Cassandra refuses the looks at a name to which as many
    /// come and are not closed, after less than two minutes; 35 a second are the most. Where many clients come to one name and go, and the clocks
    /// of the servers are known to be right, a smaller `max_clock_skew` makes that short.
    gc_grace / with_gc_grace: Duration or "the lease, `1s` and three times `max_clock_skew`, at least `20s`; `191s` with every default";

    /// The algorithm, the same for all clients of a table, which records it, as `expiry`: `queue`, or `shadow-rows`, the one that it replaces: not
    /// fair, to measure against.
    protocol / with_protocol: Protocol or "that of the table; `queue` for a table that is created";

    /// Where places in the queue come from: `hlc`, the client's hybrid logical clock, or `global-time`, a cell that all clients share.
    clock / with_clock: Clock = "hlc";

    /// How waiters learn of their turn: with `off` they look again and again; with `udp` clients also tell each other, by datagrams, to look now; with
    /// `auto` as with `udp`, but only between private or loopback addresses.
    ///
    /// That makes hand-overs between clients faster, and costs Cassandra fewer requests. A datagram decides nothing: where none arrive,
    /// waiters look as with `off`. Clients of one table may differ in this.
    ///
    /// With `auto` a client receives at the address by which it reaches Cassandra, at any free port, if that address is a private one or a loopback
    /// address; and it sends to such addresses only. Elsewhere it does neither. `ylock doctor` says what it has found. With `udp` it does both at any
    /// address, which the three options below narrow down, and fails to connect if it cannot receive.
    notify / with_notify: Notify = "auto";

    /// With `notify=udp`: the IP address and the port at which to receive. With port 0 any that is free.
    notify_bind: Address = "0.0.0.0:0";

    /// With `notify=udp`: the IP address and the port at which other clients reach this one. With port 0 the one of `notify_bind`.
    notify_advertise: Address or "the address of `notify_bind`, or the one by which it reaches Cassandra";

    /// With `notify=udp`: the networks to which datagrams may be sent, such as `10.0.0.0/8,192.168.1.7`.
    ///
    /// Never to a multicast or broadcast address, nor to a port below 1024.
    notify_allow: Networks or "any";
}

impl CassandraOptions {
    /// Returns options with every default, for this keyspace and no host yet.
    pub fn new(keyspace: impl Into<String>) -> Self {
        Self::with_defaults(Vec::new(), keyspace.into(), None, Reach::default())
    }

    /// Adds a node to begin with; the driver finds the others by itself.
    #[must_use]
    pub fn with_host(mut self, name: impl Into<String>, port: u16) -> Self {
        self.hosts.push(Host::new(name, port));
        self
    }

    /// Returns the options of `cassandra://user:password@host1,host2:port/keyspace?option=value`.
    ///
    /// `ylock_options` are those that the same URL gave for every engine; their lease bounds the request timeout.
    ///
    /// # Errors
    /// [`Config`](ylock_core::ErrorKind::Config) that names what is missing, unknown or wrong.
    pub fn from_url(url: &EngineUrl, ylock_options: &Options) -> Result<Self> {
        let mut options = Self::new(&url.path);
        options.hosts.clone_from(&url.hosts);
        options.read(url, ylock_options).map_err(|error| error.with_engine(crate::NAME))
    }
    /// Returns the keyspace.
    pub fn keyspace(&self) -> &str {
        &self.keyspace
    }

    /// Returns how the row of a client that died goes. Where that was [left to the table](Self::with_expiry): what a table has that is created.
    pub fn expiry(&self) -> Expiry {
        self.expiry.unwrap_or_default()
    }

    fn expiry_asked_for(&self) -> Option<Expiry> {
        self.expiry
    }

    /// Returns by how much the clocks of two servers may differ; see [`with_max_clock_skew`](Self::with_max_clock_skew).
    pub fn max_clock_skew(&self) -> Duration {
        self.max_clock_skew_with(self.expiry())
    }

    fn max_clock_skew_with(&self, expiry: Expiry) -> Duration {
        self.max_clock_skew.unwrap_or(Rules::of(expiry).max_clock_skew)
    }

    /// Returns for how long the last tokens of an unused name are kept; see [`with_token_ttl`](Self::with_token_ttl).
    pub fn token_ttl(&self) -> Duration {
        self.token_ttl.unwrap_or(Rules::of(self.expiry()).token_ttl)
    }

    /// Returns the algorithm; see [`with_protocol`](Self::with_protocol).
    pub fn protocol(&self) -> Protocol {
        self.protocol.unwrap_or_default()
    }

    /// Returns `gc_grace_seconds` of a table that is created; see [`with_gc_grace`](Self::with_gc_grace).
    pub fn gc_grace(&self) -> Duration {
        self.gc_grace.unwrap_or(self.longest_shown().max(SHORTEST_GRACE))
    }

    /// Returns for how long any node may show a row of this client's lease, whose successor another node may have thrown away meanwhile.
    ///
    /// The row ends by the clock of the node that took it. Another node shows it, whose clock is behind that. What came after the row was written,
    /// perhaps at once, by way of a node whose clock is behind, too, and a node whose clock is ahead of that one throws it away.
    ///
    /// Never more than the longest grace: of a table that has this one no client warns, as there is none to recommend.
    pub(crate) fn longest_shown(&self) -> Duration {
        let skew = self.max_clock_skew().as_secs_f64().ceil();
        Duration::try_from_secs_f64(self.reach.lease.as_secs_f64().ceil() + 1.0 + 3.0 * skew)
            .map_or(check::MAX_TTL, |shown| shown.min(check::MAX_TTL))
    }

    /// Sets at which IP address and port to receive datagrams with [`Notify::Udp`]; with port 0, which is the default, at any that is free.
    #[must_use]
    pub fn with_notify_bind(mut self, address: impl Into<SocketAddr>) -> Self {
        self.notify_bind = Address(address.into());
        self
    }

    /// Sets at which IP address and port other clients reach this one, where that is not its own, as behind NAT. With port 0 at the one that
    /// it [receives at](Self::with_notify_bind).
    #[must_use]
    pub fn with_notify_advertise(mut self, address: impl Into<SocketAddr>) -> Self {
        self.notify_advertise = Some(Address(address.into()));
        self
    }

    /// Sets to which networks datagrams may be sent with [`Notify::Udp`]: `10.0.0.0/8,192.168.1.7`. By default to any.
    ///
    /// # Errors
    /// [`Config`](ylock_core::ErrorKind::Config) if these are no networks.
    pub fn with_notify_allow(mut self, networks: &str) -> Result<Self> {
        self.notify_allow = Some(ylock_core::options::read("notify_allow", networks)?);
        Ok(self)
    }

    pub(crate) fn notify_bind(&self) -> Address {
        self.notify_bind
    }

    pub(crate) fn notify_advertise(&self) -> Option<Address> {
        self.notify_advertise
    }

    pub(crate) fn notify_allow(&self) -> Option<&Networks> {
        self.notify_allow.as_ref()
    }

    /// Hands over a session that the program has; messages name these nodes.
    #[cfg(feature = "scylla-1")]
    pub(crate) fn with_session(mut self, session: Arc<Session>, nodes: Vec<Host>) -> Self {
        (self.handed_over, self.hosts) = (Some(session), nodes);
        self
    }

    /// Returns the session that the program has handed over. Then there is no other, and it ends with its runtime.
    pub(crate) fn handed_over(&self) -> Option<&Arc<Session>> {
        self.handed_over.as_ref()
    }

    /// Returns the nodes to begin with, as `host:port`.
    pub(crate) fn addresses(&self) -> Vec<String> {
        self.hosts.iter().map(|host| host.address(DEFAULT_PORT)).collect()
    }

    pub(crate) fn datacenter(&self) -> Option<&str> {
        self.datacenter.as_deref()
    }
}
