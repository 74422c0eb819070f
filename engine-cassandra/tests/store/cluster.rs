//! The servers, and what the tests write to them.

use std::sync::Arc;
use std::time::Duration;

use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::statement::Statement;
use ylock_core::engine::{AcquisitionId, Ticket};
use ylock_core::environment::{Environment, SystemEnvironment};
use ylock_core::url::Secret;
use ylock_core::{ClientName, Key, Mode, Owner, StoreToken};
use ylock_engine_cassandra::algorithm::store::{Claim, Row, Slot, State, Store, TimedClaim, Write};
use ylock_engine_cassandra::driver::Table;
use ylock_engine_cassandra::options::{CassandraOptions, DEFAULT_PORT, SchemaMode, Tls};

pub(crate) const KEYSPACE: &str = "ylock_test";

/// A table of the cluster, and a key and slot that no other test uses.
pub(crate) struct Bench {
    pub(crate) table: Table,
    pub(crate) key: Key,
    pub(crate) slot: Slot,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        Self::with(options()).await
    }

    pub(crate) async fn with(options: CassandraOptions) -> Self {
        let table = connect(&options).await.unwrap();
        Self { table, key: key("name"), slot: slot() }
    }

    pub(crate) async fn write(&self, write: &Write) {
        self.table.write(&self.key, self.slot, write).await.unwrap();
    }

    pub(crate) async fn read(&self) -> ylock_engine_cassandra::algorithm::store::Partition {
        self.table.read(&self.key).await.unwrap()
    }
}

pub(crate) fn environment() -> Arc<dyn Environment> {
    SystemEnvironment::shared()
}

pub(crate) async fn connect(options: &CassandraOptions) -> ylock_core::Result<Table> {
    Table::connect(options, &environment()).await
}

/// The three nodes.
pub(crate) fn options() -> CassandraOptions {
    options_for(KEYSPACE).with_schema(SchemaMode::Create).with_replication(3)
}

/// The three nodes and another keyspace.
pub(crate) fn options_for(keyspace: &str) -> CassandraOptions {
    let addresses = variable("YLOCK_TEST_CASSANDRA");
    addresses.split(',').fold(CassandraOptions::new(keyspace), |options, address| {
        let (host, port) = host_and_port(address);
        options.with_host(host, port)
    })
}

/// The node that demands a login and TLS.
pub(crate) fn login_options() -> CassandraOptions {
    anonymous_options().with_login("cassandra", Secret::new("cassandra"))
}

/// That node, without a login.
pub(crate) fn anonymous_options() -> CassandraOptions {
    let address = variable("YLOCK_TEST_CASSANDRA_LOGIN");
    let (host, port) = host_and_port(&address);
    CassandraOptions::new(KEYSPACE)
        .with_host(host, port)
        .with_schema(SchemaMode::Create)
        .with_replication(1)
        .with_tls(Tls::Authority(variable("YLOCK_TEST_CASSANDRA_CA").into()))
}

fn host_and_port(address: &str) -> (&str, u16) {
    match address.trim().rsplit_once(':') {
        Some((host, port)) => (host, port.parse().expect("a port follows the colon")),
        None => (address.trim(), DEFAULT_PORT),
    }
}

pub(crate) fn variable(name: &str) -> String {
    std::env::var(name)
        .unwrap_or_else(|_| panic!("{name} is not set: run `cargo xtask test`, which starts the servers"))
}

/// A key of a group that no other test and no other run uses.
pub(crate) fn key(name: &str) -> Key {
    Key::new(format!("test-{:032x}", environment().random_identity()), name).unwrap()
}

pub(crate) fn slot() -> Slot {
    Slot::from_u128(environment().random_identity())
}

pub(crate) fn stamp() -> i64 {
    environment().wall_micros()
}

pub(crate) fn claim(token: u64, mode: Mode) -> Claim {
    Claim { token: StoreToken::new(token).unwrap(), mode }
}

pub(crate) fn timed(token: u64, mode: Mode, ttl: u32) -> TimedClaim {
    TimedClaim { claim: claim(token, mode), ttl }
}

pub(crate) fn row(state: State) -> Row {
    Row {
        acquisition: AcquisitionId::new(&*environment()),
        mode: Mode::Write,
        state,
        ticket: Ticket::from_number(stamp()),
        owner: Owner::new(),
        client: ClientName::default(),
        since: stamp(),
        lease: Duration::from_secs(10),
        next: None,
        hints: None,
    }
}

/// A write of nothing but a row that lives long.
pub(crate) fn write(stamp: i64, row: Row) -> Write {
    Write { stamp, row, row_ttl: 60, claim: None, used: None }
}

/// A session beside those of the tables, for statements that no table sends.
pub(crate) async fn session() -> Session {
    let addresses = variable("YLOCK_TEST_CASSANDRA");
    let nodes = addresses.split(',').map(|address| {
        let (host, port) = host_and_port(address);
        format!("{host}:{port}")
    });
    SessionBuilder::new().known_nodes(nodes).build().await.unwrap()
}

/// Runs a statement that may take a while, such as one that changes the schema.
pub(crate) async fn run(session: &Session, cql: &str) {
    let mut statement = Statement::new(cql);
    statement.set_request_timeout(Some(Duration::from_secs(30)));
    session.query_unpaged(statement, ()).await.unwrap_or_else(|error| panic!("{cql}: {error}"));
}
