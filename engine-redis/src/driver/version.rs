//! The version in which everything below a prefix is kept: the first client writes it, and each later one is refused where it is another one.
//!
//! Each connection asks for it, so a client learns of another version with its next connection at the latest. What asks for it changes nothing once the
//! version is there: it is answered also where no memory is left, and where the server takes no writes.

use std::sync::atomic::Ordering;

use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue, RedisError, RedisResult, Value};
use ylock_core::stored_version::OtherVersion;
use ylock_core::{Error, Result};

use super::connector::Connector;
use super::errors;
use super::scripts::{self, Call};

/// The version of all that is below a prefix.
const VERSION: &str = "1";
/// The field of the hash that says it.
const FIELD: &str = "version";

/// Asks the server at the other end of a new connection, and fails if it says another version. Returns whether it says one.
pub(super) async fn check(connector: &Connector, connection: &mut MultiplexedConnection) -> Result<bool> {
    match said(connector, connection).await {
        Ok(said) => judge(connector, said).map(|()| true),
        // Another server of the cluster keeps the version. A client asks that one before it is used.
        Err(error) if connector.is_of_cluster && is_redirection(&error) => Ok(false),
        Err(error) => Err(errors::classify(error)),
    }
}

/// Returns what the server says. A prefix without a version is new, or of clients that wrote the first version without saying so.
async fn said(connector: &Connector, connection: &mut MultiplexedConnection) -> RedisResult<Value> {
    let mut question = redis::cmd("HGET");
    question.arg(&connector.versioned).arg(FIELD);
    match connector.answer(question.query_async(connection)).await? {
        Value::Nil => {
            let first = first(connector).by_text();
            connector.answer(first.query_async(connection)).await
        }
        said => Ok(said),
    }
}

/// Returns the call that says the version of this client, unless one is said already.
pub(super) fn first(connector: &Connector) -> Call {
    Call::at(&scripts::VERSION, connector.versioned.clone()).arg(VERSION)
}

/// Fails if this is not the version of this client, and notes it for requests to other servers.
pub(super) fn judge(connector: &Connector, said: Value) -> Result<()> {
    let judged = check_said(&connector.versioned, said);
    connector.is_other_version.store(judged.is_err(), Ordering::Relaxed);
    judged
}

/// Fails if this is not the version of this client.
fn check_said(versioned: &str, said: Value) -> Result<()> {
    let found = String::from_redis_value(said).map_err(|_| odd(versioned))?;
    if found == VERSION {
        return Ok(());
    }
    let prefix = versioned.strip_suffix(":{version}").unwrap_or(versioned);
    let other = OtherVersion {
        of: &format!("the prefix {prefix} of the server"),
        place: "prefix",
        found: &found,
        own: VERSION,
        remedy: &format!("delete all keys below the prefix: {prefix}:*"),
    };
    Err(other.refused(crate::NAME))
}

fn is_redirection(error: &RedisError) -> bool {
    matches!(error.code(), Some("MOVED" | "ASK" | "TRYAGAIN"))
}

fn odd(versioned: &str) -> Error {
    let message = format!("the key {versioned} does not say in which version the locks are kept");
    Error::new(ylock_core::ErrorKind::Unexpected, message).with_engine(crate::NAME)
}

#[cfg(test)]
mod tests {
    use ylock_core::ErrorKind;

    use super::*;

    #[test]
    fn only_the_version_of_this_client_will_do() {
        let said =
            |version: &str| check_said("shop:{version}", Value::BulkString(version.as_bytes().to_vec()));
        assert!(said(VERSION).is_ok());
        for other in ["2", "01", "", "later"] {
            let error = said(other).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config);
            for part in ["prefix shop of", &format!("version {other}"), "version 1", "shop:*"] {
                assert!(error.to_string().contains(part), "{part}: {error}");
            }
        }
        assert_eq!(check_said("shop:{version}", Value::Int(1)).map_err(|error| error.kind()), Ok(()));
        assert_eq!(check_said("shop:{version}", Value::Nil).unwrap_err().kind(), ErrorKind::Unexpected);
    }
}
