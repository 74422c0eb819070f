//! The options of the engine: where the servers are, how to log in, how long a session lives, and which users may touch its nodes.

use std::time::Duration;

use ylock_core::options::Reach;
use ylock_core::url::{EngineUrl, Host};
use ylock_core::{Options, Result};

use crate::driver::{Connector, HandedOver};

mod check;
#[cfg(test)]
mod tests;

pub use ylock_core::options::{ClientCertificate, Tls};

/// The port of a host that names none.
pub const DEFAULT_PORT: u16 = 2181;
/// The node that the locks are below.
pub const DEFAULT_BASE: &str = "/ylock";

/// The users that may read, change and remove the nodes that this client makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Acl {
    /// Every user that reaches the servers.
    #[default]
    Open,
    /// Only clients that log in as the same user. All clients that share locks must do so.
    Creator,
}

ylock_core::option_words!(Acl: Open = "open", Creator = "creator");

ylock_core::define_options! {
    /// Options of the engine: how to reach an ensemble and how to use it.
    ///
    /// ZooKeeper 3.5.3 or later; 3.8.2 or later is better. Nothing is checked before [`check`](Self::check), which connecting does
    /// first. The driver logs in with the scheme `digest`, and trusts only authorities that are named: there is no
    /// [`PlatformRoots`](Tls::PlatformRoots). The [connect timeout](Self::with_connect_timeout) is for getting a session.
    #[derive(Clone, Debug)]
    pub struct ZookeeperOptions {
        hosts: Vec<Host>,
        base: String,
        handed_over: Option<HandedOver>,
    }
    includes reach: Reach;

    /// How long the servers keep the locks of a client that is gone. No lease is longer than five sixths of it.
    ///
    /// This is the timeout of the session. The servers have limits of their own, from 2 to 20 of their ticks (4 s to 40 s) unless they are
    /// configured otherwise, and the timeout that they grant counts.
    session / with_session: Duration or "six fifths of the lease";

    /// Which users may touch the nodes of this client: all (`open`), or the one that it logs in as (`creator`).
    acl: Acl = "open";

    /// What every token is larger than, for resources that have seen tokens of another engine. The first client decides, for all.
    ///
    /// Give the largest token that resources remember, at most 4 611 686 018 427 387 903. A token is then the floor, rounded down to a
    /// multiple of 1024, plus the token without a floor: tokens grow as before. The first client that connects stores the floor in the
    /// node `token-floor` below the [base](Self::with_base), and every client uses the one that is stored; a client whose option says
    /// another one is refused, because tokens above different floors would not grow from holder to holder.
    token_floor / with_token_floor: i64 or "what is stored; at first `0`";
}

impl ZookeeperOptions {
    /// Returns options with every default, for these servers.
    pub fn new(hosts: impl IntoIterator<Item = Host>) -> Self {
        Self::with_defaults(hosts.into_iter().collect(), DEFAULT_BASE.to_owned(), None, Reach::default())
    }

    /// Sets the node that all locks are below, such as `/apps/ylock`; [`DEFAULT_BASE`] by default. It is made if it is missing. Clients
    /// exclude each other only within one such node.
    #[must_use]
    pub fn with_base(mut self, base: impl Into<String>) -> Self {
        self.base = base.into();
        self
    }

    /// Sets which users may touch the nodes of this client, the option `acl`; all users by default.
    #[must_use]
    pub fn with_acl(mut self, acl: Acl) -> Self {
        self.acl = acl;
        self
    }

    /// Returns which users may touch the nodes of this client; see [`with_acl`](Self::with_acl).
    pub fn acl(&self) -> Acl {
        self.acl
    }

    /// Reads options from `zookeeper://user:password@host1,host2:port/path?option=value`.
    ///
    /// `ylock_options` are the options of every engine from the same URL.
    ///
    /// # Errors
    /// [`Config`](ylock_core::ErrorKind::Config) that names what is missing, unknown or wrong.
    pub fn from_url(url: &EngineUrl, ylock_options: &Options) -> Result<Self> {
        let mut options = Self::new(url.hosts.iter().cloned());
        if !url.path.is_empty() {
            options.base = format!("/{}", url.path.trim_end_matches('/'));
        }
        options.read(url, ylock_options).map_err(|error| error.with_engine(crate::NAME))
    }

    /// Returns the timeout of the session to ask for; see [`with_session`](Self::with_session).
    pub fn session(&self) -> Duration {
        self.session.unwrap_or(self.reach.lease * 6 / 5)
    }

    /// Returns the floor of the tokens to ask for, if there is one; see [`with_token_floor`](Self::with_token_floor).
    pub fn token_floor(&self) -> Option<i64> {
        self.token_floor
    }

    /// Returns the node that all locks are below; see [`with_base`](Self::with_base).
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Sets the connector that makes the sessions.
    #[cfg(feature = "zookeeper-client-0-11")]
    pub(crate) fn with_connector(mut self, connector: Connector) -> Self {
        self.handed_over = Some(HandedOver(connector));
        self
    }

    /// Returns the connector that the program has handed over.
    pub(crate) fn handed_over(&self) -> Option<&Connector> {
        self.handed_over.as_ref().map(|handed_over| &handed_over.0)
    }

    /// Returns the servers as the driver wants them. For errors too: there is no login in it.
    pub(crate) fn cluster(&self) -> String {
        let scheme = if self.tls() == Tls::Off { "" } else { "tcp+tls://" };
        let servers = self.addresses().map(|address| format!("{scheme}{address}"));
        servers.collect::<Vec<_>>().join(",")
    }

    /// Returns the addresses of the servers.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = String> {
        self.hosts.iter().map(|host| host.address(DEFAULT_PORT))
    }
}
