//! Points on a real cluster.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use anyhow::{Context, Result};
use tokio::runtime::Runtime;
use ylock_core::Owner;
use ylock_core::environment::{Environment, SystemEnvironment};
use ylock_engine_cassandra::algorithm::store::Store;
use ylock_engine_cassandra::driver::Table;
use ylock_engine_cassandra::hints::Socket;
use ylock_engine_cassandra::options::SchemaMode;
use ylock_engine_cassandra::{CassandraEngine, CassandraOptions};

use crate::budget::Budget;
use crate::contender::{Contender, LEASE};
use crate::counting::Counting;
use crate::figures::Quantiles;
use crate::matrix::{Lock, Point};
use crate::point::{Party, play};
use crate::record::Record;

const KEYSPACE: &str = "ylock_benchmark";
/// The variable that names the nodes, as for the tests.
const HOSTS: &str = "YLOCK_TEST_CASSANDRA";

/// A cluster with a table for each lock.
pub(crate) struct Cluster {
    runtime: Runtime,
    environment: Arc<dyn Environment>,
    old: Arc<Table>,
    queue: Arc<Table>,
    told: Arc<Table>,
}

impl Cluster {
    pub(crate) fn connect() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let environment = SystemEnvironment::shared();
        let connect = |lock| {
            let environment = Arc::clone(&environment);
            runtime.block_on(async move {
                let table = Table::connect(&options(lock)?, &environment).await?;
                anyhow::Ok(if lock == Lock::Told { table.of_told_client() } else { table })
            })
        };
        let [old, queue, told] =
            [connect(Lock::Old)?, connect(Lock::Queue)?, connect(Lock::Told)?].map(Arc::new);
        Ok(Self { runtime, environment, old, queue, told })
    }

    /// Runs one point.
    pub(crate) fn run(&self, point: Point, budget: Budget) -> Result<Record> {
        let requests = Arc::new(AtomicU64::new(0));
        let contenders: Result<_> = (0..point.contenders)
            .map(|number| self.runtime.block_on(self.contender(number, point.lock, &requests)))
            .collect();
        let party = Party {
            contenders: contenders?,
            environment: Arc::clone(&self.environment),
            requests: Arc::clone(&requests),
            group: format!("thesis-{}", Owner::new()),
        };
        self.runtime.block_on(play(party, point, budget))
    }

    /// Returns the time that one request takes when nothing else happens.
    pub(crate) fn round_trip(&self, rounds: u32) -> Result<Quantiles> {
        self.runtime.block_on(crate::measure::round_trip(&*self.queue, &*self.environment, rounds))
    }

    /// Creates a contender: a client of its own in all but the driver's session, because 128 sessions would be measured instead of the
    /// locks.
    async fn contender(&self, number: u32, lock: Lock, requests: &Arc<AtomicU64>) -> Result<Contender> {
        let table = match lock {
            Lock::Old => &self.old,
            Lock::Queue => &self.queue,
            Lock::Told => &self.told,
        };
        let store = Counting { store: Arc::clone(table) as Arc<dyn Store>, requests: Arc::clone(requests) };
        let environment = Arc::clone(&self.environment);
        let engine = CassandraEngine::over(Arc::new(store), Arc::clone(&environment), table.options());
        let engine = match Socket::open(table.options(), &table.nodes()?, &environment)? {
            Ok(socket) => engine.with_hints(Arc::new(socket), table.options()),
            Err(reason) if lock == Lock::Told => anyhow::bail!("no hints: {reason}"),
            Err(_) => engine,
        };
        Ok(Contender { number, engine: Arc::new(engine), environment })
    }
}

fn options(lock: Lock) -> Result<CassandraOptions> {
    let hosts = std::env::var(HOSTS).with_context(|| {
        format!("{HOSTS} names the nodes: run `cargo xtask bench thesis`, which starts some")
    })?;
    let table = match lock {
        Lock::Old => "old_lock",
        Lock::Queue => "queue_lock",
        Lock::Told => "told_lock",
    };
    let options = CassandraOptions::new(KEYSPACE)
        .with_schema(SchemaMode::Create)
        .with_table(table)
        .with_lease(LEASE)
        .with_protocol(lock.protocol())
        .with_notify(lock.notify());
    hosts.split(',').try_fold(options, |options, host| {
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) => {
                (name, port.parse().with_context(|| format!("{HOSTS}: the port of {host}"))?)
            }
            None => (host, 9042),
        };
        Ok(options.with_host(name, port))
    })
}
