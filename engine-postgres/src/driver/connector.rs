//! What connects to the servers.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::Stream;
use futures_util::stream::poll_fn;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client, Config, Error as DriverError, NoTls, Socket};
use ylock_core::Result;
use ylock_core::environment::{Environment, Moment};
use ylock_core::options::Tls;
use ylock_core::url::Address;

use super::errors::{self, unavailable};
use super::server::Demands;
use crate::options::PostgresOptions;

/// The settings of a session, which spare the functions setting them for each transaction. What they must have they check.
const SETTINGS: &str = "-c default_transaction_isolation=read\\ committed -c lock_timeout=500ms -c idle_session_timeout=0 -c client_min_messages=warning";

/// A setting that no server knows: each session keeps what it was told.
const MARK: &str = "ylock.login";
const SHOWN: &str = "select current_setting($1, true)";

/// What comes over a connection by itself. Answers come only while this is polled.
pub(super) type Messages = Pin<Box<dyn Stream<Item = std::result::Result<AsyncMessage, DriverError>> + Send>>;

/// Where a connection goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    /// The server that takes writes, perhaps through a pooler.
    Server,
    /// The same server, without a pooler where the options name its address.
    Direct,
}

/// What connects to the servers; see the [module](self).
pub(super) struct Connector {
    config: Config,
    direct: Config,
    #[cfg(feature = "tls")]
    tls: Option<super::tls::Connect>,
    environment: Arc<dyn Environment>,
    pub(super) connect_timeout: Duration,
    pub(super) request_timeout: Duration,
    pub(super) namespace: String,
    pub(super) demands: Demands,
    /// True once the server, or the pooler before it, has refused settings with the login.
    refuses_settings: AtomicBool,
    /// True once a statement that was prepared was not there any more: something between this client and the server changes sessions.
    prepares_nothing: AtomicBool,
}

/// A connection that was opened. The caller must see to it that its messages are polled, in the runtime in which it was opened.
pub(super) struct Opened {
    pub(super) client: Client,
    pub(super) messages: Messages,
    /// What the login told the session to keep, if it could tell it something: a number that no other login has.
    pub(super) mark: Option<String>,
}

impl Connector {
    pub(super) fn of(options: &PostgresOptions, environment: &Arc<dyn Environment>) -> Result<Arc<Self>> {
        let config = configured(options, options.addresses());
        let direct = match options.listens_at() {
            Some(address) => configured(options, std::slice::from_ref(&address)),
            None => config.clone(),
        };
        Ok(Arc::new(Self {
            config,
            direct,
            #[cfg(feature = "tls")]
            tls: super::tls::connect(options)?,
            environment: Arc::clone(environment),
            connect_timeout: options.connect_timeout(),
            request_timeout: options.request_timeout(),
            namespace: options.namespace().to_owned(),
            demands: Demands::of(options),
            refuses_settings: AtomicBool::new(false),
            prepares_nothing: AtomicBool::new(false),
        }))
    }

    pub(super) fn environment(&self) -> &Arc<dyn Environment> {
        &self.environment
    }

    /// Opens a connection.
    pub(super) async fn open(&self, to: To) -> Result<Opened> {
        let opening = async {
            if !self.refuses_settings.load(Ordering::Relaxed) {
                let mark = format!("{:016x}", self.environment.random());
                let settings = format!("{SETTINGS} -c {MARK}={mark}");
                match self.log_in(self.config_of(to).clone().options(settings)).await {
                    Err(error) if errors::is_about_settings(&error) => {
                        self.refuses_settings.store(true, Ordering::Relaxed);
                    }
                    opened => {
                        let (client, messages) = opened.map_err(errors::of_login)?;
                        return Ok(Opened { client, messages, mark: Some(mark) });
                    }
                }
            }
            let (client, messages) = self.log_in(self.config_of(to)).await.map_err(errors::of_login)?;
            Ok(Opened { client, messages, mark: None })
        };
        tokio::select! {
            biased;
            opened = opening => opened,
            () = self.environment.sleep(self.connect_timeout) => {
                Err(unavailable("the server cannot be reached").without_effect())
            }
        }
    }

    /// Returns whether the session on the server is that which the login began: a pooler would have begun one by a login of its own.
    pub(super) async fn has_own_session(&self, client: &Client, mark: &Option<String>) -> Result<bool> {
        let Some(mark) = mark.as_deref().filter(|_| !self.prepares_nothing.load(Ordering::Relaxed)) else {
            return Ok(false);
        };
        let asking =
            async { client.query_typed(SHOWN, &[(&MARK, Type::TEXT)]).await.map_err(errors::classify) };
        let rows = self.until(self.environment.now().plus(self.connect_timeout), asking).await?;
        let shown = rows.first().and_then(|row| row.try_get::<_, Option<&str>>(0).ok().flatten());
        Ok(shown == Some(mark))
    }

    /// From now on no statement is prepared.
    pub(super) fn prepares_nothing(&self) {
        self.prepares_nothing.store(true, Ordering::Relaxed);
    }

    /// Waits for an answer until `end`, however much of its time has gone by.
    pub(super) async fn until<T>(&self, end: Moment, answer: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            // An answer that is there counts, also after a pause of the process.
            biased;
            answer = answer => answer,
            () = self.environment.sleep(end.since(self.environment.now())) => {
                Err(unavailable("the server did not answer in time"))
            }
        }
    }

    fn config_of(&self, to: To) -> &Config {
        match to {
            To::Server => &self.config,
            To::Direct => &self.direct,
        }
    }

    async fn log_in(&self, config: &Config) -> std::result::Result<(Client, Messages), DriverError> {
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            return connect(config, tls.clone()).await;
        }
        connect(config, NoTls).await
    }
}

async fn connect<T>(config: &Config, tls: T) -> std::result::Result<(Client, Messages), DriverError>
where
    T: MakeTlsConnect<Socket>,
    T::TlsConnect: TlsConnect<Socket>,
    T::Stream: Send + 'static,
{
    let (client, mut connection) = config.connect(tls).await?;
    Ok((client, Box::pin(poll_fn(move |context| connection.poll_message(context)))))
}

fn configured(options: &PostgresOptions, addresses: &[Address]) -> Config {
    let mut config = Config::new();
    for address in addresses {
        config.host(&address.host).port(address.port);
    }
    config
        .dbname(options.database())
        .application_name("ylock")
        .target_session_attrs(TargetSessionAttrs::ReadWrite)
        // Each host in its time: one that hangs must leave time for the others.
        .connect_timeout(options.connect_timeout() / u32::try_from(addresses.len()).unwrap_or(1).max(1))
        // A server that vanished must be noticed.
        .tcp_user_timeout(options.request_timeout() * 2)
        .keepalives_idle(Duration::from_secs(10))
        .ssl_mode(if options.tls() == Tls::Off { SslMode::Disable } else { SslMode::Require });
    if let Some(login) = options.login() {
        config.user(&login.user);
        if !login.password.reveal().is_empty() {
            config.password(login.password.reveal());
        }
    }
    config
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}
