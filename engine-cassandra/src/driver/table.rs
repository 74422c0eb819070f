//! The lock table of a cluster.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;
use scylla::response::query_result::QueryResult;
use scylla::serialize::row::SerializeRow;
use scylla::statement::prepared::PreparedStatement;
use ylock_core::engine::{AcquisitionId, Diagnostics, Meter};
use ylock_core::environment::Environment;
use ylock_core::{Error, Key, Result};

use super::connected::Connection;
use super::schema::Asker;
use super::statements::Statements;
use super::values::{self, ClaimValues, RowValues};
use super::{diagnose, errors, page, rows};
use crate::algorithm::clock::TimeCell;
use crate::algorithm::runs::RunCell;
use crate::algorithm::store::{LastTokens, Page, Partition, Slot, Store, Write};
use crate::options::CassandraOptions;

/// The lock table of a cluster, over one driver session.
///
/// Nothing is retried. A write is sent once; a read goes to a second node too, where the first one does not answer.
///
/// The session lives on the client's own thread; one that the program has handed over lives where the program has built it, and is left
/// open. Dropping the table closes the connections of its own.
pub struct Table {
    connection: Connection,
    name: String,
    environment: Arc<dyn Environment>,
    meter: Meter,
    /// True if this client receives hints.
    is_told: bool,
}

impl Table {
    /// Connects to the cluster, sees to the schema and prepares the statements.
    ///
    /// # Errors
    /// - [`Config`](ylock_core::ErrorKind::Config): an option, the login, the certificate or the schema is wrong.
    /// - [`Unavailable`](ylock_core::ErrorKind::Unavailable): no node answered within twice the
    ///   [connect timeout](CassandraOptions::with_connect_timeout), or, where a schema was to be created, a minute.
    pub async fn connect(options: &CassandraOptions, environment: &Arc<dyn Environment>) -> Result<Self> {
        options.check()?;
        let connection = Connection::open(options, environment).await?;
        let name = format!("{}.{}", options.keyspace(), options.table());
        let meter = Meter::of(crate::NAME, options.addresses().join(","));
        Ok(Self { connection, name, environment: Arc::clone(environment), meter, is_told: false })
    }

    /// Marks the client as one that receives hints: its idle rows clear the cells of hints.
    #[must_use]
    pub fn of_told_client(self) -> Self {
        Self { is_told: true, ..self }
    }

    /// Returns the options of this client, with what the table has decided: by which rule its clients go.
    pub fn options(&self) -> &CassandraOptions {
        self.connection.options()
    }

    /// Returns the addresses of the nodes, as the driver knows them.
    ///
    /// # Errors
    /// [`Unavailable`](ylock_core::ErrorKind::Unavailable) if the session was handed over, and has ended with its runtime.
    pub fn nodes(&self) -> Result<Vec<SocketAddr>> {
        let cluster = self.connection.get()?.session.get_cluster_state();
        Ok(cluster
            .get_nodes_info()
            .iter()
            .map(|node| (node.address.ip(), node.address.port()).into())
            .collect())
    }

    pub(crate) fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Sends one request: what is sent by any other way would not be counted.
    async fn send(
        &self,
        operation: &'static str,
        request: impl Future<Output = Result<QueryResult>>,
    ) -> Result<QueryResult> {
        self.meter.measure(&*self.environment, operation, request).await
    }

    /// Sends one statement by itself.
    async fn execute(
        &self,
        operation: &'static str,
        statement: fn(&Statements) -> &PreparedStatement,
        values: impl SerializeRow,
    ) -> Result<QueryResult> {
        let request = async {
            let connected = self.connection.get()?;
            let statement = statement(&connected.statements);
            connected.session.execute_unpaged(statement, values).await.map_err(errors::classify)
        };
        self.send(operation, request).await
    }

    /// Asks the nodes what they tell of themselves.
    pub(crate) async fn diagnose(&self) -> Result<Diagnostics> {
        let connected = self.connection.get()?;
        let asker = Asker { session: &connected.session, profile: &connected.profiles.writes };
        diagnose::diagnose(asker, self.options(), &*self.environment).await
    }

    /// Returns how many requests this client has sent, those of connecting included, by the driver's own counters. A read counts once, also
    /// where it was [sent to a second node](Self::hedged).
    ///
    /// The driver counts by session: if the program has handed its session over, the program's own requests are counted too, and those of
    /// all clients over that session. Then `ylock_store_requests_total` of the crate `ylock-metrics` has the number.
    pub fn requests(&self) -> u64 {
        self.connection.requests()
    }

    /// Returns how many reads were sent to a second node because the first one did not answer at once.
    pub fn hedged(&self) -> u64 {
        self.connection.hedged()
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("name", &self.name).finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for Table {
    async fn write(&self, key: &Key, slot: Slot, write: &Write) -> Result<()> {
        let row = RowValues::new(key, slot, write, self.is_told);
        let claim = write.claim.map(|claim| ClaimValues::new(key, slot, write.stamp, claim));
        let used = write.used.map(|used| (used.claim.mode, values::used(key, used)));
        let request = async {
            let connected = self.connection.get().map_err(Error::without_effect)?;
            let (session, statements) = (&connected.session, &connected.statements);
            match (claim, used) {
                (None, None) => session.execute_unpaged(&statements.row, row).await,
                (Some(claim), None) => session.batch(&statements.claim, (row, claim)).await,
                (None, Some((mode, used))) => session.batch(statements.used(mode), (row, used)).await,
                (Some(claim), Some((mode, used))) => {
                    session.batch(statements.claim_and_used(mode), (row, claim, used)).await
                }
            }
            .map_err(errors::classify)
        };
        self.send("write", request).await.map(drop)
    }

    async fn read(&self, key: &Key) -> Result<Partition> {
        // Unpaged: a later page would be a later read.
        let answer = self.execute("read", |all| &all.read, (key.group(), key.name())).await?;
        rows::partition(key, answer)
    }

    async fn read_last_tokens(&self, key: &Key) -> Result<LastTokens> {
        let operation = "read_last_tokens";
        let answer = self.execute(operation, |all| &all.read_last_tokens, (key.group(), key.name())).await?;
        rows::last_tokens(key, answer)
    }

    async fn keys(&self, after: Option<i64>) -> Result<Page> {
        // No partition is at the smallest position: that is how the ring is made.
        let after = after.unwrap_or(i64::MIN);
        let request = async {
            let connected = self.connection.get()?;
            let statement = self.connection.statement_of_keys().await?;
            connected.session.execute_unpaged(statement, (after,)).await.map_err(errors::classify)
        };
        page::page(self.send("keys", request).await?)
    }

    async fn revoke(&self, key: &Key, slot: Slot, id: AcquisitionId, stamp: i64, ttl: u32) -> Result<()> {
        let values = values::revoke(key, slot, id, stamp, ttl);
        self.execute("revoke", |all| &all.revoke, values).await.map(drop)
    }

    async fn bury(&self, key: &Key, slot: Slot, heartbeat: i64) -> Result<()> {
        self.execute("bury", |all| &all.bury, values::bury(key, slot, heartbeat)).await.map(drop)
    }

    async fn erase(&self, key: &Key, slot: Slot, stamp: i64) -> Result<()> {
        self.execute("erase", |all| &all.erase, values::erase(key, slot, stamp)).await.map(drop)
    }
}

#[async_trait]
impl RunCell for Table {
    async fn read_run(&self, key: &Key) -> Result<Option<String>> {
        let answer = self.execute("read_run", |all| &all.read_run, (key.group(), key.name())).await?;
        rows::run(key, answer)
    }

    async fn write_run(&self, key: &Key, run: &str, stamp: i64, ttl: u32) -> Result<()> {
        self.execute("write_run", |all| &all.write_run, values::run(key, run, stamp, ttl)).await.map(drop)
    }
}

#[async_trait]
impl TimeCell for Table {
    async fn read_time(&self) -> Result<Option<i64>> {
        rows::time(self.execute("read_time", |all| &all.read_time, ()).await?)
    }

    async fn write_time(&self, micros: i64) -> Result<()> {
        self.execute("write_time", |all| &all.write_time, (micros, micros)).await.map(drop)
    }
}
