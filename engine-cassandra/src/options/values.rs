//! The options that are one of a few words.

use ylock_core::option_words;

/// The number of replicas that must confirm a write and answer a read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Consistency {
    /// A majority of all replicas, in whatever data centres they are.
    #[default]
    Quorum,
    /// A majority of the replicas in the client's own data centre.
    ///
    /// Right only where every client of the table names the *same* data centre: clients in two data centres do not
    /// exclude each other.
    LocalQuorum,
}

option_words!(Consistency: Quorum = "quorum", LocalQuorum = "local_quorum");

/// The treatment of keyspace and table when a client connects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaMode {
    /// Keyspace and table must be there and fit.
    #[default]
    Check,
    /// Create what is missing, then check.
    Create,
}

option_words!(SchemaMode: Check = "check", Create = "create");

/// The algorithm that runs on the table. Clients of one table must all use the same algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Protocol {
    /// The queue lock: fair, with shared reads.
    #[default]
    Queue,
    /// The lock that the queue lock replaces: not fair, exclusive also for readers, and slower the more contend. To
    /// measure against, not to use.
    ShadowRows,
}

option_words!(Protocol: Queue = "queue", ShadowRows = "shadow-rows");

/// The source of the time that orders the queue. Neither decides which client may enter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Clock {
    /// Its own hybrid logical clock.
    #[default]
    Hlc,
    /// The time service of the thesis: one more trip per acquisition, and it stands still when a clock that ran ahead dies. To
    /// compare with.
    GlobalTime,
}

option_words!(Clock: Hlc = "hlc", GlobalTime = "global-time");

/// The rule by which the row of a client that died goes. All clients of a table have the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expiry {
    /// By its TTL, and so by the servers' clocks.
    Ttl,
    /// When another client has seen it unchanged for a lease, by that client's own clock.
    #[default]
    Observed,
}

option_words!(Expiry: Ttl = "ttl", Observed = "observed");

/// How waiters learn of their turn.
///
/// # Examples
/// Clients that tell each other in one network, and send nothing elsewhere:
/// ```
/// use ylock::cassandra::{CassandraOptions, Notify};
///
/// # fn main() -> ylock::Result<()> {
/// let options = CassandraOptions::new("locks")
///     .with_host("10.0.0.1", 9042)
///     .with_notify(Notify::Udp)
///     .with_notify_allow("10.0.0.0/8")?;
/// options.check()?;
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notify {
    /// Clients tell each other, as with `Udp`, where the address by which a client reaches the cluster is a private one, or a loopback address:
    /// then it receives at this address, and sends to such addresses only. Elsewhere waiters look as with `Off`.
    #[default]
    Auto,
    /// They look, again and again.
    Off,
    /// Clients tell each other, by datagrams, to look now. Where these do not arrive, waiters look as with `Off`.
    Udp,
}

option_words!(Notify: Auto = "auto", Off = "off", Udp = "udp");
