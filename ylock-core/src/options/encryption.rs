//! The set-up of encrypted connections, for engines whose driver takes one of `rustls`.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use super::reach::{ClientCertificate, Tls};
use crate::error::{Error, ErrorKind, Result};

impl Tls {
    /// Returns the set-up of encrypted connections, or nothing if they are plain. `certificate` is that by which the servers know the client.
    ///
    /// # Errors
    /// [`Config`](ErrorKind::Config) that names the option whose file cannot be used.
    pub fn client_config(&self, certificate: Option<&ClientCertificate>) -> Result<Option<ClientConfig>> {
        let roots = match self {
            Self::Off => return Ok(None),
            Self::PlatformRoots => of_the_system()?,
            Self::Authority(file) => of_file(file)?,
        };
        // The provider is named: the process may have none installed, or another one.
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable("TLS cannot be set up", error))?
            .with_root_certificates(roots);
        let Some(certificate) = certificate else { return Ok(Some(config.with_no_client_auth())) };
        let (chain, key) = certificate.decode()?;
        let config = config.with_client_auth_cert(chain, key);
        config.map(Some).map_err(|error| {
            let shown = certificate.certificate.display();
            unusable(format!("tls_cert={shown} cannot be used with its tls_key"), error)
        })
    }
}

impl ClientCertificate {
    fn decode(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
        let (text, key) = self.read()?;
        let shown = self.certificate.display();
        let chain = CertificateDer::pem_slice_iter(&text).collect::<std::result::Result<Vec<_>, _>>();
        let chain = chain.map_err(|error| unusable(format!("tls_cert={shown} is not in PEM"), error))?;
        if chain.is_empty() {
            return Err(wrong(format!("tls_cert={shown} has no certificate in PEM")));
        }
        let shown = self.key.display();
        let key = PrivateKeyDer::from_pem_slice(&key)
            .map_err(|error| unusable(format!("tls_key={shown} has no private key in PEM"), error))?;
        Ok((chain, key))
    }
}

fn of_the_system() -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    // One odd certificate among many is no reason to trust none.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(wrong("tls=on, but the system trusts no authority: name one with tls_ca"));
    }
    Ok(roots)
}

fn of_file(file: &Path) -> Result<RootCertStore> {
    let shown = file.display();
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(file)
        .map_err(|error| unusable(format!("tls_ca={shown} cannot be read"), error))?;
    for certificate in certificates {
        let certificate =
            certificate.map_err(|error| unusable(format!("tls_ca={shown} is not in PEM"), error))?;
        roots
            .add(certificate)
            .map_err(|error| unusable(format!("tls_ca={shown} has no authority"), error))?;
    }
    if roots.is_empty() {
        return Err(wrong(format!("tls_ca={shown} has no certificate in PEM")));
    }
    Ok(roots)
}

fn unusable(message: impl Into<String>, error: impl std::error::Error + Send + Sync + 'static) -> Error {
    wrong(message).with_source(error)
}

fn wrong(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Config, message)
}
