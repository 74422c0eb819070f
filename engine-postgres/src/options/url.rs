//! The servers that a `postgres://` URL names.

use ylock_core::Result;
use ylock_core::url::{EngineUrl, Secret};

use super::{DEFAULT_PORT, PostgresOptions};

/// Returns the options for these servers, and the URL with a login that is complete.
pub(super) fn place(url: &EngineUrl) -> Result<(PostgresOptions, EngineUrl)> {
    let hosts = url.hosts.iter().map(|host| (host.name.clone(), host.port.unwrap_or(DEFAULT_PORT)));
    let options = PostgresOptions::of_hosts(hosts, &url.path);
    let mut url = url.clone();
    // A server may want no password of a user, and always wants the user's name.
    if url.user.is_some() && url.password.is_none() {
        url.password = Some(Secret::new(""));
    }
    Ok((options, url))
}
