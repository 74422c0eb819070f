//! What stands in for the encryption of connections where it is not compiled in.

use tonic::transport::Endpoint;
use ylock_core::options::Tls;
use ylock_core::url::Host;
use ylock_core::{Error, Result};

use super::errors;
use crate::options::EtcdOptions;

/// Connections are not encrypted.
pub(super) struct Encryption;

#[allow(
    clippy::unused_self,
    clippy::unnecessary_wraps,
    clippy::unused_async,
    reason = "the shape is that of the module with TLS"
)]
impl Encryption {
    pub(super) fn of(options: &EtcdOptions) -> Result<Self> {
        match options.tls() {
            Tls::Off => Ok(Self),
            Tls::PlatformRoots | Tls::Authority(_) => Err(errors::config("TLS is not compiled in")),
        }
    }

    pub(super) fn is_on(&self) -> bool {
        false
    }

    pub(super) fn of_endpoint(&self, endpoint: Endpoint) -> Result<Endpoint> {
        Ok(endpoint)
    }

    pub(super) async fn why_ended(&self, _: &Host) -> Option<Error> {
        None
    }
}
