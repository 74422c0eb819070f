//! What connects to the servers: everything that a connection needs, but for the address.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use redis::aio::{AsyncPushSender, MultiplexedConnection};
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion,
    RedisConnectionInfo, RedisResult,
};
use ylock_core::environment::{Environment, Moment, SystemEnvironment};
use ylock_core::options::{Login, Tls};
use ylock_core::url::Address;
use ylock_core::{Error, ErrorKind, Result};

use super::errors::{self, unavailable};
use crate::options::{Eviction, RedisOptions, Topology};
use crate::place;
use crate::transport::Transport;

/// What connects to a kind of servers; see the [module](self).
pub(super) struct Connector {
    login: Option<Login>,
    database: i64,
    tls: Option<Encrypted>,
    /// The server of a client that the program has.
    handed_over: Option<ConnectionInfo>,
    pub(super) connect_timeout: Duration,
    pub(super) request_timeout: Duration,
    /// True if servers may throw away locks: then none is asked whether it does.
    pub(super) accepts_eviction: bool,
    /// The key that says in which version the locks are kept.
    pub(super) versioned: String,
    /// True once a server has said another version than that of this client, until one says this one again.
    pub(super) is_other_version: AtomicBool,
    pub(super) is_of_cluster: bool,
    pub(super) surroundings: Surroundings,
}

/// What a client stands on.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings {
    pub(crate) environment: Arc<dyn Environment>,
    /// The streams to servers; TCP if there is none.
    pub(crate) transport: Option<Arc<dyn Transport>>,
}

#[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "TLS is not compiled in"))]
struct Encrypted {
    /// The authorities to trust, in PEM; those of the operating system if there is none.
    authority: Option<Vec<u8>>,
    /// The certificate of this client and its key, in PEM.
    certificate: Option<(Vec<u8>, Vec<u8>)>,
}

impl Surroundings {
    /// Returns what programs stand on.
    pub(crate) fn of_the_system() -> Self {
        Self { environment: SystemEnvironment::shared(), transport: None }
    }
}

impl Connector {
    /// Returns the connector to the servers that keep the locks.
    pub(super) fn of(options: &RedisOptions, surroundings: &Surroundings) -> Result<Arc<Self>> {
        Self::new(options, surroundings, options.login().cloned(), options.database())
    }

    /// Returns the connector to the Sentinels.
    pub(super) fn of_sentinels(options: &RedisOptions, surroundings: &Surroundings) -> Result<Arc<Self>> {
        Self::new(options, surroundings, options.sentinel_login(), 0)
    }

    fn new(
        options: &RedisOptions,
        surroundings: &Surroundings,
        login: Option<Login>,
        database: i64,
    ) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {
            login,
            database,
            tls: encrypted(options)?,
            handed_over: options.handed_over().cloned(),
            connect_timeout: options.connect_timeout(),
            request_timeout: options.request_timeout(),
            accepts_eviction: options.eviction() == Eviction::LostLocksAccepted,
            versioned: place::of_version(options.prefix()),
            is_other_version: AtomicBool::new(false),
            is_of_cluster: *options.topology() == Topology::Cluster,
            surroundings: surroundings.clone(),
        }))
    }

    /// Opens a connection for requests.
    pub(super) async fn connect(&self, address: &Address) -> Result<MultiplexedConnection> {
        self.open(address, ProtocolVersion::RESP2, self.config()).await
    }

    /// Opens a connection for messages, and gives each of them to `hear`.
    pub(super) async fn listen(
        &self,
        address: &Address,
        hear: impl AsyncPushSender,
    ) -> Result<MultiplexedConnection> {
        self.open(address, ProtocolVersion::RESP3, self.config().set_push_sender(hear)).await
    }

    async fn open(
        &self,
        address: &Address,
        protocol: ProtocolVersion,
        config: AsyncConnectionConfig,
    ) -> Result<MultiplexedConnection> {
        let opening = async {
            match &self.surroundings.transport {
                None => {
                    let client = self.client(address, protocol)?;
                    let opened = client.get_multiplexed_async_connection_with_config(&config).await;
                    opened.map_err(|error| errors::unreachable(address, error))
                }
                Some(transport) => self.open_over(&**transport, address, protocol, config).await,
            }
        };
        tokio::select! {
            biased;
            opened = opening => opened,
            () = self.environment().sleep(self.connect_timeout) => {
                Err(unavailable(format!("the server at {address} cannot be reached")).without_effect())
            }
        }
    }

    async fn open_over(
        &self,
        transport: &dyn Transport,
        address: &Address,
        protocol: ProtocolVersion,
        config: AsyncConnectionConfig,
    ) -> Result<MultiplexedConnection> {
        let stream = transport.open(&address.host, address.port).await;
        let stream = stream.map_err(|error| errors::unreachable(address, error.into()))?;
        let info = self.info(address, protocol)?;
        let opened = MultiplexedConnection::new_with_config(info.redis_settings(), stream, config).await;
        let (connection, driver) = opened.map_err(|error| errors::unreachable(address, error))?;
        self.environment().spawn_beside(Box::pin(driver));
        Ok(connection)
    }

    pub(super) fn environment(&self) -> &Arc<dyn Environment> {
        &self.surroundings.environment
    }

    /// Returns whether the driver ends the wait for an answer by itself. Its clock is that of tokio, whatever the environment's is.
    pub(super) fn driver_has_timeout(&self) -> bool {
        self.surroundings.transport.is_none()
    }

    /// Waits for an answer for as long as a request may take: of several servers that are asked some may be gone, and connecting to those
    /// would take long.
    pub(super) async fn in_time<T>(&self, answer: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            biased;
            answer = answer => answer,
            () = self.environment().sleep(self.request_timeout) => Err(unavailable("a server did not answer")),
        }
    }

    /// Waits for the driver's answer. Over streams of the program the driver measures no time.
    pub(super) async fn answer<T>(&self, answer: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
        if self.driver_has_timeout() {
            return answer.await;
        }
        tokio::select! {
            biased;
            answer = answer => answer,
            () = self.environment().sleep(self.request_timeout) => {
                Err(io::Error::from(io::ErrorKind::TimedOut).into())
            }
        }
    }

    /// Waits for the answer to a request until `end`, however much of its time has gone by.
    pub(super) async fn until<T>(&self, end: Moment, answer: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            // An answer that is there counts, also after a pause of the process.
            biased;
            answer = answer => answer,
            () = self.environment().sleep(end.since(self.environment().now())) => {
                Err(unavailable("the server did not answer in time"))
            }
        }
    }

    fn config(&self) -> AsyncConnectionConfig {
        let timeout = |timeout| self.driver_has_timeout().then_some(timeout);
        AsyncConnectionConfig::new()
            .set_connection_timeout(timeout(self.connect_timeout))
            .set_response_timeout(timeout(self.request_timeout))
    }

    #[cfg(not(feature = "tls"))]
    fn client(&self, address: &Address, protocol: ProtocolVersion) -> Result<Client> {
        Client::open(self.info(address, protocol)?).map_err(errors::classify)
    }

    #[cfg(feature = "tls")]
    fn client(&self, address: &Address, protocol: ProtocolVersion) -> Result<Client> {
        let info = self.info(address, protocol)?;
        // Also for the server of a client that the program has. The driver takes the provider of the process; without one it would panic
        // where several are compiled in. An error says that the program has installed one, which stays.
        if matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
            let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        }
        let Some(tls) = &self.tls else { return Client::open(info).map_err(errors::classify) };
        let of_client = tls.certificate.clone();
        let client_tls =
            of_client.map(|(client_cert, client_key)| redis::ClientTlsConfig { client_cert, client_key });
        let certificates = redis::TlsCertificates { client_tls, root_cert: tls.authority.clone() };
        Client::build_with_tls(info, certificates).map_err(errors::classify)
    }

    fn info(&self, address: &Address, protocol: ProtocolVersion) -> Result<ConnectionInfo> {
        let info = match &self.handed_over {
            Some(server) => server.clone(),
            None => self.address(address).into_connection_info().map_err(errors::classify)?,
        };
        let login = self.login(info.redis_settings()).set_db(self.database).set_protocol(protocol);
        // A request must not wait until the one before it is acknowledged; and a server that vanished must be noticed.
        let tcp = TcpSettings::default().set_nodelay(true).set_user_timeout(self.request_timeout * 2);
        Ok(info.set_redis_settings(login).set_tcp_settings(tcp))
    }

    fn address(&self, address: &Address) -> ConnectionAddr {
        let (host, port) = (address.host.clone(), address.port);
        match self.tls {
            Some(_) => ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None },
            None => ConnectionAddr::Tcp(host, port),
        }
    }

    /// Returns whether connections are encrypted.
    pub(super) fn is_encrypted(&self) -> bool {
        match &self.handed_over {
            Some(server) => matches!(server.addr(), ConnectionAddr::TcpTls { .. }),
            None => self.tls.is_some(),
        }
    }

    fn login(&self, of_client: &RedisConnectionInfo) -> RedisConnectionInfo {
        let Some(known) = &self.login else { return of_client.clone() };
        // From the beginning: without a name it is the default user, whatever the client's is.
        let login = RedisConnectionInfo::default().set_password(known.password.reveal());
        if known.user.is_empty() { login } else { login.set_username(&known.user) }
    }
}

/// Returns the address that errors name; of a socket of the operating system it is the path.
#[cfg(feature = "redis-1")]
pub(crate) fn address_of(server: &ConnectionInfo) -> Address {
    match server.addr() {
        ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
            Address::new(host, *port)
        }
        other => Address::new(other.to_string(), 0),
    }
}

fn encrypted(options: &RedisOptions) -> Result<Option<Encrypted>> {
    let authority = match options.tls() {
        Tls::Off => return Ok(None),
        Tls::PlatformRoots => None,
        Tls::Authority(file) => Some(std::fs::read(&file).map_err(|error| {
            let message = format!("tls_ca={} cannot be read", file.display());
            Error::new(ErrorKind::Config, message).with_engine(crate::NAME).with_source(error)
        })?),
    };
    let certificate = options.client_certificate().map(|certificate| certificate.read());
    let certificate = certificate.transpose().map_err(|error| error.with_engine(crate::NAME))?;
    Ok(Some(Encrypted { authority, certificate }))
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").field("database", &self.database).finish_non_exhaustive()
    }
}

#[cfg(all(test, feature = "tls", feature = "redis-1"))]
mod tests {
    use rustls::crypto::CryptoProvider;

    use super::*;

    /// No test of this program may connect with TLS before this one: the driver installs a provider by itself where only one is compiled in.
    #[test]
    fn a_crypto_provider_is_installed_before_the_driver_looks_for_one() {
        let program = Client::open("rediss://127.0.0.1:1").unwrap();
        let options = RedisOptions::of_server(program.get_connection_info().clone());
        let connector = Connector::of(&options, &Surroundings::of_the_system()).unwrap();
        assert!(CryptoProvider::get_default().is_none());
        connector.client(&Address::new("127.0.0.1", 1), ProtocolVersion::RESP2).unwrap();
        assert!(CryptoProvider::get_default().is_some());
    }
}
