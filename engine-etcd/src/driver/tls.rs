//! The encryption of connections.

use tonic::transport::Endpoint;
use ylock_core::Result;
use ylock_core::options::Tls;

use super::errors;
use crate::options::EtcdOptions;

/// Whether connections are encrypted.
pub(super) enum Encryption {
    Off,
    #[cfg(feature = "tls")]
    On {
        /// The authorities that vouch for the servers, in PEM; those that the operating system trusts if there are none.
        authority: Option<Vec<u8>>,
        /// The certificate of this client and its key, in PEM.
        certificate: Option<(Vec<u8>, Vec<u8>)>,
    },
}

impl Encryption {
    #[cfg(not(feature = "tls"))]
    pub(super) fn of(options: &EtcdOptions) -> Result<Self> {
        match options.tls() {
            Tls::Off => Ok(Self::Off),
            Tls::PlatformRoots | Tls::Authority(_) => Err(errors::config("TLS is not compiled in")),
        }
    }

    #[cfg(not(feature = "tls"))]
    pub(super) fn is_on(&self) -> bool {
        false
    }

    #[cfg(not(feature = "tls"))]
    pub(super) fn of_endpoint(&self, endpoint: Endpoint) -> Result<Endpoint> {
        Ok(endpoint)
    }

    #[cfg(feature = "tls")]
    pub(super) fn of(options: &EtcdOptions) -> Result<Self> {
        let authority = match options.tls() {
            Tls::Off => return Ok(Self::Off),
            Tls::PlatformRoots => None,
            Tls::Authority(file) => Some(std::fs::read(&file).map_err(|error| {
                errors::config(format!("tls_ca={} cannot be read", file.display())).with_source(error)
            })?),
        };
        let certificate = options.client_certificate().map(|certificate| certificate.read());
        let certificate = certificate.transpose().map_err(|error| error.with_engine(crate::NAME))?;
        Ok(Self::On { authority, certificate })
    }

    #[cfg(feature = "tls")]
    pub(super) fn is_on(&self) -> bool {
        !matches!(self, Self::Off)
    }

    #[cfg(feature = "tls")]
    pub(super) fn of_endpoint(&self, endpoint: Endpoint) -> Result<Endpoint> {
        use tonic::transport::{Certificate, ClientTlsConfig, Identity};
        let Self::On { authority, certificate } = self else { return Ok(endpoint) };
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
}
