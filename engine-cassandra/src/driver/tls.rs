//! Encrypted connections.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use ylock_core::{Error, ErrorKind, Result};

use crate::CassandraOptions;
use crate::options::{ClientCertificate, Tls};

/// Returns the set-up of encrypted connections, or nothing if they shall be plain.
pub(super) fn config(options: &CassandraOptions) -> Result<Option<Arc<ClientConfig>>> {
    let roots = match options.tls() {
        Tls::Off => return Ok(None),
        Tls::PlatformRoots => platform()?,
        Tls::Authority(file) => authority(&file)?,
    };
    // The provider is named: the process may have none installed, or another one.
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| invalid("TLS cannot be set up".to_owned()).with_source(error))?
        .with_root_certificates(roots);
    let config = match options.client_certificate() {
        None => config.with_no_client_auth(),
        Some(certificate) => {
            let (chain, key) = of_client(&certificate)?;
            config.with_client_auth_cert(chain, key).map_err(|error| {
                let shown = certificate.certificate.display();
                invalid(format!("tls_cert={shown} cannot be used with its tls_key")).with_source(error)
            })?
        }
    };
    Ok(Some(Arc::new(config)))
}

fn of_client(
    certificate: &ClientCertificate,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
    let (text, key) = certificate.read().map_err(|error| error.with_engine(crate::NAME))?;
    let shown = certificate.certificate.display();
    let unusable = || invalid(format!("tls_cert={shown}: not a readable PEM file of certificates"));
    let chain: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let chain = chain.map_err(|error| unusable().with_source(error))?;
    if chain.is_empty() {
        return Err(unusable());
    }
    let shown = certificate.key.display();
    let key = PrivateKeyDer::from_pem_slice(&key).map_err(|error| {
        invalid(format!("tls_key={shown}: not a readable PEM file of a private key")).with_source(error)
    })?;
    Ok((chain, key))
}

fn platform() -> Result<RootCertStore> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // One odd certificate among many is no reason to trust none.
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        return Err(invalid("tls=on, but the system trusts no authority; name one with tls_ca=…".to_owned()));
    }
    Ok(roots)
}

fn authority(file: &Path) -> Result<RootCertStore> {
    let unusable = || invalid(format!("tls_ca={}: not a readable PEM file of certificates", file.display()));
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| unusable().with_source(error))? {
        let certificate = certificate.map_err(|error| unusable().with_source(error))?;
        roots.add(certificate).map_err(|error| unusable().with_source(error))?;
    }
    if roots.is_empty() { Err(unusable()) } else { Ok(roots) }
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::Config, message).with_engine(crate::NAME)
}
