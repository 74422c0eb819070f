//! The meaning of the driver's errors.

use redis::{ErrorKind as DriverKind, RedisError};
use ylock_core::url::Address;
use ylock_core::{Error, ErrorKind};

use super::codes::{Code, Meaning, NO_LOGIN};

/// Another server of a cluster, on which a lock is to be looked for.
#[derive(Debug)]
pub(super) struct Redirection {
    pub(super) to: Address,
    /// True if this holds for one request only: the lock is on its way there.
    pub(super) only_now: bool,
}

impl Redirection {
    /// Reads `slot host:port`, as `from` said it.
    pub(super) fn of(error: &RedisError, from: &Address) -> Option<Self> {
        let (address, _) = error.redirect_node()?;
        let (host, port) = address.rsplit_once(':')?;
        // Without a host it is the server that said it.
        let host = if host.is_empty() { &from.host } else { host };
        let only_now = Code::of(error) == Some(Code::Ask);
        Some(Self { to: Address::new(host, port.parse().ok()?), only_now })
    }
}

/// Returns an error that says in our words what happened, with the driver's error as its source.
pub(super) fn classify(error: RedisError) -> Error {
    let ((kind, message), had_no_effect) = (meaning(&error), had_no_effect(&error));
    let said = Error::new(kind, message).with_engine(crate::NAME).with_source(error);
    if had_no_effect { said.without_effect() } else { said }
}

/// Returns whether the server has said that it refuses the request. Of a connection that has ended,
/// or an answer that has not come, nothing is known.
fn had_no_effect(error: &RedisError) -> bool {
    Code::of(error).zip(error.detail()).is_some_and(|(code, words)| code.leaves_nothing(words))
}

/// Returns the error for a connection that could not be made to this server: the request that
/// wanted it was not sent.
pub(super) fn unreachable(address: &Address, error: RedisError) -> Error {
    let (kind, message) = match Code::of(&error) {
        // Nothing was asked of a lock yet. The driver does not say whether the server has no such database, or wants a login first.
        Some(Code::General) => (ErrorKind::Config, "the server refused the database or the login"),
        _ => meaning(&error),
    };
    let message = match kind {
        ErrorKind::Unavailable if error.is_io_error() => format!("the server at {address} cannot be reached"),
        _ => format!("{message} (server {address})"),
    };
    Error::new(kind, message).with_engine(crate::NAME).with_source(error).without_effect()
}

/// Returns an error that may go away by itself, of the kind `Unavailable`.
pub(super) fn unavailable(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Unavailable, message).with_engine(crate::NAME)
}

/// Returns whether the connection is of no use any more, or leads to the wrong server.
pub(super) fn ends_connection(error: &RedisError) -> bool {
    error.is_unrecoverable_error()
        || error.is_io_error()
        || error.is_timeout()
        || Code::of(error).is_some_and(Code::ends_connection)
}

/// Returns whether the server's user may not do this.
pub(super) fn is_forbidden(error: &RedisError) -> bool {
    Code::of(error) == Some(Code::NoPerm)
}

/// Returns whether the server does not know the script.
pub(super) fn is_no_script(error: &RedisError) -> bool {
    Code::of(error) == Some(Code::NoScript)
}

fn meaning(error: &RedisError) -> Meaning {
    Code::of(error).map_or_else(|| without_code(error), Code::meaning)
}

/// Returns what an error means that no server sent, or with a code that is not known.
fn without_code(error: &RedisError) -> Meaning {
    match error.kind() {
        DriverKind::AuthenticationFailed => NO_LOGIN,
        DriverKind::InvalidClientConfig => (ErrorKind::Config, "the driver refused an option"),
        DriverKind::Io => (ErrorKind::Unavailable, "the server did not answer"),
        _ if error.is_timeout() || error.is_connection_dropped() || error.is_connection_refusal() => {
            (ErrorKind::Unavailable, "the server did not answer")
        }
        _ => (ErrorKind::Unexpected, "the server answered something unexpected"),
    }
}
