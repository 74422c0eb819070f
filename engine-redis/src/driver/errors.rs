//! The meaning of the driver's errors.

use redis::{ErrorKind as DriverKind, RedisError, ServerErrorKind};
use ylock_core::{Error, ErrorKind};

use crate::options::Address;

type Meaning = (ErrorKind, &'static str);

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
        let only_now = error.kind() == DriverKind::Server(ServerErrorKind::Ask);
        Some(Self { to: Address::new(host, port.parse().ok()?), only_now })
    }
}

/// Returns an error that says in our words what happened, with the driver's error as its source.
pub(super) fn classify(error: RedisError) -> Error {
    let (kind, message) = meaning(&error);
    Error::new(kind, message).with_engine(crate::NAME).with_source(error)
}

/// Returns the error for a connection that could not be made to this server.
pub(super) fn unreachable(address: &Address, error: RedisError) -> Error {
    let (kind, message) = match error.kind() {
        // Nothing was asked of a lock yet. The driver does not say whether the server has no such database, or wants a login first.
        DriverKind::Server(ServerErrorKind::ResponseError) => {
            (ErrorKind::Config, "the server refused the database or the login")
        }
        _ => meaning(&error),
    };
    let message = match kind {
        ErrorKind::Unavailable if error.is_io_error() => format!("the server at {address} cannot be reached"),
        _ => format!("{message} (server {address})"),
    };
    Error::new(kind, message).with_engine(crate::NAME).with_source(error)
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
        || matches!(error.code(), Some("READONLY" | "LOADING" | "MASTERDOWN" | "CLUSTERDOWN"))
}

/// Returns whether the server does not know the script.
pub(super) fn is_no_script(error: &RedisError) -> bool {
    error.kind() == DriverKind::Server(ServerErrorKind::NoScript)
}

fn meaning(error: &RedisError) -> Meaning {
    match error.code() {
        Some("NOAUTH" | "WRONGPASS") => (ErrorKind::Config, "the login was refused"),
        Some("NOPERM") => (
            ErrorKind::Config,
            "the server's user may not do this; the rights that it needs are in the engine's guarantees.md",
        ),
        Some("WRONGTYPE") => (ErrorKind::Unexpected, "something other than a lock is stored at its key"),
        Some("OOM") => (ErrorKind::Unavailable, "the server's memory is full"),
        Some("READONLY") => (ErrorKind::Unavailable, "the server is a replica that only answers reads"),
        Some("LOADING" | "BUSY" | "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" | "NOREPLICAS" | "MISCONF") => {
            (ErrorKind::Unavailable, "the server cannot carry out requests now")
        }
        Some("MOVED" | "ASK" | "CROSSSLOT") => {
            (ErrorKind::Config, "the server is part of a cluster: its URL must begin with redis+cluster://")
        }
        _ => of_kind(error),
    }
}

fn of_kind(error: &RedisError) -> Meaning {
    match error.kind() {
        DriverKind::AuthenticationFailed => (ErrorKind::Config, "the login was refused"),
        DriverKind::InvalidClientConfig => (ErrorKind::Config, "the driver refused an option"),
        DriverKind::Io => (ErrorKind::Unavailable, "the server did not answer"),
        _ if error.is_timeout() || error.is_connection_dropped() || error.is_connection_refusal() => {
            (ErrorKind::Unavailable, "the server did not answer")
        }
        DriverKind::Server(ServerErrorKind::ResponseError) => {
            (ErrorKind::Unexpected, "what is stored for the lock is not what this version writes")
        }
        _ => (ErrorKind::Unexpected, "the server answered something unexpected"),
    }
}
