//! The setting of a run, and its outcome.

use std::sync::Arc;
use std::time::Duration;

use ylock_core::engine::Engine;
use ylock_core::environment::Environment;
use ylock_core::url::Host;
use ylock_engine_cassandra::algorithm::runs::RunCell;
use ylock_engine_cassandra::algorithm::store::Store;
use ylock_engine_cassandra::clock::TimeCell;
use ylock_engine_cassandra::options::{self, Clock, Expiry, Protocol};
use ylock_engine_cassandra::{CassandraEngine, CassandraOptions};
use ylock_engine_etcd::EtcdOptions;
use ylock_engine_redis::RedisOptions;
use ylock_engine_redis::options::Notify;
use ylock_engine_zookeeper::ZookeeperOptions;
use ylock_engine_zookeeper::algorithm::store::Ensemble;

use crate::backend::Subject;
use crate::clocks::Clocks;
use crate::etcd;
use crate::facade::{Built, Sets};
use crate::faults::Fault;
use crate::redis;
use crate::store::Connection;
use crate::zookeeper::Mistakes;

/// Makes a client's engine from its connection and clocks. The broken variants of the tests make others.
pub type MakeEngine = dyn Fn(Arc<Connection>, &Arc<Clocks>, &CassandraOptions) -> Arc<dyn Engine>;

/// Wraps a client's engine, as the broken variants of the tests do.
pub type WrapEngine = dyn Fn(Arc<dyn Engine>) -> Arc<dyn Engine>;

/// Wraps a client's way to an ensemble, as the broken variants of the tests do.
pub type WrapEnsemble = dyn Fn(Arc<dyn Ensemble>, &Arc<Clocks>) -> Arc<dyn Ensemble>;

/// Wraps a client's way to a cluster of etcd, as the broken variants of the tests do.
pub type WrapEtcd = dyn Fn(
    Arc<dyn ylock_engine_etcd::algorithm::store::Store>,
    &Arc<Clocks>,
) -> Arc<dyn ylock_engine_etcd::algorithm::store::Store>;

/// The setting of a run.
pub struct Setting<'a> {
    /// The subject.
    pub of: Subject,
    /// The kinds of trouble.
    pub allowed: Vec<Fault>,
    /// True to keep the trace as text.
    pub lines: bool,
    /// True if clients believe a renewal also when their lease had lapsed before: the keeper never does.
    pub trusting: bool,
    /// The algorithm that clients of the cluster run.
    pub protocol: Protocol,
    /// The source of their places in the queue.
    pub clock: Clock,
    /// The rule by which the rows of dead clients go.
    pub expiry: Expiry,
    /// True if clients tell each other to look.
    pub notify: bool,
    /// By how many hundredths the steady clocks of clients are wrong at most.
    pub drift: f64,
    /// The number of nodes of the cluster; each is a replica of everything.
    pub replicas: usize,
    /// The leases that requests have, the usual one first.
    pub leases: Vec<Duration>,
    /// The function that makes a client of the cluster.
    pub make: &'a MakeEngine,
    /// The function that wraps a client's way to an ensemble.
    pub wrap_ensemble: &'a WrapEnsemble,
    /// The mistakes of the driver of an ensemble's client.
    pub mistakes: Mistakes,
    /// The function that wraps a client's way to a cluster of etcd.
    pub wrap_etcd: &'a WrapEtcd,
    /// The mistakes of the driver of such a client.
    pub etcd_mistakes: etcd::Mistakes,
    /// The mistake in the scripts of a Redis server.
    pub script_mistake: redis::Mistake,
    /// How many of a hundred acquisitions of an engine do not wait.
    pub tries: u64,
    /// True if all acquisitions of an engine ask for the strict order.
    pub strict: bool,
    /// Whether tasks above the keeper take several locks at once, and with which mistake.
    pub sets: Sets,
    /// Whether tasks above the keeper use what is built on locks, and with which mistake.
    pub built: Built,
    /// The function that wraps a client's engine.
    pub wrap: &'a WrapEngine,
}

/// The outcome of a run.
#[derive(Debug)]
pub struct Outcome {
    /// Everything that was wrong; nothing if all is well.
    pub wrong: Vec<String>,
    /// The number of entries.
    pub entries: u64,
    /// The number of clients that queued and entered before another one that was in the queue when they began; and the number of all
    /// that queued and entered.
    pub inversions: (u64, u64),
    /// The virtual time that has passed.
    pub time: Duration,
    /// How many rows were buried.
    pub burials: u64,
    /// How often a task was run or something happened.
    pub steps: u64,
    /// The hash of everything that happened.
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
            expiry: Expiry::Ttl,
            notify: false,
            drift: 2.0,
            replicas: 3,
            leases: vec![Duration::from_secs(5)],
            make: &real_engine,
            wrap_ensemble: &|ensemble, _| ensemble,
            mistakes: Mistakes::default(),
            wrap_etcd: &|store, _| store,
            etcd_mistakes: etcd::Mistakes::default(),
            script_mistake: None,
            tries: 20,
            strict: false,
            sets: Sets::None,
            built: Built::None,
            wrap: &|engine| engine,
        }
    }
}

impl Setting<'_> {
    /// Returns the setting of clients that observe each other: with the clocks and the leases that make that hard.
    #[must_use]
    pub fn observed(self) -> Self {
        let leases = [5_000, 1_200, 20_000].map(Duration::from_millis).to_vec();
        Self { expiry: Expiry::Observed, drift: 5.0, leases, ..self }
    }

    pub(crate) fn shortest_lease(&self) -> Duration {
        self.leases.iter().copied().min().unwrap_or_default()
    }

    /// Returns for how long a row is there for sure after the write of it was sent: a client whose clock is fast may bury it early.
    pub(crate) fn shortest_life(&self) -> Duration {
        match self.expiry {
            Expiry::Observed => self.shortest_lease() * 9 / 10,
            _ => self.shortest_lease(),
        }
    }

    pub(crate) fn longest_lease(&self) -> Duration {
        self.leases.iter().copied().max().unwrap_or_default()
    }

    /// Returns the options of a client of an ensemble.
    pub(crate) fn zookeeper_options(&self) -> ZookeeperOptions {
        let host = Host::new("simulated", None);
        ZookeeperOptions::new([host]).with_lease(self.leases[0]).with_request_timeout(self.request_timeout())
    }

    /// Returns the options of a client of a cluster of etcd.
    pub(crate) fn etcd_options(&self) -> EtcdOptions {
        let host = Host::new("simulated", None);
        EtcdOptions::new([host]).with_lease(self.leases[0]).with_request_timeout(self.request_timeout())
    }

    /// Returns the options of a client of a Redis server: some are told of their turn, the others ask.
    pub(crate) fn redis_options(&self, clocks: &Clocks, servers: &redis::Servers) -> RedisOptions {
        let options = servers.options().with_request_timeout(self.request_timeout());
        let poll = Duration::from_millis(20 + clocks.random() % 100);
        let notify = Notify::Off { poll, poll_longest: poll * 4 };
        if clocks.random().is_multiple_of(4) { options.with_notify(notify) } else { options }
    }

    /// Returns how long a request may take: so that the shortest lease has time for a few of them.
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

/// Creates the engine as it is.
pub fn real_engine(
    connection: Arc<Connection>,
    clocks: &Arc<Clocks>,
    options: &CassandraOptions,
) -> Arc<dyn Engine> {
    let environment: Arc<dyn Environment> = Arc::clone(clocks) as _;
    let engine = CassandraEngine::over(Arc::clone(&connection) as Arc<dyn Store>, environment, options);
    let engine = match options.notify() {
        options::Notify::Udp => engine.with_hints(connection.carrier(), options),
        _ => engine,
    };
    let engine = engine.with_runs(Arc::clone(&connection) as Arc<dyn RunCell>);
    Arc::new(match options.clock() {
        Clock::GlobalTime => engine.with_global_time(connection as Arc<dyn TimeCell>),
        _ => engine,
    })
}
