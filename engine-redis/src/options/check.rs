//! Checks of the options, whether they come from a URL or from code.

use ylock_core::options::Tls;
use ylock_core::{Error, ErrorKind, Result};

use super::{Notify, RedisOptions, Topology};

/// The limit for the prefix, which is stored with every lock.
const MAX_PREFIX_BYTES: usize = 64;

impl RedisOptions {
    /// Checks that every value is within its limits.
    ///
    /// # Errors
    /// [`Config`](ErrorKind::Config) that names the option and the limit.
    pub fn check(&self) -> Result<()> {
        self.check_servers()?;
        self.check_prefix()?;
        if self.database < 0 {
            return Err(invalid(format!("{} is not the number of a database", self.database)));
        }
        if self.tls() != Tls::Off && !cfg!(feature = "tls") {
            return Err(invalid(
                "TLS is not compiled in: switch on the Cargo feature \"tls\" of ylock-engine-redis, or \"redis-tls\" of ylock",
            ));
        }
        if self.tls() != Tls::Off && self.handed_over.is_some() {
            return Err(invalid("TLS comes from the client that was handed over: leave out its options"));
        }
        self.reach.check(self.reach.lease).map_err(|error| error.with_engine(crate::NAME))?;
        self.check_notify()
    }

    /// Checks the prefix. The text in braces decides where in a cluster a lock is: braces in a prefix would put all locks in one place.
    fn check_prefix(&self) -> Result<()> {
        let prefix = &self.prefix;
        let is_usable =
            !prefix.is_empty() && prefix.len() <= MAX_PREFIX_BYTES && !prefix.contains(['{', '}']);
        if is_usable {
            return Ok(());
        }
        Err(invalid(format!("option prefix={prefix}: must be 1 to {MAX_PREFIX_BYTES} bytes, without braces")))
    }

    fn check_servers(&self) -> Result<()> {
        if self.addresses.is_empty() || self.addresses.iter().any(|address| address.host.is_empty()) {
            return Err(invalid("no host is given: name one, as in redis://host:port/database"));
        }
        match &self.topology {
            Topology::Sentinel { service } if service.is_empty() => Err(invalid(
                "no service is given: redis+sentinel://host1,host2/service, with the name by which the Sentinels know the master",
            )),
            Topology::Cluster if self.database != 0 => {
                Err(invalid("a cluster has one database, 0: redis+cluster://host1,host2"))
            }
            Topology::Single | Topology::Cluster if self.sentinel_password.is_some() => Err(invalid(
                "a login to Sentinels is given, but no Sentinels: name them, as in redis+sentinel://host1,host2/service",
            )),
            _ if self.sentinel_user.is_some() && self.sentinel_password.is_none() => {
                Err(invalid("sentinel_user has no sentinel_password"))
            }
            _ => Ok(()),
        }
    }

    fn check_notify(&self) -> Result<()> {
        match self.notify() {
            Notify::Off { .. } if self.notify == Some(true) => {
                Err(invalid("notify=on and poll=… contradict each other"))
            }
            Notify::Off { poll, poll_longest } if poll.is_zero() || poll_longest < poll => {
                Err(invalid(format!(
                    "poll is {poll:?} and poll_longest {poll_longest:?}: the first pause must be longer than zero, and the longest not shorter"
                )))
            }
            _ => Ok(()),
        }
    }
}

pub(super) fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Config, message).with_engine(crate::NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_has_limits_and_no_braces() {
        let long = "x".repeat(MAX_PREFIX_BYTES);
        let checked = |prefix: &str| RedisOptions::new("h", 1).with_prefix(prefix).check();
        for prefix in ["shop", "shop:1", &long] {
            checked(prefix).unwrap();
        }
        for prefix in ["", "{shop}", "shop}", &format!("{long}x")] {
            let error = checked(prefix).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config);
            assert!(error.to_string().contains("prefix="), "{prefix}: {error}");
        }
    }
}
