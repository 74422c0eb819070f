//! Checks of the options, whether they come from a URL or from code.

use ylock_core::options::Tls;
use ylock_core::{Error, ErrorKind, Result};

use super::{Acl, ZookeeperOptions};

/// The limit for the base: a longer one leaves too little of what may be written about one session.
const MAX_BASE_BYTES: usize = 200;

/// The limit for the floor of the tokens: half of all numbers, so that the other half is left for the tokens above it.
const MOST_TOKEN_FLOOR: i64 = i64::MAX / 2;

impl ZookeeperOptions {
    /// Checks that every value is within its limits.
    ///
    /// # Errors
    /// [`Config`](ErrorKind::Config) that names the option and the limit.
    pub fn check(&self) -> Result<()> {
        if self.hosts.is_empty() {
            return Err(invalid("no host is given: name them, as in zookeeper://host1,host2,host3/path"));
        }
        self.check_hosts()?;
        self.check_base()?;
        self.check_tls()?;
        self.check_token_floor()?;
        match self.login() {
            Some(login) if login.user.is_empty() => {
                return Err(invalid("a login is a user and a password: zookeeper://user:password@host/path"));
            }
            None if self.acl == Acl::Creator && self.handed_over.is_none() => {
                return Err(invalid("acl=creator needs a login: zookeeper://user:password@host/path"));
            }
            _ => {}
        }
        self.check_times()
    }

    /// Checks the hosts: the driver has a syntax of its own for a list of servers.
    fn check_hosts(&self) -> Result<()> {
        let odd = |c: char| !(c.is_ascii_alphanumeric() || "-._:%".contains(c));
        match self.hosts.iter().find(|host| host.name.is_empty() || host.name.contains(odd)) {
            Some(host) => Err(invalid(format!("{:?} is not the name or address of a host", host.name))),
            None => Ok(()),
        }
    }

    fn check_base(&self) -> Result<()> {
        let base = &self.base;
        let bad = |part: &str| {
            let odd =
                |c: char| c.is_control() || matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..='\u{ffff}');
            part.is_empty() || part == "." || part == ".." || part.contains(odd)
        };
        let parts = base.strip_prefix('/').map(|rest| rest.split('/'));
        let Some(mut parts) = parts else {
            return Err(invalid(format!("the path {base:?} of the base must begin with a slash")));
        };
        if base.len() > MAX_BASE_BYTES {
            return Err(invalid(format!("the path has {} bytes; the limit is {MAX_BASE_BYTES}", base.len())));
        }
        if parts.clone().any(bad) || parts.next() == Some("zookeeper") {
            return Err(invalid(format!("{base:?} is not the path of a node that locks can be below")));
        }
        Ok(())
    }

    fn check_tls(&self) -> Result<()> {
        if self.tls() != Tls::Off && !cfg!(feature = "tls") {
            return Err(invalid(
                "TLS is not compiled in: switch on the Cargo feature \"tls\" of ylock-engine-zookeeper, or \"zookeeper-tls\" of ylock",
            ));
        }
        // A connector that was handed over has its own certificate, unless the options say of whom to trust what is encrypted.
        if self.tls() == Tls::PlatformRoots
            && (self.handed_over.is_none() || self.client_certificate().is_some())
        {
            return Err(invalid("tls=on needs tls_ca, the file with the authorities to trust"));
        }
        Ok(())
    }

    fn check_token_floor(&self) -> Result<()> {
        match self.token_floor {
            Some(floor) if !(0..=MOST_TOKEN_FLOOR).contains(&floor) => Err(invalid(format!(
                "option token_floor={floor}: must be between 0 and {MOST_TOKEN_FLOOR}, so that there is room for tokens above it"
            ))),
            _ => Ok(()),
        }
    }

    fn check_times(&self) -> Result<()> {
        let session = self.session();
        if session.is_zero() {
            return Err(invalid("session must be longer than zero"));
        }
        let lease = self.reach.lease.min(session * 5 / 6);
        self.reach.check(lease).map_err(|error| match lease < self.reach.lease {
            true => invalid(format!("{error}; no lease is longer than five sixths of session={session:?}")),
            false => error.with_engine(crate::NAME),
        })
    }
}

pub(super) fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Config, message).with_engine(crate::NAME)
}
