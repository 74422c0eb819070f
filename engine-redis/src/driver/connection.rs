//! The connection for requests: made again whenever it broke.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::{MultiplexedConnection, PubSub};
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo, RedisError, Value,
};
use tokio::sync::Mutex as AsyncMutex;
use ylock_core::environment::Environment;
use ylock_core::{Error, ErrorKind, Result};

use super::errors;
use super::scripts::{self, Answer, Call};
use super::server;
use crate::options::RedisOptions;

/// See the [module](self).
pub(crate) struct Connection {
    client: Client,
    address: String,
    config: AsyncConnectionConfig,
    connect_timeout: Duration,
    request_timeout: Duration,
    environment: Arc<dyn Environment>,
    live: Mutex<Option<Live>>,
    /// Only one connects at a time; the others wait for what comes of it.
    connecting: AsyncMutex<()>,
    requests: AtomicU64,
}

#[derive(Clone)]
struct Live {
    connection: MultiplexedConnection,
    /// Which one this is, so that nobody throws away a newer one.
    number: u64,
}

impl Connection {
    /// Connects, and looks whether the server will do.
    pub(crate) async fn open(options: &RedisOptions, environment: &Arc<dyn Environment>) -> Result<Self> {
        let connection = Self {
            client: client(options)?,
            address: options.address(),
            config: AsyncConnectionConfig::new()
                .set_connection_timeout(Some(options.connect_timeout()))
                .set_response_timeout(Some(options.request_timeout())),
            connect_timeout: options.connect_timeout(),
            request_timeout: options.request_timeout(),
            environment: Arc::clone(environment),
            live: Mutex::new(None),
            connecting: AsyncMutex::new(()),
            requests: AtomicU64::new(0),
        };
        let mut live = connection.live().await?;
        server::check(&mut live.connection, &connection.address).await?;
        Ok(connection)
    }

    /// How many scripts were called.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Calls a script. An error means: *it may have happened, or still happen*.
    pub(crate) async fn call(&self, call: Call) -> Result<Answer> {
        let mut live = self.live().await?;
        self.requests.fetch_add(1, Ordering::Relaxed);
        let mut answer = call.by_hash().query_async(&mut live.connection).await;
        if answer.as_ref().is_err_and(errors::is_no_script) {
            // A restart, or somebody emptied the cache.
            answer = call.by_text().query_async(&mut live.connection).await;
        }
        let value = answer.map_err(|error| self.failed(&live, error))?;
        Ok(Answer::new(value, call.script))
    }

    fn failed(&self, live: &Live, error: RedisError) -> Error {
        if errors::ends_connection(&error) {
            self.forget(live.number);
        }
        errors::classify(error)
    }

    /// Calls a script that writes, and waits until so many replicas have what it wrote; on the connection that wrote it, because
    /// Redis counts by connection. Answers also whether they have it.
    pub(crate) async fn call_replicated(&self, call: Call, replicas: u32) -> Result<(Answer, bool)> {
        let mut live = self.live().await?;
        self.requests.fetch_add(1, Ordering::Relaxed);
        let asked = async |connection: &mut MultiplexedConnection, script| {
            // Half of the time of a request, so that the answer comes in time.
            let patience = self.request_timeout / 2;
            let mut both = redis::pipe();
            both.add_command(script).cmd("WAIT").arg(replicas).arg(patience.as_millis() as u64);
            both.query_async::<(Value, u32)>(connection).await
        };
        let mut answer = asked(&mut live.connection, call.by_hash()).await;
        if answer.as_ref().is_err_and(errors::is_no_script) {
            answer = asked(&mut live.connection, call.by_text()).await;
        }
        let (value, reached) = answer.map_err(|error| self.failed(&live, error))?;
        Ok((Answer::new(value, call.script), reached >= replicas))
    }

    /// The server's clock, in microseconds since 1970.
    pub(crate) async fn server_time(&self) -> Result<i64> {
        let mut live = self.live().await?;
        let (seconds, micros): (i64, i64) =
            redis::cmd("TIME").query_async(&mut live.connection).await.map_err(errors::classify)?;
        Ok(seconds.saturating_mul(1_000_000).saturating_add(micros))
    }

    /// A connection of its own for messages.
    pub(super) async fn for_messages(&self) -> Result<PubSub> {
        let opening = self.client.get_async_pubsub();
        self.in_time(opening).await?.map_err(errors::classify)
    }

    async fn live(&self) -> Result<Live> {
        if let Some(live) = self.current() {
            return Ok(live);
        }
        let _only_one = self.connecting.lock().await;
        if let Some(live) = self.current() {
            return Ok(live);
        }
        let opening = self.client.get_multiplexed_async_connection_with_config(&self.config);
        let mut connection = self.in_time(opening).await?.map_err(errors::classify)?;
        for script in scripts::ALL {
            script.load().exec_async(&mut connection).await.map_err(errors::classify)?;
        }
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let live = Live { connection, number };
        *self.slot() = Some(live.clone());
        Ok(live)
    }

    async fn in_time<T>(&self, future: impl Future<Output = T>) -> Result<T> {
        tokio::select! {
            biased;
            done = future => Ok(done),
            () = self.environment.sleep(self.connect_timeout) => {
                let message = format!("the server at {} cannot be reached", self.address);
                Err(Error::new(ErrorKind::Unavailable, message).with_engine(crate::NAME))
            }
        }
    }

    fn current(&self) -> Option<Live> {
        self.slot().clone()
    }

    fn forget(&self, number: u64) {
        let mut slot = self.slot();
        if slot.as_ref().is_some_and(|live| live.number == number) {
            *slot = None;
        }
    }

    fn slot(&self) -> MutexGuard<'_, Option<Live>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(not(feature = "tls"))]
fn client(options: &RedisOptions) -> Result<Client> {
    Client::open(info(options)?).map_err(errors::classify)
}

#[cfg(feature = "tls")]
fn client(options: &RedisOptions) -> Result<Client> {
    let info = info(options)?;
    if !options.tls() {
        return Client::open(info).map_err(errors::classify);
    }
    // The driver takes the one that the program has chosen, and would panic if nobody has. An error says that somebody has.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let root_cert = options.authority().map(authority).transpose()?;
    let certificates = redis::TlsCertificates { client_tls: None, root_cert };
    Client::build_with_tls(info, certificates).map_err(errors::classify)
}

#[cfg(feature = "tls")]
fn authority(file: &std::path::Path) -> Result<Vec<u8>> {
    std::fs::read(file).map_err(|error| {
        let message = format!("tls_ca={} cannot be read", file.display());
        Error::new(ErrorKind::Config, message).with_engine(crate::NAME).with_source(error)
    })
}

fn info(options: &RedisOptions) -> Result<redis::ConnectionInfo> {
    let (host, port) = options.host();
    let host = host.to_owned();
    let address = match options.tls() {
        true => ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None },
        false => ConnectionAddr::Tcp(host, port),
    };
    let mut login = RedisConnectionInfo::default().set_db(options.database());
    if let Some(known) = options.login() {
        login = login.set_password(known.password.reveal());
        if let Some(user) = &known.user {
            login = login.set_username(user);
        }
    }
    let info = address.into_connection_info().map_err(errors::classify)?;
    // A request must not wait for the one before it to be acknowledged; and a server that vanished is found out.
    let tcp = TcpSettings::default().set_nodelay(true).set_user_timeout(options.request_timeout() * 2);
    Ok(info.set_redis_settings(login).set_tcp_settings(tcp))
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("address", &self.address).finish_non_exhaustive()
    }
}
