//! The options of the engine: where the members are, how to log in, below which prefix the locks are.

use ylock_core::options::Reach;
use ylock_core::url::{EngineUrl, Host};
use ylock_core::{Options, Result};

mod check;
#[cfg(test)]
mod tests;

pub use ylock_core::options::{ClientCertificate, Tls};

/// The port of a host that names none.
pub const DEFAULT_PORT: u16 = 2379;
/// The prefix that the keys of all locks begin with.
pub const DEFAULT_PREFIX: &str = "ylock";

ylock_core::define_options! {
    /// Options of the engine: how to reach a cluster and how to use it.
    ///
    /// Nothing is checked before [`check`](Self::check), which connecting does first. A client uses one member of the cluster at a time, and
    /// goes on to the next when that one does not answer.
    #[derive(Clone, Debug)]
    pub struct EtcdOptions {
        hosts: Vec<Host>,
        prefix: String,
    }
    includes reach: Reach;

    /// Whether servers are used that may answer that a lease was renewed which has been revoked: 3.6 before 3.6.5, 3.5 before 3.5.23, and all
    /// before 3.4.38.
    allow_old / with_allow_old: bool = "off";
}

impl EtcdOptions {
    /// Returns options with every default, for these members of one cluster.
    pub fn new(hosts: impl IntoIterator<Item = Host>) -> Self {
        Self::with_defaults(hosts.into_iter().collect(), DEFAULT_PREFIX.to_owned(), Reach::default())
    }

    /// Sets what all keys begin with, such as `apps/ylock`; [`DEFAULT_PREFIX`] by default. Clients exclude each other only within one prefix.
    #[must_use]
    pub fn with_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Reads options from `etcd://user:password@host1,host2:port/prefix?option=value`.
    ///
    /// `ylock_options` are the options of every engine from the same URL.
    ///
    /// # Errors
    /// [`Config`](ylock_core::ErrorKind::Config) that names what is missing, unknown or wrong.
    pub fn from_url(url: &EngineUrl, ylock_options: &Options) -> Result<Self> {
        let mut options = Self::new(url.hosts.iter().cloned());
        let prefix = url.path.trim_matches('/');
        if !prefix.is_empty() {
            options.prefix = prefix.to_owned();
        }
        options.read(url, ylock_options).map_err(|error| error.with_engine(crate::NAME))
    }

    /// Returns what all keys begin with; see [`with_prefix`](Self::with_prefix).
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns the members of the cluster.
    pub(crate) fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// Returns the members as an operator writes them. There is no login in it.
    pub(crate) fn cluster(&self) -> String {
        let hosts = self.hosts.iter().map(|host| host.address(DEFAULT_PORT));
        hosts.collect::<Vec<_>>().join(",")
    }
}
