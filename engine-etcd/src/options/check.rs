//! Checks of the options, whether they come from a URL or from code.

use ylock_core::options::Tls;
use ylock_core::{Error, ErrorKind, Result};

use super::EtcdOptions;

/// The limit for the prefix, so that there is room for the names of locks: a key may be long, but each of them is kept in memory by the servers.
const MAX_PREFIX_BYTES: usize = 200;

impl EtcdOptions {
    /// Checks that every value is within its limits.
    ///
    /// # Errors
    /// [`Config`](ErrorKind::Config) that names the option and the limit.
    pub fn check(&self) -> Result<()> {
        if self.hosts.is_empty() {
            return Err(invalid("no host is given: name them, as in etcd://host1,host2,host3/prefix"));
        }
        let odd = |c: char| !(c.is_ascii_alphanumeric() || "-._:%".contains(c));
        if let Some(host) = self.hosts.iter().find(|host| host.name.is_empty() || host.name.contains(odd)) {
            return Err(invalid(format!("{:?} is not the name or address of a host", host.name)));
        }
        self.check_prefix()?;
        if self.tls() != Tls::Off && !cfg!(feature = "tls") {
            return Err(invalid(
                "TLS is not compiled in: switch on the Cargo feature \"tls\" of ylock-engine-etcd, or \"etcd-tls\" of ylock",
            ));
        }
        if self.login().is_some_and(|login| login.user.is_empty()) {
            return Err(invalid("a login is a user and a password: etcd://user:password@host/prefix"));
        }
        self.reach.check(self.reach.lease).map_err(|error| error.with_engine(crate::NAME))
    }

    fn check_prefix(&self) -> Result<()> {
        let prefix = &self.prefix;
        if prefix.len() > MAX_PREFIX_BYTES {
            let message = format!("the prefix has {} bytes; the limit is {MAX_PREFIX_BYTES}", prefix.len());
            return Err(invalid(message));
        }
        let bad = |part: &str| part.is_empty() || part.contains(char::is_control);
        if prefix.split('/').any(bad) {
            return Err(invalid(format!(
                "{prefix:?} is not a prefix that locks can be below: it is words with slashes between them"
            )));
        }
        Ok(())
    }
}

pub(super) fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Config, message).with_engine(crate::NAME)
}
