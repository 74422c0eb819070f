//! The statements, prepared once per client.

use std::sync::{Arc, OnceLock};

use scylla::client::execution_profile::ExecutionProfileHandle;
use scylla::client::session::Session;
use scylla::observability::history::HistoryListener;
use scylla::statement::Statement;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;
use ylock_core::{Mode, Result};

use super::columns::{self, Part};
use super::hedges::Hedges;
use super::session::Profiles;
use super::{cql, errors};
use crate::options::CassandraOptions;

/// Prepares statements for one session.
pub(super) struct Preparing<'a> {
    pub(super) session: &'a Session,
    pub(super) profiles: &'a Profiles,
    pub(super) hedges: &'a Arc<Hedges>,
}

/// The statements that are ever sent for a lock.
pub(super) struct Statements {
    pub(super) row: PreparedStatement,
    pub(super) read: PreparedStatement,
    pub(super) read_last_tokens: PreparedStatement,
    pub(super) revoke: PreparedStatement,
    pub(super) bury: PreparedStatement,
    pub(super) erase: PreparedStatement,
    pub(super) read_time: PreparedStatement,
    pub(super) write_time: PreparedStatement,
    pub(super) read_run: PreparedStatement,
    pub(super) write_run: PreparedStatement,
    /// Row and claim.
    pub(super) claim: Batch,
    /// Prepared when it is first needed: programs do not list locks, only those who look after them do.
    keys: OnceLock<PreparedStatement>,
    used: ByMode,
    claim_and_used: ByMode,
}

/// Two batches that differ in which last token they write.
struct ByMode {
    read: Batch,
    write: Batch,
}

impl Statements {
    pub(super) async fn prepare(options: &CassandraOptions, how: &Preparing<'_>) -> Result<Self> {
        let table = name_of(options);
        let row = how.write(&cql::write(&table, columns::ROW)).await?;
        let claim = how.write(&cql::write(&table, &[Part::Claim])).await?;
        let last_read = how.write(&cql::write_static(&table, Part::LastRead)).await?;
        let last_write = how.write(&cql::write_static(&table, Part::LastWrite)).await?;
        Ok(Self {
            read: how.read(&cql::read(&table)).await?,
            read_last_tokens: how.read(&cql::read_last_tokens(&table)).await?,
            keys: OnceLock::new(),
            revoke: how.write(&cql::write(&table, &[Part::Revocation])).await?,
            bury: how.write(&cql::bury(&table)).await?,
            erase: how.write(&cql::erase(&table)).await?,
            read_time: how.read(&cql::read_time(&table)).await?,
            write_time: how.write(&cql::write_time(&table)).await?,
            read_run: how.read(&cql::read_run(&table)).await?,
            write_run: how.write(&cql::write_static(&table, Part::LastRun)).await?,
            claim: how.batch(&[&row, &claim]),
            used: ByMode { read: how.batch(&[&row, &last_read]), write: how.batch(&[&row, &last_write]) },
            claim_and_used: ByMode {
                read: how.batch(&[&row, &claim, &last_read]),
                write: how.batch(&[&row, &claim, &last_write]),
            },
            row,
        })
    }

    /// Returns the statement that reads a page of locks. Two tasks that need it first may both prepare it: none waits for the other, whose
    /// runtime may stand still.
    pub(super) async fn keys(
        &self,
        options: &CassandraOptions,
        how: &Preparing<'_>,
    ) -> Result<&PreparedStatement> {
        if let Some(prepared) = self.keys.get() {
            return Ok(prepared);
        }
        let prepared = how.page(&cql::keys(&name_of(options))).await?;
        Ok(self.keys.get_or_init(|| prepared))
    }

    /// Returns the batch of row and last token.
    pub(super) fn used(&self, mode: Mode) -> &Batch {
        self.used.pick(mode)
    }

    /// Returns the batch of row, claim and last token.
    pub(super) fn claim_and_used(&self, mode: Mode) -> &Batch {
        self.claim_and_used.pick(mode)
    }
}

fn name_of(options: &CassandraOptions) -> String {
    format!("\"{}\".\"{}\"", options.keyspace(), options.table())
}

impl ByMode {
    fn pick(&self, mode: Mode) -> &Batch {
        match mode {
            Mode::Read => &self.read,
            Mode::Write => &self.write,
        }
    }
}

impl Preparing<'_> {
    /// Prepares a statement that the driver sends once, whatever happens: to the driver no write is idempotent. A copy would have the
    /// same timestamp, but end at another time.
    async fn write(&self, cql: &str) -> Result<PreparedStatement> {
        self.prepare(cql, &self.profiles.writes).await
    }

    async fn read(&self, cql: &str) -> Result<PreparedStatement> {
        let mut read = self.prepare(cql, &self.profiles.reads).await?;
        // What lets the driver send it to a second node.
        read.set_is_idempotent(true);
        read.set_history_listener(Arc::clone(self.hedges) as Arc<dyn HistoryListener>);
        // The columns are named, and Cassandra never changes the type of one; so they need not come with every answer.
        read.set_use_cached_result_metadata(true);
        Ok(read)
    }

    /// Prepares a statement that reads parts of many partitions.
    async fn page(&self, cql: &str) -> Result<PreparedStatement> {
        let mut page = self.prepare(cql, &self.profiles.pages).await?;
        page.set_use_cached_result_metadata(true);
        Ok(page)
    }

    async fn prepare(&self, cql: &str, profile: &ExecutionProfileHandle) -> Result<PreparedStatement> {
        let mut statement = self.session.prepare(Statement::new(cql)).await.map_err(errors::prepare)?;
        statement.set_execution_profile_handle(Some(profile.clone()));
        Ok(statement)
    }

    /// Returns one mutation of one partition: all of it happens or nothing, in one trip. The first statement tells the driver where the
    /// partition is.
    fn batch(&self, statements: &[&PreparedStatement]) -> Batch {
        let statements = statements.iter().map(|&statement| statement.clone().into()).collect();
        let mut batch = Batch::new_with_statements(BatchType::Unlogged, statements);
        batch.set_execution_profile_handle(Some(self.profiles.writes.clone()));
        batch
    }
}
