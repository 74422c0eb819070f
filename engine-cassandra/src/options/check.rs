//! Checks what the options must fulfil, whether they come from a URL or from code.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use ylock_core::{Error, ErrorKind, Result};

use super::{CassandraOptions, Consistency, Expiry, Notify, Protocol, Tls};
use crate::hints::{Address, FIRST_PORT, is_unicast};

/// The longest TTL: before version 5 Cassandra cannot store that a cell ends after January 2038.
pub(super) const MAX_TTL: Duration = Duration::from_secs(5 * 365 * 24 * 60 * 60);
/// The largest skew: clocks that differ by more are broken.
const MAX_SKEW: Duration = Duration::from_secs(60 * 60);
/// The longest name of a keyspace or table that Cassandra accepts.
const MAX_NAME: usize = 48;

impl CassandraOptions {
    /// Checks that every value is within its limits.
    ///
    /// # Errors
    /// [`Config`](ErrorKind::Config) that names the option and the limit.
    pub fn check(&self) -> Result<()> {
        self.check_place()?;
        self.check_names()?;
        self.reach.check(self.reach.lease).map_err(|error| error.with_engine(crate::NAME))?;
        check_seconds("token_ttl", self.token_ttl())?;
        self.check_clocks()?;
        self.check_notify()?;
        // Without any grace Cassandra keeps no hints: a node that was away would miss writes until they are read or repaired.
        check_seconds("gc_grace", self.gc_grace())?;
        if self.replication == 0 {
            return Err(invalid("option replication: at least 1, and 3 or more to survive a lost node"));
        }
        Ok(())
    }

    /// Checks what is certain. Where the table decides on the `expiry`, the rest is checked once it has.
    fn check_clocks(&self) -> Result<()> {
        let skew = self.max_clock_skew_with(self.expiry_asked_for().unwrap_or(Expiry::Ttl));
        if self.expiry_asked_for() == Some(Expiry::Ttl) && skew > MAX_SKEW {
            return Err(invalid(format!(
                "option max_clock_skew: at most {MAX_SKEW:?} with expiry=ttl, not {skew:?}: a lock whose holder died stays taken for that \
                 much longer"
            )));
        }
        check_tokens(self.reach.lease, skew, self.token_ttl())
    }

    fn check_notify(&self) -> Result<()> {
        let names_any = self.notify_advertise.is_some()
            || self.notify_allow.is_some()
            || self.notify_bind != ylock_core::options::preset("0.0.0.0:0");
        match self.notify {
            Notify::Auto | Notify::Off if names_any => {
                return Err(invalid("notify_bind, notify_advertise and notify_allow need notify=udp"));
            }
            Notify::Auto | Notify::Off => return Ok(()),
            Notify::Udp => {}
        }
        if self.protocol() != Protocol::Queue {
            return Err(invalid("option notify=udp: only with protocol=queue, the other one has no queue"));
        }
        self.check_notify_addresses()
    }

    /// Checks where others are to reach this client, as far as it is known: they send nothing to any other address.
    fn check_notify_addresses(&self) -> Result<()> {
        let bound = self.notify_bind.0;
        let is_port_advertised = self.notify_advertise.is_some_and(|Address(address)| address.port() != 0);
        // Of a socket that is bound to no address in particular, the way to Cassandra says it.
        let is_ip_bound = self.notify_advertise.is_none() && !bound.ip().is_unspecified();
        let ip = if is_ip_bound { bound.ip() } else { Ipv4Addr::LOCALHOST.into() };
        let port = if is_port_advertised { 0 } else { bound.port() };
        if !is_reachable(SocketAddr::new(ip, port)) {
            return Err(invalid(format!(
                "option notify_bind={bound}: the address of one machine, or 0.0.0.0 for all of its own, and a port of at least {FIRST_PORT}, \
                 or 0 for any that is free: datagrams go nowhere else. Unless notify_advertise names another one"
            )));
        }
        let Some(Address(advertised)) = self.notify_advertise else { return Ok(()) };
        if !is_reachable(advertised) {
            return Err(invalid(format!(
                "option notify_advertise={advertised}: the address of one machine, and a port of at least {FIRST_PORT}, or 0 for that of \
                 notify_bind: datagrams go nowhere else"
            )));
        }
        Ok(())
    }

    fn check_place(&self) -> Result<()> {
        if self.hosts.is_empty() {
            return Err(invalid("no host is given: cassandra://host1,host2,host3/keyspace"));
        }
        if self.handed_over.is_some() && (self.tls() != Tls::Off || self.login().is_some()) {
            return Err(invalid(
                "TLS and login are those of the session that was handed over, not of the options",
            ));
        }
        if self.keyspace.is_empty() {
            return Err(invalid("no keyspace is given: cassandra://host1,host2,host3/keyspace"));
        }
        if self.consistency == Consistency::LocalQuorum && self.datacenter.is_none() {
            return Err(invalid(
                "consistency=local_quorum needs datacenter=…, the same for every client of the table",
            ));
        }
        Ok(())
    }

    fn check_names(&self) -> Result<()> {
        // They become part of CQL text, so nothing that could end a quoted name may pass.
        check_name("keyspace", &self.keyspace)?;
        check_name("table", &self.table)?;
        match &self.datacenter {
            Some(name) if name.is_empty() || name.contains('\'') => {
                Err(invalid(format!("option datacenter={name}: not the name of a data centre")))
            }
            _ => Ok(()),
        }
    }
}

/// Returns whether datagrams go to this address. Port 0 stands for one that is free.
fn is_reachable(to: SocketAddr) -> bool {
    let port = if to.port() == 0 { FIRST_PORT } else { to.port() };
    is_unicast(SocketAddr::new(to.ip(), port))
}

/// Checks that a token outlives the row that it was given with, on whichever server's clock.
pub(crate) fn check_tokens(lease: Duration, max_clock_skew: Duration, token_ttl: Duration) -> Result<()> {
    let least = lease.saturating_add(max_clock_skew).saturating_mul(2);
    if token_ttl >= least {
        return Ok(());
    }
    Err(invalid(format!(
        "option token_ttl: at least {least:?}, twice the lease and the skew of the clocks, not {token_ttl:?}: else a later token \
         could be smaller"
    )))
}

fn check_name(what: &str, name: &str) -> Result<()> {
    let letters = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    let first = name.chars().next().is_some_and(|letter| letter.is_ascii_alphabetic());
    if letters && first && name.len() <= MAX_NAME {
        return Ok(());
    }
    Err(invalid(format!(
        "{what} {name:?}: a name begins with a letter and has at most {MAX_NAME} letters, digits and underscores"
    )))
}

fn check_seconds(name: &str, value: Duration) -> Result<()> {
    if value.subsec_nanos() == 0 && value >= Duration::from_secs(1) && value <= MAX_TTL {
        return Ok(());
    }
    Err(invalid(format!("option {name}: whole seconds, at least 1s and at most five years, not {value:?}")))
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Config, message).with_engine(crate::NAME)
}
