//! The encryption of connections.

use tonic::transport::Endpoint;
use ylock_core::Result;
use ylock_core::options::Tls;

use super::errors;

/// Whether connections are encrypted, and who vouches for the servers.
pub(super) enum Encryption {
    Off,
    #[cfg(feature = "tls")]
    PlatformRoots,
    #[cfg(feature = "tls")]
    Authority(Vec<u8>),
}

impl Encryption {
    #[cfg(not(feature = "tls"))]
    pub(super) fn of(tls: &Tls) -> Result<Self> {
        match tls {
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
    pub(super) fn of(tls: &Tls) -> Result<Self> {
        let file = match tls {
            Tls::Off => return Ok(Self::Off),
            Tls::PlatformRoots => return Ok(Self::PlatformRoots),
            Tls::Authority(file) => file,
        };
        let read = std::fs::read(file);
        let read = read.map_err(|error| {
            errors::config(format!("tls_ca={} cannot be read", file.display())).with_source(error)
        });
        Ok(Self::Authority(read?))
    }

    #[cfg(feature = "tls")]
    pub(super) fn is_on(&self) -> bool {
        !matches!(self, Self::Off)
    }

    #[cfg(feature = "tls")]
    pub(super) fn of_endpoint(&self, endpoint: Endpoint) -> Result<Endpoint> {
        use tonic::transport::{Certificate, ClientTlsConfig};
        let tls = match self {
            Self::Off => return Ok(endpoint),
            Self::PlatformRoots => ClientTlsConfig::new().with_native_roots(),
            Self::Authority(file) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(file)),
        };
        endpoint
            .tls_config(tls)
            .map_err(|error| errors::config("the options of TLS are wrong").with_source(error))
    }
}
