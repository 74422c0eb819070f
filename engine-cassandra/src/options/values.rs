//! The options that are one of a few words, and how each option is read back.

use std::time::Duration;

use super::{CassandraOptions, DEFAULT_PORT};

/// How many replicas must confirm a write and answer a read.
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

/// What to do about keyspace and table when a client connects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaMode {
    /// They must be there and fit.
    #[default]
    Check,
    /// Create what is missing, then check.
    Create,
}

/// Which algorithm runs on the table. Clients of one table must all use the same.
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

/// Where a client takes the time from that orders the queue. Neither decides who may enter: see
/// [`clock`](crate::clock).
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

impl CassandraOptions {
    /// The keyspace.
    pub fn keyspace(&self) -> &str {
        &self.keyspace
    }

    /// See [`with_table`](Self::with_table).
    pub fn table(&self) -> &str {
        &self.table
    }

    /// See [`with_consistency`](Self::with_consistency).
    pub fn consistency(&self) -> Consistency {
        self.consistency
    }

    /// See [`with_max_clock_skew`](Self::with_max_clock_skew).
    pub fn max_clock_skew(&self) -> Duration {
        self.max_clock_skew
    }

    /// See [`with_token_ttl`](Self::with_token_ttl).
    pub fn token_ttl(&self) -> Duration {
        self.token_ttl
    }

    /// See [`with_gc_grace`](Self::with_gc_grace).
    pub fn gc_grace(&self) -> Duration {
        self.gc_grace
    }

    /// See [`with_protocol`](Self::with_protocol).
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// See [`with_clock`](Self::with_clock).
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// How long a row of this client's lease lives, in whole seconds.
    pub(crate) fn row_seconds(&self) -> u32 {
        let exact = self.reach.lease.as_secs_f64().ceil() + 1.0 + self.max_clock_skew.as_secs_f64().ceil();
        exact as u32
    }

    /// The nodes to begin with, as `host:port`.
    pub(crate) fn addresses(&self) -> Vec<String> {
        self.hosts.iter().map(|host| host.address(DEFAULT_PORT)).collect()
    }

    pub(crate) fn datacenter(&self) -> Option<&str> {
        self.datacenter.as_deref()
    }

    pub(crate) fn replication(&self) -> u32 {
        self.replication
    }

    pub(crate) fn schema(&self) -> SchemaMode {
        self.schema
    }
}
