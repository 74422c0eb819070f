//! Locks in a transaction that the program has already: feature `tokio-postgres-0_7`, for version 0.7 of the crate `tokio-postgres`.
//!
//! The only part of this crate that shows types of its driver. Programs with another driver call the same functions by SQL, behind `BEGIN`:
//! `ylock.lock_in('accounts', '4711')`, `ylock.assert_holder('accounts', '4711', 123)`. Outside of a transaction block these fail with 25P01.

use tokio_postgres::Transaction;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use ylock_core::{Error, ErrorKind, Key, Result, Token};

use crate::functions::{WRONG_ISOLATION, quoted};

/// The code of the functions for a token that is not that of a holder.
const NOT_THE_HOLDER: &str = "YL003";

/// The locks of one namespace, for transactions of the program.
#[derive(Clone, Debug)]
pub struct InTransaction {
    namespace: String,
}

impl Default for InTransaction {
    fn default() -> Self {
        Self::of_namespace("ylock")
    }
}

impl InTransaction {
    /// Returns the locks of this namespace; see [`with_namespace`](crate::PostgresOptions::with_namespace).
    pub fn of_namespace(namespace: impl Into<String>) -> Self {
        Self { namespace: namespace.into() }
    }

    /// Locks a key for writing until the transaction ends. Returns false if it is held or waited for.
    ///
    /// Excludes those that acquire the key through a client, and is excluded by them. It waits for the end of other transactions that have the key, and
    /// for no lease. There is no lease that could run out, and no token.
    ///
    /// # Fairness
    /// A client that asks for the key meanwhile takes its place in the queue when the transaction has ended: its question comes in short pauses until then.
    ///
    /// # If the lock is lost
    /// It is not, as long as the transaction can commit. A nested transaction is a savepoint: when it is rolled back the lock ends with it, and the outer one goes on
    /// without. A transaction that is prepared (`PREPARE TRANSACTION`) keeps the lock until it is committed or rolled back, over restarts of the server.
    ///
    /// # Errors
    /// [`Unavailable`](ErrorKind::Unavailable) if the server did not do it, and [`Config`](ErrorKind::Config) if there are no functions of ylock or
    /// the role may not call them. The transaction has failed then.
    ///
    /// # Examples
    /// ```no_run
    /// use tokio_postgres::Client;
    /// use ylock::Key;
    /// use ylock::postgres::driver_api::InTransaction;
    ///
    /// # async fn example(client: &mut Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let transaction = client.transaction().await?;
    /// if InTransaction::default().lock(&transaction, &Key::new("accounts", "4711")?).await? {
    ///     transaction.execute("update account set balance = balance - 1 where id = 4711", &[]).await?;
    ///     transaction.commit().await?;
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn lock(&self, transaction: &Transaction<'_>, key: &Key) -> Result<bool> {
        let statement = format!("select {}.try_lock_in($1, $2)", quoted(&self.namespace));
        let (group, name) = (key.group(), key.name());
        let row = transaction.query_typed_one(&statement, &[(&group, Type::TEXT), (&name, Type::TEXT)]).await;
        row.and_then(|row| row.try_get(0)).map_err(|error| failed(error, key))
    }

    /// Checks that this token's holder is valid, and keeps every other contender out until the transaction ends: there is no moment between this check and
    /// the commit.
    ///
    /// The holder's renewals go on meanwhile. The store knows a client's grant, and nothing of hand-overs inside the process: of those it passes
    /// each one's token.
    ///
    /// # If the lock is lost
    /// The next holder is not let in before the transaction has ended, also if the lease is over by then; of a nested transaction, which is a savepoint, before
    /// that is rolled back.
    ///
    /// # Errors
    /// [`Lost`](ErrorKind::Lost) if this is not a holder, any more; otherwise as [`lock`](Self::lock). The transaction has failed then.
    ///
    /// # Examples
    /// ```no_run
    /// use tokio_postgres::Client;
    /// use ylock::Guard;
    /// use ylock::postgres::driver_api::InTransaction;
    ///
    /// # async fn example(client: &mut Client, guard: &Guard) -> Result<(), Box<dyn std::error::Error>> {
    /// let token = guard.token().expect("this engine gives tokens");
    /// let transaction = client.transaction().await?;
    /// InTransaction::default().assert_holder(&transaction, guard.key(), token).await?;
    /// transaction.execute("update job set state = 'done' where id = 4711", &[]).await?;
    /// transaction.commit().await?;
    /// # Ok(()) }
    /// ```
    pub async fn assert_holder(&self, transaction: &Transaction<'_>, key: &Key, token: Token) -> Result<()> {
        let statement = format!("select {}.assert_holder($1, $2, $3)", quoted(&self.namespace));
        let number: i64 = token.get();
        let (group, name) = (key.group(), key.name());
        let values: [(&(dyn ToSql + Sync), Type); 3] =
            [(&group, Type::TEXT), (&name, Type::TEXT), (&number, Type::INT8)];
        transaction.query_typed(&statement, &values).await.map_err(|error| failed(error, key))?;
        Ok(())
    }
}

fn lost(key: &Key) -> Error {
    Error::new(ErrorKind::Lost, "this token is not that of a holder").with_engine(crate::NAME).with_key(key)
}

fn failed(error: tokio_postgres::Error, key: &Key) -> Error {
    let (kind, message) = match error.code() {
        Some(code) if code.code() == NOT_THE_HOLDER => return lost(key).with_source(error),
        Some(&SqlState::UNDEFINED_FUNCTION | &SqlState::INVALID_SCHEMA_NAME) => {
            (ErrorKind::Config, "there are no functions of ylock in this namespace: connect a client once")
        }
        Some(&SqlState::INSUFFICIENT_PRIVILEGE) => (ErrorKind::Config, "the role may not use this namespace"),
        Some(code) if code.code() == WRONG_ISOLATION => {
            (ErrorKind::Config, "locks need transactions that are READ COMMITTED, and this one is not")
        }
        _ => (ErrorKind::Unavailable, "the server did not do it"),
    };
    Error::new(kind, message).with_engine(crate::NAME).with_key(key).with_source(error)
}
