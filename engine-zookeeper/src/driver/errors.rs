//! The meaning of the driver's errors.

use ylock_core::{Error, ErrorKind};

/// The answer to a request that has no result.
pub(crate) use zookeeper_client::Error as Fault;

/// Returns whether the server has refused the request. After any other fault it is not known whether the request took effect, or still
/// will: the driver reports a broken connection in several ways, and keeps requests until it has another connection.
pub(crate) fn had_no_effect(fault: &Fault) -> bool {
    matches!(
        fault,
        Fault::NoNode
            | Fault::NodeExists
            | Fault::NotEmpty
            | Fault::NoAuth
            | Fault::BadVersion
            | Fault::InvalidAcl
            | Fault::NoChildrenForEphemerals
            | Fault::QuotaExceeded
            | Fault::Unimplemented
            | Fault::BadArguments(_)
    )
}

/// Returns whether the session is of no use any more. Not after something "unexpected", which the driver answers when the runtime of its
/// connection has ended: the session goes on over [another connection](super::line).
pub(super) fn ends_session(fault: &Fault) -> bool {
    matches!(fault, Fault::SessionExpired | Fault::ClientClosed | Fault::AuthFailed | Fault::NoHosts)
}

/// Returns the kind of a failure, for the meter; `None` for a fault that is an answer, such as that a node is there or not there.
pub(super) fn failure(fault: &Fault) -> Option<ErrorKind> {
    Some(meaning(fault).0).filter(|kind| *kind != ErrorKind::Unexpected)
}

/// Returns an error that says in our words what happened, with the driver's error as its source.
pub(crate) fn to_error(fault: Fault) -> Error {
    let (kind, message) = meaning(&fault);
    Error::new(kind, message).with_engine(crate::NAME).with_source(fault)
}

fn meaning(fault: &Fault) -> (ErrorKind, &'static str) {
    match fault {
        Fault::NoAuth | Fault::InvalidAcl => (
            ErrorKind::Config,
            "the login may not do this: the nodes belong to another user; see acl in the options of the URL",
        ),
        Fault::AuthFailed => (ErrorKind::Config, "the login was refused"),
        Fault::Unimplemented => (ErrorKind::Config, "the server is too old: 3.5.3 or later is needed"),
        Fault::BadArguments(_) => (ErrorKind::Config, "the driver refused an option"),
        Fault::QuotaExceeded => (ErrorKind::Config, "the quota of the server is used up"),
        Fault::SessionExpired | Fault::ClientClosed => (ErrorKind::Unavailable, "the session has ended"),
        Fault::NoNode
        | Fault::NodeExists
        | Fault::NotEmpty
        | Fault::BadVersion
        | Fault::NoChildrenForEphemerals => (
            ErrorKind::Unexpected,
            "what is stored for the lock is not what this version makes, or other programs change it",
        ),
        _ => (ErrorKind::Unavailable, "the server did not answer"),
    }
}
