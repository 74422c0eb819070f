//! The accounts in Cassandra: plain reads and plain writes at quorum. Nothing here knows of locks.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::statement::Consistency;
use scylla::statement::prepared::PreparedStatement;
use ylock::url::EngineUrl;

use crate::account::{Account, Debt};

/// Creates the table. Cassandra deletes the accounts after a day.
const TABLE: &str = "CREATE TABLE IF NOT EXISTS accounts (
    run text, name text, balance bigint, moves frozen<map<int, bigint>>, owes frozen<tuple<int, text, bigint, bigint>>,
    PRIMARY KEY ((run, name))) WITH default_time_to_live = 86400";
const READ: &str = "SELECT balance, moves, owes, writetime(balance) FROM accounts WHERE run = ? AND name = ?";
const WRITE: &str =
    "UPDATE accounts USING TIMESTAMP ? SET balance = ?, moves = ?, owes = ? WHERE run = ? AND name = ?";
const SETTLE: &str = "UPDATE accounts USING TIMESTAMP ? SET owes = null WHERE run = ? AND name = ?";

/// A row as the driver reads it.
type Row = (i64, Option<BTreeMap<i32, i64>>, Option<(i32, String, i64, i64)>, i64);

/// The accounts of one run.
#[derive(Debug)]
pub(crate) struct Rows {
    session: Session,
    run: String,
    read: PreparedStatement,
    write: PreparedStatement,
    settle: PreparedStatement,
}

impl Rows {
    /// Connects to the keyspace of the URL, and creates the table if it is not there.
    pub(crate) async fn connect(url: &EngineUrl, run: &str) -> Result<Self> {
        let session = connect(url).await.context("the accounts cannot be reached")?;
        session.use_keyspace(&url.path, true).await?;
        session.query_unpaged(TABLE, ()).await?;
        let [read, write, settle] = [READ, WRITE, SETTLE].map(|text| prepare(&session, text));
        let (read, write, settle) = (read.await?, write.await?, settle.await?);
        Ok(Self { run: run.to_owned(), read, write, settle, session })
    }

    pub(crate) async fn read(&self, name: &str) -> Result<Account> {
        let rows = self.session.execute_unpaged(&self.read, (&self.run, name)).await?.into_rows_result()?;
        let (balance, moves, owes, stamp) =
            rows.single_row::<Row>().with_context(|| format!("no account {name}"))?;
        let owes = owes.map(|(worker, to, amount, count)| Debt { worker, to, amount, count });
        Ok(Account { balance, moves: moves.unwrap_or_default(), owes, stamp })
    }

    /// Writes the whole account. Of two writes Cassandra keeps the one with the larger stamp, in whatever order they arrive.
    pub(crate) async fn write(&self, name: &str, account: &Account, stamp: i64) -> Result<()> {
        let owes = account.owes.as_ref().map(|debt| (debt.worker, &debt.to, debt.amount, debt.count));
        let values = (stamp, account.balance, &account.moves, owes, &self.run, name);
        self.session.execute_unpaged(&self.write, values).await?;
        Ok(())
    }

    /// Deletes the note of what an account owes. The stamp may be that of the write that
    /// made the note: of equal stamps Cassandra prefers the deletion.
    pub(crate) async fn settle(&self, name: &str, stamp: i64) -> Result<()> {
        self.session.execute_unpaged(&self.settle, (stamp, &self.run, name)).await?;
        Ok(())
    }
}

async fn connect(url: &EngineUrl) -> Result<Session> {
    let profile = ExecutionProfile::builder()
        .consistency(Consistency::Quorum)
        .request_timeout(Some(Duration::from_secs(30)))
        .build();
    let mut builder = SessionBuilder::new().default_execution_profile_handle(profile.into_handle());
    for host in &url.hosts {
        builder = builder.known_node(format!("{}:{}", host.name, host.port.unwrap_or(9042)));
    }
    if let (Some(user), Some(password)) = (&url.user, &url.password) {
        builder = builder.user(user, password.reveal());
    }
    Ok(builder.build().await?)
}

async fn prepare(session: &Session, text: &str) -> Result<PreparedStatement> {
    let mut statement = session.prepare(text).await?;
    statement.set_is_idempotent(true);
    Ok(statement)
}
