//! The statements, prepared once per client.

use std::sync::Arc;

use scylla::client::execution_profile::ExecutionProfileHandle;
use scylla::client::session::Session;
use scylla::observability::history::HistoryListener;
use scylla::statement::Statement;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;
use ylock_core::{Mode, Result};

use super::errors;
use super::hedges::Hedges;
use super::session::Profiles;
use crate::options::CassandraOptions;

/// Prepares statements for one session.
pub(super) struct Preparing<'a> {
    pub(super) session: &'a Session,
    pub(super) profiles: Profiles,
    pub(super) hedges: &'a Arc<Hedges>,
}

/// The statements that are ever sent for a lock.
///
/// A row is written with `UPDATE`, not `INSERT`: an insert leaves a marker that keeps the row alive after its cells
/// have expired.
pub(super) struct Statements {
    pub(super) row: PreparedStatement,
    pub(super) read: PreparedStatement,
    pub(super) revoke: PreparedStatement,
    pub(super) erase: PreparedStatement,
    pub(super) read_time: PreparedStatement,
    pub(super) write_time: PreparedStatement,
    /// Row and claim.
    pub(super) claim: Batch,
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
        let table = format!("\"{}\".\"{}\"", options.keyspace(), options.table());
        let row = how.write(&row_cql(&table)).await?;
        let claim = how.write(&update(&table, "claim_token = ?, claim_mode = ?")).await?;
        let last_read = how.write(&update_static(&table, "last_read_token")).await?;
        let last_write = how.write(&update_static(&table, "last_write_token")).await?;
        Ok(Self {
            read: how.read(&read_cql(&table)).await?,
            revoke: how.write(&update(&table, "revoked = ?")).await?,
            erase: how.write(&erase_cql(&table)).await?,
            read_time: how.read(&read_time_cql(&table)).await?,
            write_time: how.write(&write_time_cql(&table)).await?,
            claim: how.batch(&[&row, &claim]),
            used: ByMode { read: how.batch(&[&row, &last_read]), write: how.batch(&[&row, &last_write]) },
            claim_and_used: ByMode {
                read: how.batch(&[&row, &claim, &last_read]),
                write: how.batch(&[&row, &claim, &last_write]),
            },
            row,
        })
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

fn row_cql(table: &str) -> String {
    update(
        table,
        "acquisition = ?, mode = ?, state = ?, ticket = ?, owner = ?, client = ?, since = ?, lease_millis = ?, heartbeat = ?, \
         next_acquisition = ?, next_owner = ?, next_mode = ?, next_ticket = ?",
    )
}

fn update(table: &str, cells: &str) -> String {
    format!(
        "UPDATE {table} USING TIMESTAMP ? AND TTL ? SET {cells} WHERE lock_group = ? AND lock_name = ? AND slot = ?"
    )
}

fn update_static(table: &str, column: &str) -> String {
    format!(
        "UPDATE {table} USING TIMESTAMP ? AND TTL ? SET {column} = ? WHERE lock_group = ? AND lock_name = ?"
    )
}

fn erase_cql(table: &str) -> String {
    format!("DELETE FROM {table} USING TIMESTAMP ? WHERE lock_group = ? AND lock_name = ? AND slot = ?")
}

fn read_cql(table: &str) -> String {
    format!(
        "SELECT slot, acquisition, mode, state, ticket, owner, client, since, lease_millis, next_acquisition, next_owner, next_mode, \
         next_ticket, claim_token, claim_mode, revoked, last_write_token, last_read_token \
         FROM {table} WHERE lock_group = ? AND lock_name = ?"
    )
}

/// The place of the global time. No lock has an empty group; and the largest token of a partition is just what a global time is.
const TIME: &str = "lock_group = '' AND lock_name = 'global time'";

fn read_time_cql(table: &str) -> String {
    format!("SELECT last_write_token FROM {table} WHERE {TIME}")
}

fn write_time_cql(table: &str) -> String {
    format!("UPDATE {table} USING TIMESTAMP ? SET last_write_token = ? WHERE {TIME}")
}
