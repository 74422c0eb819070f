//! The connection to one server, for requests: made again whenever it broke.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::{AsyncPushSender, MultiplexedConnection};
use redis::{Cmd, FromRedisValue, Pipeline, RedisError, RedisResult, Value};
use tokio::sync::Mutex as AsyncMutex;
use ylock_core::environment::Moment;
use ylock_core::{Error, Result};

use super::access::Access;
use super::errors::{self, Redirection};
use super::scripts::{self, Call};
use super::sentinel::Sentinels;
use super::server;
use crate::options::Address;

/// Where the server is.
#[derive(Debug)]
pub(super) enum Whereabouts {
    Known(Address),
    /// It changes, and they know.
    Asked(Arc<Sentinels>),
}

/// See the [module](self).
pub(super) struct Connection {
    access: Arc<Access>,
    whereabouts: Whereabouts,
    live: Mutex<Option<Live>>,
    /// Only one connects at a time; the others wait for what comes of it. When it last failed, and how.
    connecting: AsyncMutex<Option<(Moment, Error)>>,
}

/// After a connection could not be made nobody tries again for so long: very many may want one when a server is back.
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Clone)]
struct Live {
    connection: MultiplexedConnection,
    /// Of one life of the connection, so that nobody throws away a newer one.
    address: Arc<Address>,
}

/// What became of a call.
pub(super) enum Outcome {
    /// And whether enough replicas have it.
    Answered(Value, bool),
    /// Another server keeps the lock. Nothing was done.
    Elsewhere(Redirection),
}

/// How a call is sent, apart from what it says.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Manner {
    /// How many replicas must have what it writes.
    pub(super) replicas: u32,
    /// It was sent here by a server that is giving the lock away to this one.
    pub(super) asking: bool,
}

impl Connection {
    pub(super) fn new(access: &Arc<Access>, whereabouts: Whereabouts) -> Self {
        Self {
            access: Arc::clone(access),
            whereabouts,
            live: Mutex::new(None),
            connecting: AsyncMutex::new(None),
        }
    }

    /// Connects, and looks whether the server will do. On a connection of its own: one that is too old would refuse the scripts,
    /// and say something else.
    pub(super) async fn check(&self, kind: server::Kind) -> Result<()> {
        let address = self.where_it_is().await?;
        let mut connection = self.access.connect(&address).await?;
        server::check(&mut connection, &address, kind).await
    }

    /// Calls a script. An error means: *it may have happened, or still happen*.
    pub(super) async fn call(&self, call: &Call, manner: Manner) -> Result<Outcome> {
        let mut live = self.live().await?;
        let mut answer = self.send(&mut live.connection, call.by_hash(), manner).await;
        if answer.as_ref().is_err_and(errors::is_no_script) {
            // A restart, or somebody emptied the cache.
            answer = self.send(&mut live.connection, &call.by_text(), manner).await;
        }
        match answer {
            Ok((value, reached)) => Ok(Outcome::Answered(value, reached)),
            Err(error) => match Redirection::of(&error, &live.address) {
                Some(redirection) => Ok(Outcome::Elsewhere(redirection)),
                None => Err(self.failed(&live, error)),
            },
        }
    }

    async fn send(
        &self,
        connection: &mut MultiplexedConnection,
        script: &Cmd,
        manner: Manner,
    ) -> RedisResult<(Value, bool)> {
        if manner.replicas == 0 && !manner.asking {
            return Ok((script.query_async(connection).await?, true));
        }
        let mut together = redis::pipe();
        together.ignore_errors();
        if manner.asking {
            together.cmd("ASKING").ignore();
        }
        together.add_command(script.clone());
        if manner.replicas > 0 {
            // On the connection that wrote, because Redis counts by connection; for half of the time of a request, so that the
            // answer comes in time.
            let patience = self.access.request_timeout / 2;
            together.cmd("WAIT").arg(manner.replicas).arg(patience.as_millis() as u64);
        }
        let mut answers = together.query_async::<Vec<Value>>(connection).await?.into_iter();
        let mut answer = || answers.next().unwrap_or(Value::Nil).extract_error();
        let value = answer()?;
        let reached = manner.replicas == 0 || u32::from_redis_value(answer()?)? >= manner.replicas;
        Ok((value, reached))
    }

    /// The server's clock, in microseconds since 1970.
    pub(super) async fn server_time(&self) -> Result<i64> {
        let mut question = redis::pipe();
        question.cmd("TIME");
        let ((seconds, micros),): ((i64, i64),) = self.ask(&question).await?;
        Ok(seconds.saturating_mul(1_000_000).saturating_add(micros))
    }

    /// Asks what changes nothing.
    pub(super) async fn ask<T: FromRedisValue>(&self, questions: &Pipeline) -> Result<T> {
        let mut live = self.live().await?;
        questions.query_async(&mut live.connection).await.map_err(|error| self.failed(&live, error))
    }

    /// A connection for messages to the server that the requests go to.
    pub(super) async fn listen(
        &self,
        hear: impl AsyncPushSender,
    ) -> Result<(Arc<Address>, MultiplexedConnection)> {
        let address = self.live().await?.address;
        let connection = self.access.listen(&address, hear).await?;
        Ok((address, connection))
    }

    /// Where the requests go now. The same value only for as long as the connection lives.
    pub(super) fn address(&self) -> Option<Arc<Address>> {
        self.slot().as_ref().map(|live| Arc::clone(&live.address))
    }

    /// Goes elsewhere from now on, if the server is another one.
    pub(super) fn moved_to(&self, address: &Address) {
        let mut slot = self.slot();
        if slot.as_ref().is_some_and(|live| *live.address != *address) {
            *slot = None;
        }
    }

    async fn live(&self) -> Result<Live> {
        if let Some(live) = self.slot().clone() {
            return Ok(live);
        }
        let mut failed = self.connecting.lock().await;
        if let Some(live) = self.slot().clone() {
            return Ok(live);
        }
        if let Some((then, error)) = &*failed
            && self.access.environment.now().since(*then) < PAUSE
        {
            return Err(error.clone());
        }
        let connected = self.connect().await;
        *failed = connected.as_ref().err().map(|error| (self.access.environment.now(), error.clone()));
        connected
    }

    async fn connect(&self) -> Result<Live> {
        let address = self.where_it_is().await?;
        let mut connection = self.access.connect(&address).await?;
        for script in scripts::ALL {
            script.load().exec_async(&mut connection).await.map_err(errors::classify)?;
        }
        let live = Live { connection, address: Arc::new(address) };
        *self.slot() = Some(live.clone());
        Ok(live)
    }

    async fn where_it_is(&self) -> Result<Address> {
        match &self.whereabouts {
            Whereabouts::Known(address) => Ok(address.clone()),
            Whereabouts::Asked(sentinels) => sentinels.master().await,
        }
    }

    fn failed(&self, live: &Live, error: RedisError) -> Error {
        if errors::ends_connection(&error) {
            let mut slot = self.slot();
            if slot.as_ref().is_some_and(|now| Arc::ptr_eq(&now.address, &live.address)) {
                *slot = None;
            }
        }
        errors::classify(error)
    }

    fn slot(&self) -> MutexGuard<'_, Option<Live>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("whereabouts", &self.whereabouts).finish_non_exhaustive()
    }
}
