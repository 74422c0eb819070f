//! The options of a `cassandra://` URL.

use ylock_core::options::Reach;
use ylock_core::url::EngineUrl;
use ylock_core::{Options, Result};

use super::CassandraOptions;

pub(super) fn read(url: &EngineUrl, common: &Options) -> Result<CassandraOptions> {
    let mut options = CassandraOptions::new(&url.path);
    options.reach = Reach::of(url, common)?;
    options.hosts.clone_from(&url.hosts);
    url.set_options(&CassandraOptions::definitions(), |name, value| options.set(name, value))?;
    options.check()?;
    Ok(options)
}

#[cfg(test)]
mod tests;
