//! Connecting: what begins a session.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ylock_core::environment::{Environment, Moment};
use ylock_core::options::Tls;
use ylock_core::{Error, ErrorKind, Result};
use zookeeper_client::{Client, Connector, Error as Fault};

use super::errors::translated;
use crate::algorithm::store::to_error;
use crate::options::ZookeeperOptions;

/// What begins sessions; see the [module](self).
pub(crate) struct Dialer {
    pub(super) options: ZookeeperOptions,
    pub(super) environment: Arc<dyn Environment>,
    /// Whether the servers have granted a session before.
    was_granted: AtomicBool,
}

/// What is known of a session that has begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// The time for which the servers keep the session without a sign of life.
    pub(super) timeout: Duration,
    /// The moment just before the session was asked for.
    pub(super) asked: Moment,
}

impl Dialer {
    pub(super) fn new(options: ZookeeperOptions, environment: Arc<dyn Environment>) -> Self {
        Self { options, environment, was_granted: AtomicBool::new(false) }
    }

    /// Begins a session.
    pub(super) async fn begin(&self) -> Result<(Client, Known)> {
        loop {
            let asked = self.environment.now();
            let connector = self.connector()?.with_session_timeout(self.options.session());
            match connector.connect(&self.options.cluster()).await {
                Ok(client) => {
                    self.was_granted.store(true, Ordering::Relaxed);
                    let known = Known { timeout: client.session_timeout(), asked };
                    return Ok((client, known));
                }
                // The driver gives up after the timeout of the session, which may be short.
                Err(Fault::Timeout | Fault::ConnectionLoss | Fault::NoHosts) => {}
                Err(fault @ (Fault::AuthFailed | Fault::BadArguments(_))) => {
                    return Err(to_error(translated(fault)));
                }
                Err(fault) => return Err(self.no_session(Some(fault))),
            }
            self.environment.sleep(self.environment.jitter(self.options.connect_timeout() / 50)).await;
        }
    }

    /// Returns a connector. A session that can only read is of no use, and the driver passes over servers that offer no other.
    fn connector(&self) -> Result<Connector> {
        let handed_over = self.options.handed_over().cloned();
        let mut connector = handed_over.unwrap_or_else(Client::connector).with_readonly(false);
        if let Some(login) = self.options.login() {
            let words = format!("{}:{}", login.user, login.password.reveal());
            connector = connector.with_auth("digest", words.as_bytes());
        }
        #[cfg(feature = "tls")]
        if self.options.tls() != Tls::Off {
            // The driver takes the provider of the process; without one it would panic where several are compiled in. An error says that
            // the program has installed one, which stays.
            let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        }
        #[cfg(feature = "tls")]
        if let Tls::Authority(file) = self.options.tls() {
            connector = connector.with_tls(tls(&file, self.options.client_certificate().as_ref())?);
        }
        Ok(connector)
    }

    pub(super) fn no_session(&self, fault: Option<Fault>) -> Error {
        let hint = self.hint_of_tls();
        let message = format!("none of the servers {} grants a session{hint}", self.options.cluster());
        let error = Error::new(ErrorKind::Unavailable, message).with_engine(crate::NAME);
        match fault {
            Some(fault) => error.with_source(fault),
            None => error,
        }
    }
}

impl Dialer {
    /// Returns what to look at if a connector was handed over: it shows to no caller whether it has TLS, and with TLS servers are addressed
    /// in another way.
    fn hint_of_tls(&self) -> &'static str {
        match self.options.tls() {
            _ if self.options.handed_over().is_none() => "",
            // The connector was right before.
            _ if self.was_granted.load(Ordering::Relaxed) => "",
            Tls::Off => {
                ". If the connector that was handed over has TLS, the options must say so: with_tls(Tls::PlatformRoots)"
            }
            _ => {
                ". The options say TLS: the connector that was handed over must have it too, by its own with_tls"
            }
        }
    }
}

#[cfg(feature = "tls")]
fn tls(
    authority: &std::path::Path,
    certificate: Option<&crate::options::ClientCertificate>,
) -> Result<zookeeper_client::TlsOptions> {
    let wrong = |option: &str, file: &std::path::Path, error: &dyn fmt::Display| {
        let message = format!("{option}={} cannot be used: {error}", file.display());
        Error::new(ErrorKind::Config, message).with_engine(crate::NAME)
    };
    let text = std::fs::read_to_string(authority).map_err(|error| wrong("tls_ca", authority, &error))?;
    let tls = zookeeper_client::TlsOptions::new().with_pem_ca(&text);
    let tls = tls.map_err(|error| wrong("tls_ca", authority, &error))?;
    let Some(of_client) = certificate else { return Ok(tls) };
    let (text, key) = of_client.read().map_err(|error| error.with_engine(crate::NAME))?;
    let (text, key) = (String::from_utf8_lossy(&text), String::from_utf8_lossy(&key));
    tls.with_pem_identity(&text, &key).map_err(|error| wrong("tls_cert", &of_client.certificate, &error))
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer").field("cluster", &self.options.cluster()).finish_non_exhaustive()
    }
}

#[cfg(all(test, feature = "tls", feature = "zookeeper-client-0-11"))]
mod tests {
    use rustls::crypto::CryptoProvider;
    use ylock_core::environment::SystemEnvironment;
    use ylock_core::url::Host;

    use super::*;

    /// No test of this program may connect with TLS before this one: the driver installs a provider by itself where only one is compiled in.
    #[test]
    fn a_crypto_provider_is_installed_before_the_driver_looks_for_one() {
        let host = Host::new("127.0.0.1", 1);
        let options =
            ZookeeperOptions::new([host]).with_connector(Client::connector()).with_tls(Tls::PlatformRoots);
        let dialer = Dialer::new(options, SystemEnvironment::shared());
        assert!(CryptoProvider::get_default().is_none());
        dialer.connector().unwrap();
        assert!(CryptoProvider::get_default().is_some());
    }

    #[test]
    fn an_outage_after_the_first_session_is_not_explained_with_tls() {
        let host = Host::new("127.0.0.1", 1);
        let options = ZookeeperOptions::new([host]).with_connector(Client::connector());
        let dialer = Dialer::new(options, SystemEnvironment::shared());
        assert!(dialer.no_session(None).to_string().contains("with_tls"));
        dialer.was_granted.store(true, Ordering::Relaxed);
        assert!(!dialer.no_session(None).to_string().contains("with_tls"));
    }
}
