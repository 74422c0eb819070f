//! The server that keeps the locks, as the rest of the engine sees it.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio_postgres::{Error as DriverError, Row};
use ylock_core::Result;
use ylock_core::engine::{Diagnostics, Meter};
use ylock_core::environment::{Environment, Moment};
use ylock_core::server_clock::TellsTime;

use super::calls::{Answer, Call, Statements, Value};
use super::connection::Connection;
use super::connector::Connector;
use super::server::{self, Promises};
use super::session::{Argument, Text};
use super::{diagnose, errors, layout};
use crate::options::PostgresOptions;

pub(super) type Answered = std::result::Result<Vec<Row>, DriverError>;

/// The time for which no waiter is told after the server could not tell one.
const SILENCE: Duration = Duration::from_secs(10);

/// The server's clock.
const CLOCK: &str = "select (extract(epoch from clock_timestamp()) * 1000000)::bigint";

/// The server that keeps the locks; see the [module](self).
#[derive(Debug)]
pub(crate) struct Store {
    pub(super) connector: Arc<Connector>,
    connection: Arc<Connection>,
    statements: Statements,
    requests: AtomicU64,
    /// Until when waiters are not told, in nanoseconds of the environment's clock: the server could not tell them.
    silent_until: AtomicU64,
    request_timeout: Duration,
    meter: Meter,
}

impl Store {
    /// Connects, and checks whether locks can be kept on the server.
    pub(crate) async fn open(options: &PostgresOptions, environment: &Arc<dyn Environment>) -> Result<Self> {
        let connector = Connector::of(options, environment)?;
        server::check(&connector).await?;
        layout::prepare(&connector, options).await?;
        let addresses: Vec<_> = options.addresses().iter().map(ToString::to_string).collect();
        let store = Self {
            connection: Connection::new(&connector),
            connector,
            statements: Statements::of(options.namespace()),
            requests: AtomicU64::new(0),
            silent_until: AtomicU64::new(0),
            request_timeout: options.request_timeout(),
            meter: Meter::of(crate::NAME, addresses.join(",")),
        };
        // A first request that had to connect would give up after the time of a request.
        store.connection.connected().await?;
        Ok(store)
    }

    /// Returns what the server promises, as it was last looked at, or why locks cannot be kept on it as it is now.
    pub(crate) fn promises(&self) -> Result<Promises> {
        self.connector.demands.last()
    }

    /// Looks again at what the server promises.
    pub(crate) async fn look_again(&self) -> Result<()> {
        self.connector.demands.look_again(self).await.map(drop)
    }

    /// Returns how many functions were called.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    pub(crate) fn request_timeout(&self) -> Duration {
        self.request_timeout
    }

    pub(crate) fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Calls a function. An error means: *it may have happened, or still happen*, unless the error
    /// says that [it did not](ylock_core::Error::had_no_effect).
    pub(crate) async fn call(&self, call: Call) -> Result<Answer> {
        let function = call.function;
        let request = pin!(self.send(call));
        let rows = self.meter.measure(&**self.connector.environment(), function.name(), request).await?;
        Ok(Answer::new(rows, function))
    }

    async fn send(&self, mut call: Call) -> Result<Vec<Row>> {
        let until = self.now().plus(self.request_timeout);
        if !call.function.tells() {
            return self.send_once(&call, until).await?.map_err(errors::classify);
        }
        let tells = self.now() >= Moment::from_nanos(self.silent_until.load(Ordering::Relaxed));
        call.values.push(Value::Flag(tells));
        match self.send_once(&call, until).await? {
            // The transaction has changed nothing. A release that failed because a waiter cannot be told would keep the lock closed.
            Err(error) if tells && errors::is_about_telling(&error) => {
                tracing::warn!(
                    error = format!("{:#}", errors::classify(error)),
                    "waiters cannot be told of their turn; they ask"
                );
                self.silent_until.store(self.now().plus(SILENCE).as_nanos(), Ordering::Relaxed);
                call.values.pop();
                call.values.push(Value::Flag(false));
                Box::pin(self.send_once(&call, until)).await?.map_err(errors::classify)
            }
            answer => answer.map_err(errors::classify),
        }
    }

    async fn send_once(&self, call: &Call, until: Moment) -> Result<Answered> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let values: Vec<_> = call.values.iter().map(Value::to_sql).collect();
        let text = Text::Call(call.function, self.statements.of_function(call.function));
        self.connection.query(text, &values, until).await
    }

    /// Asks what the server tells of itself.
    pub(crate) async fn diagnose(&self) -> Result<Diagnostics> {
        diagnose::diagnose(self).await
    }

    /// Sends a statement that is about no lock, over the connection for requests.
    pub(super) async fn ask(&self, statement: &str, arguments: &[Argument<'_>]) -> Result<Vec<Row>> {
        let until = self.now().plus(self.request_timeout);
        self.connection.query(Text::Rare(statement), arguments, until).await?.map_err(errors::classify)
    }

    fn now(&self) -> Moment {
        self.connector.environment().now()
    }
}

impl TellsTime for Store {
    async fn server_time(&self) -> Result<i64> {
        let rows = self.ask(CLOCK, &[]).await?;
        rows.first()
            .and_then(|row| row.try_get(0).ok())
            .ok_or_else(|| errors::unavailable("the server does not tell the time"))
    }
}
