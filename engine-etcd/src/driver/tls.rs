//! The encryption of connections.

use std::io;
use std::sync::Arc;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use tonic::transport::Endpoint;
use ylock_core::options::{Tls, ended_handshake};
use ylock_core::url::Host;
use ylock_core::{Error, Result};

use super::errors;
use crate::options::{ClientCertificate, DEFAULT_PORT, EtcdOptions};

/// Whether connections are encrypted.
pub(super) enum Encryption {
    Off,
    On {
        /// The authorities that vouch for the servers, in PEM; those that the operating system trusts if there are none.
        authority: Option<Vec<u8>>,
        /// The certificate of this client and its key, in PEM.
        certificate: Option<(Vec<u8>, Vec<u8>)>,
        /// The same, for a connection without requests.
        config: Arc<ClientConfig>,
    },
}

impl Encryption {
    pub(super) fn of(options: &EtcdOptions) -> Result<Self> {
        let certificate = options.client_certificate();
        Self::with(&options.tls(), certificate.as_ref()).map_err(|error| error.with_engine(crate::NAME))
    }

    fn with(tls: &Tls, certificate: Option<&ClientCertificate>) -> Result<Self> {
        let Some(config) = tls.client_config(certificate)? else { return Ok(Self::Off) };
        let authority = match tls {
            Tls::Off | Tls::PlatformRoots => None,
            Tls::Authority(file) => Some(std::fs::read(file).map_err(|error| {
                errors::config(format!("tls_ca={} cannot be read", file.display())).with_source(error)
            })?),
        };
        let certificate = certificate.map(ClientCertificate::read).transpose()?;
        Ok(Self::On { authority, certificate, config: Arc::new(config) })
    }

    pub(super) fn is_on(&self) -> bool {
        !matches!(self, Self::Off)
    }

    pub(super) fn of_endpoint(&self, endpoint: Endpoint) -> Result<Endpoint> {
        use tonic::transport::{Certificate, ClientTlsConfig, Identity};
        let Self::On { authority, certificate, .. } = self else { return Ok(endpoint) };
        let mut tls = match authority {
            None => ClientTlsConfig::new().with_native_roots(),
            Some(text) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(text)),
        };
        if let Some((certificate, key)) = certificate {
            tls = tls.identity(Identity::from_pem(certificate, key));
        }
        endpoint
            .tls_config(tls)
            .map_err(|error| errors::config("the options of TLS are wrong").with_source(error))
    }

    /// Returns why this server takes no encrypted connection of this client, if it says so. With TLS 1.3 a certificate of the client is checked after the
    /// handshake, and then the connection of the requests does not tell it reliably: it writes while the server's words arrive, and may meet the end
    /// of the connection before them.
    pub(super) async fn why_ended(&self, host: &Host) -> Option<Error> {
        let Self::On { config, .. } = self else { return None };
        let (connector, address) = (TlsConnector::from(Arc::clone(config)), host.address(DEFAULT_PORT));
        let stream = TcpStream::connect(&address).await.ok()?;
        let name = ServerName::try_from(host.name.clone()).ok()?;
        let ended = match connector.connect(name, stream).await {
            Ok(mut stream) => stream.read_u8().await.err()?,
            // So do servers of etcd that listen without TLS, and any that stop just then.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                let message = format!(
                    "the member at {address} ended the TLS handshake without a reason: if it listens without TLS, leave out tls=on"
                );
                return Some(errors::unavailable(message));
            }
            Err(error) => error,
        };
        ended_handshake(&ended).map(errors::config)
    }
}
