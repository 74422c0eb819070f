//! The accounts, in the store that also has the locks. Nothing here knows of locks.

#[cfg(feature = "cassandra")]
mod cassandra;
mod files;

use anyhow::{Result, bail};
use ylock::url::EngineUrl;

use crate::account::Account;

/// The accounts of one run: plain reads and plain writes. Of two writes of an account the one with the larger stamp stays, in whatever order they
/// are made.
#[derive(Debug)]
pub(crate) enum Bank {
    #[cfg(feature = "cassandra")]
    Cassandra(Box<cassandra::Rows>),
    Files(files::Files),
}

impl Bank {
    /// Connects to the store of this URL.
    pub(crate) async fn connect(url: &str, run: &str) -> Result<Self> {
        let url = EngineUrl::parse(url)?;
        match url.scheme.as_str() {
            "file" => files::Files::open(&url, run).map(Self::Files),
            #[cfg(feature = "cassandra")]
            "cassandra" => Ok(Self::Cassandra(Box::new(cassandra::Rows::connect(&url, run).await?))),
            other => {
                bail!(
                    "the ledger keeps accounts in file:// and, with --features cassandra, in cassandra://, not in {other}://"
                )
            }
        }
    }

    pub(crate) async fn read(&self, name: &str) -> Result<Account> {
        match self {
            #[cfg(feature = "cassandra")]
            Self::Cassandra(rows) => rows.read(name).await,
            Self::Files(files) => files.read(name),
        }
    }

    /// Writes the whole account.
    pub(crate) async fn write(&self, name: &str, account: &Account, stamp: i64) -> Result<()> {
        match self {
            #[cfg(feature = "cassandra")]
            Self::Cassandra(rows) => rows.write(name, account, stamp).await,
            Self::Files(files) => files.write(name, account, stamp),
        }
    }

    /// Deletes the note of what an account owes. The stamp may be that of the write that made the note.
    pub(crate) async fn settle(&self, name: &str, stamp: i64) -> Result<()> {
        match self {
            #[cfg(feature = "cassandra")]
            Self::Cassandra(rows) => rows.settle(name, stamp).await,
            Self::Files(files) => files.settle(name, stamp),
        }
    }

    /// Removes the accounts of this run, where they do not go by themselves.
    pub(crate) fn clear(&self) {
        match self {
            #[cfg(feature = "cassandra")]
            Self::Cassandra(_) => {}
            Self::Files(files) => files.clear(),
        }
    }
}
