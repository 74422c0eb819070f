//! What may happen in a run, and what came out of it.

use std::sync::Arc;
use std::time::Duration;

use ylock_core::engine::Engine;
use ylock_core::environment::Environment;
use ylock_engine_cassandra::algorithm::store::Store;
use ylock_engine_cassandra::clock::TimeCell;
use ylock_engine_cassandra::options::{Clock, Protocol};
use ylock_engine_cassandra::{CassandraEngine, CassandraOptions};

use crate::backend::Subject;
use crate::clocks::Clocks;
use crate::faults::Fault;
use crate::store::Connection;

/// Makes a client's engine from its connection and clocks. The broken variants of the tests make others.
pub type MakeEngine = dyn Fn(Arc<Connection>, &Arc<Clocks>, &CassandraOptions) -> Arc<dyn Engine>;

/// Puts a client's engine into something else. The broken variants of the tests do.
pub type WrapEngine = dyn Fn(Arc<dyn Engine>) -> Arc<dyn Engine>;

/// What may happen in a run.
pub struct Setting<'a> {
    /// What it is about.
    pub of: Subject,
    /// The kinds of trouble.
    pub allowed: Vec<Fault>,
    /// Whether to keep the trace as text.
    pub lines: bool,
    /// Whether clients believe a renewal also when their lease had lapsed before: what the keeper never does.
    pub trusting: bool,
    /// What clients of the cluster run.
    pub protocol: Protocol,
    /// Where they take their places from.
    pub clock: Clock,
    /// How many nodes the cluster has; each is a replica of everything.
    pub replicas: usize,
    /// The leases that requests have below the keeper; above it all have the first one.
    pub leases: Vec<Duration>,
    /// How a client of the cluster is made.
    pub make: &'a MakeEngine,
    /// What a client's engine is put into.
    pub wrap: &'a WrapEngine,
}

/// What came out.
#[derive(Debug)]
pub struct Outcome {
    /// What was wrong; nothing if all is well.
    pub wrong: Vec<String>,
    /// How often somebody entered.
    pub entries: u64,
    /// Of those who queued and entered, how many went before somebody who was in the queue when they began; and of how many.
    pub inversions: (u64, u64),
    /// Virtual time.
    pub time: Duration,
    /// Of everything that happened.
    pub hash: u64,
    /// The trace, if it was kept.
    pub lines: Vec<String>,
}

impl Default for Setting<'_> {
    fn default() -> Self {
        Self {
            of: Subject::default(),
            allowed: Fault::borne(),
            lines: false,
            trusting: false,
            protocol: Protocol::Queue,
            clock: Clock::Hlc,
            replicas: 3,
            leases: vec![Duration::from_secs(5)],
            make: &real_engine,
            wrap: &|engine| engine,
        }
    }
}

impl Setting<'_> {
    pub(crate) fn shortest_lease(&self) -> Duration {
        self.leases.iter().copied().min().unwrap_or_default()
    }

    pub(crate) fn longest_lease(&self) -> Duration {
        self.leases.iter().copied().max().unwrap_or_default()
    }

    /// How long a request may take: so that the shortest lease has time for a few of them.
    pub(crate) fn request_timeout(&self) -> Duration {
        (self.shortest_lease() / 5).min(Duration::from_secs(1))
    }
}

impl std::fmt::Debug for Setting<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setting")
            .field("of", &self.of)
            .field("allowed", &self.allowed)
            .finish_non_exhaustive()
    }
}

/// The engine as it is.
pub fn real_engine(
    connection: Arc<Connection>,
    clocks: &Arc<Clocks>,
    options: &CassandraOptions,
) -> Arc<dyn Engine> {
    let environment: Arc<dyn Environment> = Arc::clone(clocks) as _;
    let engine = CassandraEngine::over(Arc::clone(&connection) as Arc<dyn Store>, environment, options);
    Arc::new(match options.clock() {
        Clock::GlobalTime => engine.with_global_time(connection as Arc<dyn TimeCell>),
        _ => engine,
    })
}
