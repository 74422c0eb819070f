//! Checks what the server is, and whether locks can be kept on it.

use redis::aio::MultiplexedConnection;
use ylock_core::url::Address;
use ylock_core::{Error, ErrorKind, Result};

use super::errors;

/// The first version with script flags and with channels that belong to a part of a cluster.
const NEEDED: (u32, u32) = (7, 0);

/// The role that a server is meant to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Single,
    /// The server that the Sentinels name.
    Master,
    PartOfCluster,
}

/// Looks at the server once, when a client connects.
pub(super) async fn check(
    connection: &mut MultiplexedConnection,
    address: &Address,
    kind: Kind,
) -> Result<()> {
    let said: Result<String, _> = redis::cmd("INFO").query_async(connection).await;
    let said = match said {
        Ok(said) => said,
        // A user that may not ask for this may still keep locks.
        Err(error) if errors::is_forbidden(&error) => return Ok(()),
        Err(error) => return Err(errors::classify(error)),
    };
    check_version(field(&said, "redis_version"), address)?;
    let (is_replica, is_part) =
        (field(&said, "role") == Some("slave"), field(&said, "cluster_enabled") == Some("1"));
    check_role(is_replica, is_part, kind, address)
}

/// Returns a field of the answer to `INFO`.
pub(super) fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
}

fn check_role(is_replica: bool, is_part: bool, kind: Kind, address: &Address) -> Result<()> {
    match (kind, is_replica, is_part) {
        (Kind::PartOfCluster, _, true) | (Kind::Single | Kind::Master, false, false) => Ok(()),
        (Kind::PartOfCluster, _, false) => Err(wrong(
            address,
            "is not part of a cluster: its URL must begin with redis://, not redis+cluster://",
        )),
        (Kind::Single | Kind::Master, _, true) => {
            Err(wrong(address, "is part of a cluster: its URL must begin with redis+cluster://"))
        }
        (Kind::Single, true, _) => {
            Err(wrong(address, "is a replica, which takes no locks: name the master that it follows"))
        }
        (Kind::Master, true, _) => Err(errors::unavailable(format!(
            "the server at {address} is a replica: another server is about to take over"
        ))),
    }
}

fn check_version(version: Option<&str>, address: &Address) -> Result<()> {
    let Some(version) = version else { return Ok(()) };
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    let found = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    if found >= NEEDED {
        return Ok(());
    }
    Err(wrong(address, &format!("has version {version}; {}.{} or later is needed", NEEDED.0, NEEDED.1)))
}

fn wrong(address: &Address, what: &str) -> Error {
    Error::new(ErrorKind::Config, format!("the server at {address} {what}")).with_engine(crate::NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_server_is_told_which_version_is_needed() {
        let here = Address::new("here", 1);
        for old in ["6.2.14", "5.0", "nonsense"] {
            let error = check_version(Some(old), &here).unwrap_err();
            assert!(error.to_string().contains("7.0 or later"), "{error}");
        }
        assert!(check_version(Some("7.0.15"), &here).is_ok() && check_version(Some("10.0"), &here).is_ok());
    }
}
