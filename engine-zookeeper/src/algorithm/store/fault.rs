//! The answers that say that a request has no result, and what they mean.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use ylock_core::{Error, ErrorKind};

/// The answer to a request that has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// There is no such node.
    NoNode,
    /// There is such a node already.
    NodeExists,
    /// The node to be removed has children.
    NotEmpty,
    /// The content has another version.
    BadVersion,
    /// The node above belongs to a session, and can have no children.
    NoChildren,
    /// The node belongs to another user.
    NotAllowed(Cause),
    /// The login was refused.
    LoginRefused(Cause),
    /// The servers do not know such a request.
    TooOld(Cause),
    /// The driver refused what it was given.
    BadOption(Cause),
    /// The servers' quota is used up.
    QuotaUsedUp(Cause),
    /// The session has ended.
    Ended(Cause),
    /// There is no server to go on with, and the session is given up.
    NoHosts,
    /// No answer came in time.
    Timeout,
    /// There is no connection, or it was lost before the answer came.
    ConnectionLoss,
    /// The number of the transaction is too large for a token.
    OutOfTokens,
    /// Another floor of the tokens is stored than the one that this client has agreed upon.
    OtherFloor,
    /// What is stored is kept in another version; what this says is for the operator.
    OtherVersion(String),
    /// Anything else: it is not known whether the request took effect.
    Other(Cause),
}

/// The error of a driver, for its words.
#[derive(Clone)]
pub struct Cause(Arc<dyn StdError + Send + Sync>);

impl Cause {
    /// Returns this error as a cause.
    pub fn new(error: impl StdError + Send + Sync + 'static) -> Self {
        Self(Arc::new(error))
    }
}

impl PartialEq for Cause {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_string() == other.0.to_string()
    }
}

impl Eq for Cause {}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Fault {
    /// Returns the error that says what happened, or these words.
    fn said(&self) -> Result<&Cause, &'static str> {
        match self {
            Self::NotAllowed(cause)
            | Self::LoginRefused(cause)
            | Self::TooOld(cause)
            | Self::BadOption(cause)
            | Self::QuotaUsedUp(cause)
            | Self::Ended(cause)
            | Self::Other(cause) => Ok(cause),
            Self::NoNode => Err("node not exists"),
            Self::NodeExists => Err("node already exists"),
            Self::NotEmpty => Err("node has not empty children"),
            Self::BadVersion => Err("mismatch version"),
            Self::NoChildren => Err("ephemeral node can not have children"),
            Self::NoHosts => Err("no available hosts"),
            Self::Timeout => Err("timeout"),
            Self::ConnectionLoss => Err("connection to server has lost"),
            Self::OutOfTokens => Err("the number of the transaction is too large"),
            Self::OtherFloor => Err("the stored floor of the tokens has changed"),
            Self::OtherVersion(_) => Err("what is stored is kept in another version"),
        }
    }
}

/// In the words of the driver: the error of the library says it in ours.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.said() {
            Ok(cause) => cause.0.fmt(f),
            Err(words) => f.write_str(words),
        }
    }
}

impl StdError for Fault {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.said().ok().and_then(|cause| cause.0.source())
    }
}

/// Returns whether the server has refused the request. After any other fault it is not known whether the request took effect, or still
/// will: the driver reports a broken connection in several ways, and keeps requests until it has another connection.
pub(crate) fn had_no_effect(fault: &Fault) -> bool {
    match fault {
        Fault::NoNode
        | Fault::NodeExists
        | Fault::NotEmpty
        | Fault::BadVersion
        | Fault::NoChildren
        | Fault::NotAllowed(_)
        | Fault::QuotaUsedUp(_)
        | Fault::TooOld(_)
        | Fault::BadOption(_) => true,
        Fault::LoginRefused(_)
        | Fault::Ended(_)
        | Fault::NoHosts
        | Fault::Timeout
        | Fault::ConnectionLoss
        | Fault::OutOfTokens
        | Fault::OtherFloor
        | Fault::OtherVersion(_)
        | Fault::Other(_) => false,
    }
}

/// Returns whether the session is of no use any more. Not after something "unexpected", which the driver answers when the runtime of its
/// connection has ended: the session goes on over another connection.
pub(crate) fn ends_session(fault: &Fault) -> bool {
    match fault {
        Fault::Ended(_) | Fault::LoginRefused(_) | Fault::NoHosts => true,
        Fault::NoNode
        | Fault::NodeExists
        | Fault::NotEmpty
        | Fault::BadVersion
        | Fault::NoChildren
        | Fault::NotAllowed(_)
        | Fault::TooOld(_)
        | Fault::BadOption(_)
        | Fault::QuotaUsedUp(_)
        | Fault::Timeout
        | Fault::ConnectionLoss
        | Fault::OutOfTokens
        | Fault::OtherFloor
        | Fault::OtherVersion(_)
        | Fault::Other(_) => false,
    }
}

/// Returns the kind of a failure, for the meter; `None` for a fault that is an answer, such as that a node is there or not there.
pub(crate) fn failure(fault: &Fault) -> Option<ErrorKind> {
    Some(meaning(fault).0).filter(|kind| *kind != ErrorKind::Unexpected)
}

/// Returns the kind of a failure of a transaction, for the meter. That the server has refused a write of it is an answer, whatever the
/// reason.
pub(crate) fn failure_of_transaction(fault: &Fault) -> Option<ErrorKind> {
    match fault {
        Fault::NotAllowed(_) | Fault::QuotaUsedUp(_) => None,
        fault => failure(fault),
    }
}

/// Returns an error that says in our words what happened, with the fault as its source.
pub(crate) fn to_error(fault: Fault) -> Error {
    if let Fault::OtherVersion(refusal) = fault {
        return Error::new(ErrorKind::Config, refusal).with_engine(crate::NAME);
    }
    let (kind, message) = meaning(&fault);
    Error::new(kind, message).with_engine(crate::NAME).with_source(fault)
}

fn meaning(fault: &Fault) -> (ErrorKind, &'static str) {
    match fault {
        Fault::NotAllowed(_) => (
            ErrorKind::Config,
            "the login may not do this: the nodes belong to another user; see acl in the options of the URL",
        ),
        Fault::LoginRefused(_) => (ErrorKind::Config, "the login was refused"),
        Fault::TooOld(_) => (ErrorKind::Config, "the server is too old: 3.5.3 or later is needed"),
        Fault::BadOption(_) => (ErrorKind::Config, "the driver refused an option"),
        Fault::QuotaUsedUp(_) => (ErrorKind::Config, "the quota of the server is used up"),
        Fault::Ended(_) => (ErrorKind::Unavailable, "the session has ended"),
        Fault::NoNode | Fault::NodeExists | Fault::NotEmpty | Fault::BadVersion | Fault::NoChildren => (
            ErrorKind::Unexpected,
            "what is stored for the lock is not what this version makes, or other programs change it",
        ),
        Fault::OutOfTokens => (
            ErrorKind::Config,
            "the tokens are at their end: stop all clients, set the tokens back that resources remember, remove the node token-floor below \
             the path of the URL, and start with a smaller token_floor",
        ),
        Fault::OtherFloor => (
            ErrorKind::Config,
            "another token_floor is stored in the node token-floor below the path of the URL than when this client connected, so that its tokens \
             would not grow from holder to holder: stop all clients of that path, and start them with one token_floor",
        ),
        Fault::OtherVersion(_) => (ErrorKind::Config, "what is stored is kept in another version"),
        Fault::NoHosts | Fault::Timeout | Fault::ConnectionLoss | Fault::Other(_) => {
            (ErrorKind::Unavailable, "the server did not answer")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What may have had an effect must never be taken for what had none.
    #[test]
    fn only_what_the_server_refuses_has_certainly_had_no_effect() {
        let cause = || Cause::new(std::io::Error::other("as the driver says it"));
        for refused in [
            Fault::NoNode,
            Fault::NodeExists,
            Fault::NotEmpty,
            Fault::BadVersion,
            Fault::NoChildren,
            Fault::NotAllowed(cause()),
            Fault::QuotaUsedUp(cause()),
            Fault::TooOld(cause()),
            Fault::BadOption(cause()),
        ] {
            assert!(had_no_effect(&refused), "{refused:?}");
        }
        for unknown in [
            Fault::LoginRefused(cause()),
            Fault::Ended(cause()),
            Fault::NoHosts,
            Fault::Timeout,
            Fault::ConnectionLoss,
            Fault::Other(cause()),
        ] {
            assert!(!had_no_effect(&unknown), "{unknown:?}");
        }
    }
}
