//! The lock table of a cluster.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use scylla::client::session::Session;
use ylock_core::engine::{AcquisitionId, Meter};
use ylock_core::environment::Environment;
use ylock_core::{Key, Result};

use super::errors::{self, connect};
use super::statements::Statements;
use super::values::{self, ClaimValues, RowValues};
use super::{rows, session};
use crate::algorithm::clock::TimeCell;
use crate::algorithm::store::{Partition, Slot, Store, Write};
use crate::options::{CassandraOptions, SchemaMode};
use crate::schema;

/// The lock table of a cluster, over one driver session.
///
/// Every call is one request to the cluster, sent once: nothing is retried, nothing is sent twice in parallel. Dropping
/// it closes the connections.
pub struct Table {
    session: Session,
    statements: Statements,
    name: String,
    environment: Arc<dyn Environment>,
    meter: Meter,
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
        let session = session::open(options, &**environment).await?;
        let limit = match options.schema() {
            SchemaMode::Check => options.connect_timeout(),
            SchemaMode::Create => schema::CREATE_TIME,
        };
        // A prepared statement waits for every node without a limit of its own.
        let setting_up = async {
            schema::ensure(&session, options, environment).await?;
            Statements::prepare(&session, options).await
        };
        let statements = session::within(&**environment, limit, setting_up)
            .await
            .unwrap_or_else(|| Err(connect::too_slow("the schema could not be read in time", options)))?;
        let name = format!("{}.{}", options.keyspace(), options.table());
        Ok(Self { session, statements, name, environment: Arc::clone(environment), meter: Meter::default() })
    }

    pub(crate) fn meter(&self) -> &Meter {
        &self.meter
    }

    async fn measured<T>(
        &self,
        operation: &'static str,
        request: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        self.meter.measure(&*self.environment, operation, request).await
    }

    /// How many requests this client has sent, those of connecting included.
    pub fn requests(&self) -> u64 {
        let metrics = self.session.get_metrics();
        metrics.get_requests_unpaged_num()
            + metrics.get_requests_manually_paged_num()
            + metrics.get_requests_automatically_paged_num()
    }

    /// The driver's session, for measurements that send statements of their own.
    pub fn session(&self) -> &Session {
        &self.session
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
        let row = RowValues::new(key, slot, write);
        let claim = write.claim.map(|claim| ClaimValues::new(key, slot, write.stamp, claim));
        let used = write.used.map(|used| (used.claim.mode, values::used(key, used)));
        let (session, statements) = (&self.session, &self.statements);
        let request = async {
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
        self.measured("write", request).await.map(drop)
    }

    async fn read(&self, key: &Key) -> Result<Partition> {
        // Unpaged: a later page would be a later read.
        let request = async {
            self.session
                .execute_unpaged(&self.statements.read, (key.group(), key.name()))
                .await
                .map_err(errors::classify)
        };
        rows::partition(key, self.measured("read", request).await?)
    }

    async fn revoke(&self, key: &Key, slot: Slot, id: AcquisitionId, stamp: i64, ttl: u32) -> Result<()> {
        let values = values::revoke(key, slot, id, stamp, ttl);
        let request = async {
            self.session.execute_unpaged(&self.statements.revoke, values).await.map_err(errors::classify)
        };
        self.measured("revoke", request).await.map(drop)
    }

    async fn erase(&self, key: &Key, slot: Slot, stamp: i64) -> Result<()> {
        let values = values::erase(key, slot, stamp);
        let request = async {
            self.session.execute_unpaged(&self.statements.erase, values).await.map_err(errors::classify)
        };
        self.measured("erase", request).await.map(drop)
    }
}

#[async_trait]
impl TimeCell for Table {
    async fn read_time(&self) -> Result<Option<i64>> {
        let request = async {
            self.session.execute_unpaged(&self.statements.read_time, ()).await.map_err(errors::classify)
        };
        rows::time(self.measured("read_time", request).await?)
    }

    async fn write_time(&self, micros: i64) -> Result<()> {
        let values = (micros, micros);
        let request = async {
            self.session.execute_unpaged(&self.statements.write_time, values).await.map_err(errors::classify)
        };
        self.measured("write_time", request).await.map(drop)
    }
}
