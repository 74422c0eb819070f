#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod blocking;

#[cfg(doctest)]
mod book;
mod config;
mod connect;
mod known;

pub use config::Config;
pub use connect::{connect, connect_to, connect_with};

// The values that a program holds.
pub use ylock_core::{
    Guard, Guards, Lease, Leases, Listed, Listing, Lock, Locks, MultiLock, Permit, PermitLease, Semaphore,
    SemaphoreInspection, TwoPhaseLocking, Unlocked, Ylock,
};
// One acquisition.
pub use ylock_core::{Acquirable, Acquire, Reentrant, TryAcquire};
// The election of a leader.
pub use ylock_core::{Election, Leader, Leaders, Leadership};
// Jobs that one of many replicas runs.
pub use ylock_core::{Completed, JobLease, JobOutcome, JobRun, Period};
// The values that it passes.
pub use ylock_core::{
    ClientName, Fairness, HandOver, Key, MAX_GROUP_BYTES, MAX_MEMBERS, MAX_NAME_BYTES, MAX_PERMITS, Mode,
    Name, Options, Owner, Token,
};
// The results and errors that it is told.
pub use ylock_core::{Error, ErrorKind, Guarantees, LossReason, Result};
// The trait of the layers that it may add.
pub use ylock_core::Layer;
// The engine that is always there.
pub use ylock_core::{MemoryEngine, MemoryStore};

#[doc(inline)]
pub use ylock_core::layer;

/// The types for programs that implement an engine, or inspect the holders of a lock.
pub mod engine {
    pub use ylock_core::StoreToken;
    pub use ylock_core::engine::{
        AcquisitionId, ClockReading, Diagnostics, Engine, Finding, Grant, Holder, Holding, Inspection,
        KeyPage, Meter, Patience, Release, Renewal, Request, Requests, ServerReport, Ticket, Waiter,
    };
    pub use ylock_core::environment::{BoxFuture, Environment, Moment, SystemEnvironment};
    pub use ylock_core::options::Definition;
}

/// Locks on Apache Cassandra.
#[cfg(feature = "cassandra")]
pub mod cassandra {
    #[cfg(feature = "scylla-1")]
    pub use ylock_engine_cassandra::driver_api;
    pub use ylock_engine_cassandra::options::{
        ClientCertificate, Clock, Consistency, DEFAULT_PORT, Notify, Protocol, SchemaMode, Tls,
    };
    pub use ylock_engine_cassandra::{CassandraEngine, CassandraOptions, HintCounts};
}

/// Locks on etcd.
#[cfg(feature = "etcd")]
pub mod etcd {
    pub use ylock_engine_etcd::driver_api;
    pub use ylock_engine_etcd::options::{ClientCertificate, DEFAULT_PORT, DEFAULT_PREFIX, Tls};
    pub use ylock_engine_etcd::{EtcdEngine, EtcdOptions};
}

/// Locks in files, for the processes of one host.
#[cfg(feature = "file")]
pub mod file {
    pub use ylock_engine_file::options::Access;
    pub use ylock_engine_file::{FileEngine, FileOptions};
}

/// Locks on PostgreSQL.
#[cfg(feature = "postgres")]
pub mod postgres {
    #[cfg(feature = "tokio-postgres-0_7")]
    pub use ylock_engine_postgres::driver_api;
    pub use ylock_engine_postgres::options::{
        ClientCertificate, DEFAULT_PORT, Notify, SchemaMode, Standby, Tls,
    };
    pub use ylock_engine_postgres::{PostgresEngine, PostgresOptions};
}

/// Locks on Redis.
#[cfg(feature = "redis")]
pub mod redis {
    #[cfg(feature = "redis-1")]
    pub use ylock_engine_redis::driver_api;
    pub use ylock_engine_redis::options::{ClientCertificate, DEFAULT_PORT, Eviction, Notify, Tls};
    pub use ylock_engine_redis::{RedisEngine, RedisOptions};
}

/// Locks on Apache ZooKeeper.
#[cfg(feature = "zookeeper")]
pub mod zookeeper {
    #[cfg(feature = "zookeeper-client-0-11")]
    pub use ylock_engine_zookeeper::driver_api;
    pub use ylock_engine_zookeeper::options::{Acl, ClientCertificate, DEFAULT_BASE, DEFAULT_PORT, Tls};
    pub use ylock_engine_zookeeper::{ZookeeperEngine, ZookeeperOptions};
}

/// Metrics of waits, holds and losses, by the crate `metrics`.
#[cfg(feature = "metrics")]
pub mod metrics {
    #[cfg(feature = "prometheus")]
    pub use ylock_metrics::prometheus;
    pub use ylock_metrics::{MetricsLayer, catalogue};
}

/// The URLs that [`connect`] reads, for a program that keeps its settings elsewhere.
pub mod url {
    pub use ylock_core::url::{EngineUrl, Host, Secret};
}

#[cfg(test)]
mod tests;
