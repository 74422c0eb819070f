//! TLS, by `rustls`.

use tokio_postgres_rustls::MakeRustlsConnect;
use ylock_core::Result;

use crate::options::PostgresOptions;

pub(super) type Connect = MakeRustlsConnect;

/// Returns what encrypts connections, if they are to be encrypted.
pub(super) fn connect(options: &PostgresOptions) -> Result<Option<Connect>> {
    let config = options.tls().client_config(options.client_certificate().as_ref());
    Ok(config.map_err(|error| error.with_engine(crate::NAME))?.map(MakeRustlsConnect::new))
}
