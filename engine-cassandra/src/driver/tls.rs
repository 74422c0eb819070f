//! Encrypted connections.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use ylock_core::{Error, ErrorKind, Result};

use crate::options::Tls;

/// Returns the set-up of encrypted connections, or nothing if they shall be plain.
pub(super) fn config(tls: &Tls) -> Result<Option<Arc<ClientConfig>>> {
    let roots = match tls {
        Tls::Off => return Ok(None),
        Tls::PlatformRoots => platform()?,
        Tls::Authority(file) => authority(file)?,
    };
    // The provider is named: the process may have none installed, or another one.
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| invalid("TLS cannot be set up".to_owned()).with_source(error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Some(Arc::new(config)))
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
