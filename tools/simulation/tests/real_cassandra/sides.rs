//! The two sides: a table of the real cluster, and a simulated cluster per key.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::statement::Statement;
use ylock_core::environment::SystemEnvironment;
use ylock_core::{ErrorKind, Key};
use ylock_engine_cassandra::algorithm::store::{Partition, Store};
use ylock_engine_cassandra::driver::Table;
use ylock_engine_cassandra::options::{CassandraOptions, DEFAULT_PORT, SchemaMode};
use ylock_simulation::chance::Chance;
use ylock_simulation::clocks::Clocks;
use ylock_simulation::store::{Cluster, Connection, Weather};
use ylock_simulation::world::{Actor, World};

use super::operations::Operation;
use super::time::NodeClock;

/// One replica, unlike that of other tests.
const KEYSPACE: &str = "ylock_simulated";
/// As in the simulation.
const GC_GRACE: Duration = Duration::from_secs(20);
/// Longer than the busiest server takes.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a look shows, in an order that is the same for both sides; or how it failed.
pub(crate) type Look = Result<Partition, ErrorKind>;

/// A table of the real cluster, with one replica, that no other test uses.
pub(crate) struct Real {
    pub(crate) table: Table,
    pub(crate) clock: NodeClock,
    session: Session,
    name: String,
}

impl Real {
    /// Makes a table with these options beside those of the engine.
    pub(crate) async fn with(options: &str) -> Self {
        let addresses = std::env::var("YLOCK_TEST_CASSANDRA").expect("YLOCK_TEST_CASSANDRA names the nodes");
        let addresses: Vec<_> = addresses.split(',').map(host_and_port).collect();
        let environment = SystemEnvironment::shared();
        let name = format!("simulated_{:016x}", environment.random());
        let made = CassandraOptions::new(KEYSPACE)
            .with_schema(SchemaMode::Create)
            .with_replication(1)
            .with_table(&name)
            .with_gc_grace(GC_GRACE)
            .with_lease(4 * PATIENCE)
            .with_request_timeout(PATIENCE);
        let made = addresses.iter().fold(made, |made, (host, port)| made.with_host(host, *port));
        let table = Table::connect(&made, &environment).await.unwrap();
        let nodes = addresses.iter().map(|(host, port)| format!("{host}:{port}"));
        let session = SessionBuilder::new().known_nodes(nodes).build().await.unwrap();
        let clock = NodeClock::of(&session).await;
        let real = Self { table, clock, session, name };
        real.change(&format!("ALTER TABLE {KEYSPACE}.{} WITH {options}", real.name)).await;
        real
    }

    async fn change(&self, cql: &str) {
        let mut statement = Statement::new(cql);
        statement.set_request_timeout(Some(Duration::from_secs(30)));
        self.session.query_unpaged(statement, ()).await.unwrap_or_else(|error| panic!("{cql}: {error}"));
    }

    pub(crate) async fn apply(&self, key: &Key, operation: &Operation) {
        operation.apply(&self.table, key).await.expect("the real node takes every operation");
    }

    pub(crate) async fn look(&self, key: &Key) -> Look {
        look(&self.table, key).await
    }

    pub(crate) async fn remove(self) {
        self.change(&format!("DROP TABLE {KEYSPACE}.{}", self.name)).await;
    }
}

fn host_and_port(address: &str) -> (String, u16) {
    match address.trim().rsplit_once(':') {
        Some((host, port)) => (host.to_owned(), port.parse().expect("a port follows the colon")),
        None => (address.trim().to_owned(), DEFAULT_PORT),
    }
}

/// A simulated cluster of one node, for one key.
pub(crate) struct Simulated {
    world: Arc<World>,
    cluster: Arc<Cluster>,
    connection: Arc<Connection>,
    actor: Actor,
    /// The second of the real node in which its time began.
    began: i64,
}

impl Simulated {
    pub(crate) fn new(began: i64) -> Self {
        let (world, mut chance) = (World::new(false), Chance::new(1));
        let weather =
            Weather { hints: false, read_repair: false, ..Weather::calm((Duration::ZERO, Duration::ZERO)) };
        let cluster = Cluster::new(&world, weather, &[0], chance.fork());
        let actor = world.new_actor();
        let clocks = Clocks::new(&world, actor, 1.0, 0, chance);
        let connection = Arc::new(Connection::new(&world, &cluster, &clocks, PATIENCE));
        Self { world, cluster, connection, actor, began }
    }

    /// Compacts nothing, as a real table that says so.
    pub(crate) fn without_compaction(self) -> Self {
        self.cluster.stop_compaction();
        self
    }

    pub(crate) fn apply(&self, second: i64, key: &Key, operation: &Operation) {
        let (connection, key, operation) = (Arc::clone(&self.connection), key.clone(), operation.clone());
        let applied = self.run(second, async move { operation.apply(&*connection, &key).await });
        applied.expect("the simulated node takes every operation");
    }

    pub(crate) fn look(&self, second: i64, key: &Key) -> Look {
        let (connection, key) = (Arc::clone(&self.connection), key.clone());
        self.run(second, async move { look(&*connection, &key).await })
    }

    /// Does this in the middle of a second of the real node.
    fn run<T: Send + 'static>(&self, second: i64, work: impl Future<Output = T> + Send + 'static) -> T {
        let middle = u64::try_from(second - self.began).unwrap() * 1_000_000_000 + 500_000_000;
        self.world.run(middle, || false);
        let done = Arc::new(Mutex::new(None));
        let outcome = Arc::clone(&done);
        self.world.spawn(self.actor, Box::pin(async move { *outcome.lock() = Some(work.await) }));
        assert!(self.world.run(middle, || done.lock().is_some()), "the simulated node does not answer");
        done.lock().take().expect("it is done")
    }
}

async fn look(store: &dyn Store, key: &Key) -> Look {
    let mut partition = store.read(key).await.map_err(|error| error.kind())?;
    partition.rows.sort_by_key(|seen| seen.slot);
    Ok(partition)
}
