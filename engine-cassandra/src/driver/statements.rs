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
use crate::options::CassandraOptions;

/// How reads are sent.
#[derive(Debug)]
pub(super) struct Reads {
    pub(super) profile: ExecutionProfileHandle,
    pub(super) hedges: Arc<Hedges>,
}

/// Everything that is ever sent for a lock.
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
    pub(super) async fn prepare(
        session: &Session,
        options: &CassandraOptions,
        reads: &Reads,
    ) -> Result<Self> {
        let table = format!("\"{}\".\"{}\"", options.keyspace(), options.table());
        let row = prepare(session, &row_cql(&table)).await?;
        let claim = prepare(session, &update(&table, "claim_token = ?, claim_mode = ?")).await?;
        let last_read = prepare(session, &update_static(&table, "last_read_token")).await?;
        let last_write = prepare(session, &update_static(&table, "last_write_token")).await?;
        Ok(Self {
            read: prepare_read(session, &read_cql(&table), reads).await?,
            revoke: prepare(session, &update(&table, "revoked = ?")).await?,
            erase: prepare(session, &erase_cql(&table)).await?,
            read_time: prepare_read(session, &read_time_cql(&table), reads).await?,
            write_time: prepare(session, &write_time_cql(&table)).await?,
            claim: batch(&[&row, &claim]),
            used: ByMode { read: batch(&[&row, &last_read]), write: batch(&[&row, &last_write]) },
            claim_and_used: ByMode {
                read: batch(&[&row, &claim, &last_read]),
                write: batch(&[&row, &claim, &last_write]),
            },
            row,
        })
    }

    /// Row and last token.
    pub(super) fn used(&self, mode: Mode) -> &Batch {
        self.used.pick(mode)
    }

    /// Row, claim and last token.
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

/// One mutation of one partition: all of it happens or nothing, in one trip. The first statement tells the driver
/// where the partition is.
fn batch(statements: &[&PreparedStatement]) -> Batch {
    let statements = statements.iter().map(|&statement| statement.clone().into()).collect();
    Batch::new_with_statements(BatchType::Unlogged, statements)
}

/// A statement that the driver sends once, whatever happens: to it no write is idempotent. A copy has the same timestamp, but ends
/// at another time.
async fn prepare(session: &Session, cql: &str) -> Result<PreparedStatement> {
    session.prepare(Statement::new(cql)).await.map_err(errors::prepare)
}

async fn prepare_read(session: &Session, cql: &str, reads: &Reads) -> Result<PreparedStatement> {
    let mut read = prepare(session, cql).await?;
    // What lets the driver send it to a second node.
    read.set_is_idempotent(true);
    read.set_execution_profile_handle(Some(reads.profile.clone()));
    read.set_history_listener(Arc::clone(&reads.hedges) as Arc<dyn HistoryListener>);
    // The columns are named, and Cassandra never changes the type of one; so they need not come with every answer.
    read.set_use_cached_result_metadata(true);
    Ok(read)
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

/// No lock has an empty group. The largest token of a partition is just what a global time is.
const TIME: &str = "lock_group = '' AND lock_name = 'global time'";

fn read_time_cql(table: &str) -> String {
    format!("SELECT last_write_token FROM {table} WHERE {TIME}")
}

fn write_time_cql(table: &str) -> String {
    format!("UPDATE {table} USING TIMESTAMP ? SET last_write_token = ? WHERE {TIME}")
}
