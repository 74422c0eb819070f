//! The connection to one server, for requests: made again whenever it broke.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join;
use redis::aio::{AsyncPushSender, MultiplexedConnection};
use redis::{Cmd, FromRedisValue, Pipeline, RedisError, RedisResult, Value};
use tokio::sync::Mutex as AsyncMutex;
use ylock_core::connection::{Connected, Live, SharedConnection, Timeouts, driven};
use ylock_core::environment::Moment;
use ylock_core::url::Address;
use ylock_core::{Error, Result};

use super::connector::Connector;
use super::errors::{self, Redirection};
use super::eviction::Eviction;
use super::scripts::{self, Call};
use super::sentinel::Sentinels;
use super::{server, version};

/// The way to the address of the server.
#[derive(Debug)]
pub(super) enum Endpoint {
    Known(Address),
    /// The address changes, and the Sentinels know it.
    Asked(Arc<Sentinels>),
}

/// The connection to one server; see the [module](self).
pub(super) struct Connection {
    pub(super) connector: Arc<Connector>,
    endpoint: Endpoint,
    shared: SharedConnection<Opened>,
    /// Held by the one task that makes a connection for messages to this server, or subscribes; other tasks wait for the result.
    pub(super) subscribing: AsyncMutex<()>,
    /// Whether the server keeps locks.
    pub(super) eviction: Eviction,
    /// Whether the server has said, when the last connection was made, that it keeps the version of this client.
    pub(super) says_version: AtomicBool,
}

/// One life of the connection, and the address that it goes to.
#[derive(Clone)]
pub(super) struct Opened {
    pub(super) connection: MultiplexedConnection,
    pub(super) address: Arc<Address>,
}

impl Connected for Opened {}

/// A time so short that it does not count.
const TICK: Duration = Duration::from_millis(1);

/// The answer to a call.
pub(super) struct Answered {
    pub(super) value: Value,
    /// True if enough replicas have what the call wrote.
    pub(super) reached: bool,
    /// True if the call was sent on to this server; see [`CallOptions::asking`].
    pub(super) sent_on: bool,
}

/// The outcome of a call.
pub(super) enum Outcome {
    Answered(Answered),
    /// Another server keeps the lock; this one has done nothing.
    Elsewhere(Redirection),
}

/// How a call is sent, whatever it says.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallOptions {
    /// The end of the wait for an answer, connecting and asking other servers included.
    pub(super) until: Moment,
    /// The number of replicas that must have what the call writes.
    pub(super) replicas: u32,
    /// True if the call was sent on to this server by one that is giving the lock away to it.
    pub(super) asking: bool,
}

impl Connection {
    pub(super) fn new(connector: &Arc<Connector>, endpoint: Endpoint) -> Arc<Self> {
        let timeouts = Timeouts { connect: connector.connect_timeout, request: connector.request_timeout };
        Arc::new(Self {
            connector: Arc::clone(connector),
            endpoint,
            shared: SharedConnection::new(connector.environment(), timeouts),
            subscribing: AsyncMutex::new(()),
            eviction: Eviction::default(),
            says_version: AtomicBool::new(false),
        })
    }

    /// Connects, and checks whether locks can be kept on the server. On a connection of its own: a server that is too old would refuse the
    /// scripts, with an error that says something else.
    pub(super) async fn check(&self, kind: server::Kind) -> Result<()> {
        let address = self.where_it_is().await?;
        let mut connection = self.connector.connect(&address).await?;
        self.connector.in_time(server::check(&mut connection, &address, kind)).await
    }

    /// Calls a script. An error means: *it may have happened, or still happen*, unless the error
    /// says that [it did not](Error::had_no_effect).
    pub(super) async fn call(self: &Arc<Self>, call: &Call, options: CallOptions) -> Result<Outcome> {
        let mut live = match self.shared.here() {
            Some(live) => live,
            None => Box::pin(self.before_sending(options.until, self.live())).await?,
        };
        if call.must_be_kept && self.eviction.evicts() {
            Box::pin(self.before_sending(options.until, self.keeps_locks())).await?;
        }
        let sent = self.connector.environment().now();
        let left = options.until.since(sent);
        let elsewhere = self.shared.elsewhere(&live);
        let answer = {
            // Pinned, and what is rare in boxes: this is a part of the future of every request.
            let answer = pin!(self.send_script(&mut live.connection, call, options));
            let answer = driven(elsewhere, answer);
            if self.connector.driver_has_timeout() && left + TICK >= self.connector.request_timeout {
                // The driver's own timeout ends the wait in time.
                answer.await
            } else {
                Box::pin(self.connector.until(options.until, answer)).await
            }
        };
        if answer.is_err() && left >= self.connector.request_timeout / 2 {
            // Not if most of the time went by before the call was sent: then nothing is known of this connection.
            self.shared.forget(&live);
        }
        match answer? {
            Ok((value, reached)) => {
                if call.must_be_kept {
                    self.was_kept(&live, &value)?;
                }
                Ok(Outcome::Answered(Answered { value, reached, sent_on: options.asking }))
            }
            Err(error) => match Redirection::of(&error, &live.address) {
                Some(redirection) => Ok(Outcome::Elsewhere(redirection)),
                None => Err(self.failed(&live, error)),
            },
        }
    }

    /// Waits until `end` for what a request needs before it is sent. Whatever goes wrong until
    /// then, the request has had no effect.
    async fn before_sending<T>(&self, end: Moment, needed: impl Future<Output = Result<T>>) -> Result<T> {
        self.connector.until(end, needed).await.map_err(Error::without_effect)
    }

    async fn send_script(
        &self,
        connection: &mut MultiplexedConnection,
        call: &Call,
        options: CallOptions,
    ) -> RedisResult<(Value, bool)> {
        match self.send(connection, call.by_hash(), options).await {
            // The server was restarted, or an operator emptied its cache of scripts.
            Err(error) if errors::is_no_script(&error) => {
                Box::pin(self.send(connection, &call.by_text(), options)).await
            }
            answer => answer,
        }
    }

    async fn send(
        &self,
        connection: &mut MultiplexedConnection,
        script: &Cmd,
        options: CallOptions,
    ) -> RedisResult<(Value, bool)> {
        if options.replicas == 0 && !options.asking {
            return Ok((script.query_async(connection).await?, true));
        }
        Box::pin(self.send_together(connection, script, options)).await
    }

    /// Sends a script with what must go beside it on the same connection.
    async fn send_together(
        &self,
        connection: &mut MultiplexedConnection,
        script: &Cmd,
        options: CallOptions,
    ) -> RedisResult<(Value, bool)> {
        let mut together = redis::pipe();
        together.ignore_errors();
        if options.asking {
            together.cmd("ASKING").ignore();
        }
        together.add_command(script.clone());
        if options.replicas > 0 {
            // On the connection that wrote, because Redis counts by connection; for half of the request timeout, so that the answer
            // comes in time.
            let patience = self.connector.request_timeout / 2;
            together.cmd("WAIT").arg(options.replicas).arg(patience.as_millis() as u64);
        }
        let mut answers = together.query_async::<Vec<Value>>(connection).await?.into_iter();
        let mut answer = || answers.next().unwrap_or(Value::Nil).extract_error();
        let value = answer()?;
        let reached = options.replicas == 0 || u32::from_redis_value(answer()?)? >= options.replicas;
        Ok((value, reached))
    }

    /// Returns the server's clock, in microseconds since 1970.
    pub(super) async fn server_time(self: &Arc<Self>) -> Result<i64> {
        let mut question = redis::pipe();
        question.cmd("TIME");
        let ((seconds, micros),): ((i64, i64),) = self.ask(&question).await?;
        Ok(seconds.saturating_mul(1_000_000).saturating_add(micros))
    }

    /// Returns whether what is sent is encrypted.
    pub(super) fn is_encrypted(&self) -> bool {
        self.connector.is_encrypted()
    }

    /// Asks questions that change nothing on the server.
    pub(super) async fn ask<T: FromRedisValue>(self: &Arc<Self>, questions: &Pipeline) -> Result<T> {
        let mut live = self.live().await?;
        let answer = self.connector.answer(questions.query_async(&mut live.connection)).await;
        answer.map_err(|error| self.failed(&live, error))
    }

    /// Opens a connection for messages.
    pub(super) async fn listen(
        &self,
        address: &Address,
        hear: impl AsyncPushSender,
    ) -> Result<MultiplexedConnection> {
        self.connector.listen(address, hear).await
    }

    /// Subscribes to a channel on a connection for messages.
    pub(super) async fn subscribe(
        &self,
        to: &mut MultiplexedConnection,
        word: &str,
        channel: &str,
    ) -> RedisResult<()> {
        let mut command = redis::cmd(word);
        command.arg(channel);
        self.connector.answer(command.exec_async(to)).await
    }

    /// Waits until there is a connection for requests, and returns the address that it goes to.
    pub(super) async fn connected(self: &Arc<Self>) -> Result<Arc<Address>> {
        Ok(Arc::clone(&self.live().await?.address))
    }

    /// Returns the address that requests go to now.
    pub(super) fn address(&self) -> Option<Arc<Address>> {
        self.shared.current().map(|live| Arc::clone(&live.address))
    }

    /// Returns whether this is still the connection that requests use.
    pub(super) fn is_current(&self, live: &Live<Opened>) -> bool {
        self.shared.is_current(live)
    }

    /// Forgets the connection if it does not go to this address: the server is another one from now on.
    pub(super) fn moved_to(&self, address: &Address) {
        self.shared.forget_if(|live| *live.address != *address);
    }

    pub(super) async fn live(self: &Arc<Self>) -> Result<Live<Opened>> {
        self.shared
            .get(|| {
                let connection = Arc::clone(self);
                Box::pin(async move { connection.connect().await })
            })
            .await
    }

    async fn connect(&self) -> Result<()> {
        let address = self.where_it_is().await?;
        let mut connection = self.connector.connect(&address).await?;
        for script in scripts::LOADED {
            let load = script.load();
            self.connector.answer(load.exec_async(&mut connection)).await.map_err(errors::classify)?;
        }
        // Before the first request for a lock: another server may have taken over, or this one have been started anew.
        // Both at once, so that they cost one trip.
        let (mut also, connector) = (connection.clone(), &self.connector);
        let (said, is_own) = join(
            self.eviction.ask(connector, &address, &mut connection),
            version::check(connector, &mut also),
        )
        .await;
        said.map_err(errors::classify)?;
        self.says_version.store(is_own?, Ordering::Relaxed);
        self.shared.put(Opened { connection, address: Arc::new(address) });
        Ok(())
    }

    async fn where_it_is(&self) -> Result<Address> {
        match &self.endpoint {
            Endpoint::Known(address) => Ok(address.clone()),
            Endpoint::Asked(sentinels) => sentinels.master().await,
        }
    }

    pub(super) fn failed(&self, live: &Live<Opened>, error: RedisError) -> Error {
        if errors::ends_connection(&error) {
            self.shared.forget(live);
        }
        errors::classify(error)
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}
