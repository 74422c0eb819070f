//! TLS, by `rustls`.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;
use ylock_core::options::{ClientCertificate, Tls};
use ylock_core::{Error, ErrorKind, Result};

use crate::options::PostgresOptions;

pub(super) type Connect = MakeRustlsConnect;

/// Returns what encrypts connections, if they are to be encrypted.
pub(super) fn connect(options: &PostgresOptions) -> Result<Option<Connect>> {
    let roots = match options.tls() {
        Tls::Off => return Ok(None),
        Tls::PlatformRoots => of_the_system(),
        Tls::Authority(file) => of_file(&file)?,
    };
    // Named outright: where several providers are compiled in, the default would be a panic.
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong("TLS cannot be used", error))?
        .with_root_certificates(roots);
    let config = match options.client_certificate() {
        None => config.with_no_client_auth(),
        Some(certificate) => {
            let (chain, key) = of_client(&certificate)?;
            config.with_client_auth_cert(chain, key).map_err(|error| {
                let shown = certificate.certificate.display();
                wrong(format!("tls_cert={shown} cannot be used with its tls_key"), error)
            })?
        }
    };
    Ok(Some(MakeRustlsConnect::new(config)))
}

fn of_client(
    certificate: &ClientCertificate,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
    let (text, key) = certificate.read().map_err(|error| error.with_engine(crate::NAME))?;
    let shown = certificate.certificate.display();
    let chain: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let chain = chain.map_err(|error| wrong(format!("tls_cert={shown} is not in PEM"), error))?;
    if chain.is_empty() {
        return Err(super::errors::wrong(format!("tls_cert={shown} has no certificate")));
    }
    let shown = certificate.key.display();
    let key = PrivateKeyDer::from_pem_slice(&key)
        .map_err(|error| wrong(format!("tls_key={shown} has no private key in PEM"), error))?;
    Ok((chain, key))
}

fn of_the_system() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

fn of_file(file: &Path) -> Result<RootCertStore> {
    let shown = file.display();
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(file)
        .map_err(|error| wrong(format!("tls_ca={shown} cannot be read"), error))?;
    for certificate in certificates {
        let certificate =
            certificate.map_err(|error| wrong(format!("tls_ca={shown} is not in PEM"), error))?;
        roots.add(certificate).map_err(|error| wrong(format!("tls_ca={shown} has no authority"), error))?;
    }
    if roots.is_empty() {
        return Err(super::errors::wrong(format!("tls_ca={shown} has no certificate")));
    }
    Ok(roots)
}

fn wrong(message: impl Into<String>, error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new(ErrorKind::Config, message).with_engine(crate::NAME).with_source(error)
}
