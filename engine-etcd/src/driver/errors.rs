//! The meaning of the servers' errors: what is to be done about each, and whether the request may have had its effect.

use tonic::{Code, Status};
use ylock_core::{Error, ErrorKind};

use crate::algorithm::store::Fault;

/// An error as the servers say it.
struct Known {
    /// A part of its text.
    text: &'static str,
    kind: ErrorKind,
    message: &'static str,
    /// True if the request has certainly had no effect.
    refused: bool,
    /// True if the next request is to go over another connection, to the next member.
    ends_connection: bool,
}

const KNOWN: &[Known] = &[
    refused("authentication failed", ErrorKind::Config, "the login was refused"),
    refused(
        "authentication is not enabled",
        ErrorKind::Config,
        "the servers want no login: leave user and password out of the URL",
    ),
    refused(
        "user name is empty",
        ErrorKind::Config,
        "the servers want a login: etcd://user:password@host/prefix",
    ),
    refused(
        "permission denied",
        ErrorKind::Config,
        "the login may not do this: it needs the permission readwrite on the prefix",
    ),
    // The transaction that uses up the last of it is carried out, and answered like this all the same.
    unknown(
        "database space exceeded",
        "the space of the servers is used up: compact and defragment them, and disarm the alarm",
    ),
    // By a member that is behind; and by one that has caught up by a snapshot, until the next entry of the log.
    Known {
        ends_connection: true,
        ..refused("too many requests", ErrorKind::Unavailable, "this member of the cluster is behind")
    },
    refused(
        "request is too large",
        ErrorKind::Unexpected,
        "the servers allow smaller requests only: see --max-request-bytes",
    ),
    refused(
        "too many operations in txn",
        ErrorKind::Config,
        "the servers allow fewer steps in a transaction: see --max-txn-ops",
    ),
    Known {
        ends_connection: true,
        ..refused(END_OF_LOGIN[0], ErrorKind::Unavailable, "the login has ended")
    },
    Known {
        ends_connection: true,
        ..refused(END_OF_LOGIN[1], ErrorKind::Unavailable, "the login has ended")
    },
    Known {
        ends_connection: true,
        ..refused(
            "not supported for learner",
            ErrorKind::Unavailable,
            "this member of the cluster is a learner",
        )
    },
    Known { ends_connection: true, ..unknown("no leader", "the cluster has no leader") },
    Known { ends_connection: true, ..unknown("server stopped", "the server was stopped") },
    unknown("leader changed", "the leader of the cluster has changed"),
    unknown("request timed out", "the cluster did not answer in time"),
];

const fn refused(text: &'static str, kind: ErrorKind, message: &'static str) -> Known {
    Known { text, kind, message, refused: true, ends_connection: false }
}

const fn unknown(text: &'static str, message: &'static str) -> Known {
    Known { text, kind: ErrorKind::Unavailable, message, refused: false, ends_connection: false }
}

/// What servers say of a login that has ended, or that was made before users or roles were changed.
const END_OF_LOGIN: [&str; 2] = ["invalid auth token", "auth store is old"];
/// The text of the error that says that there is no such lease.
const NO_LEASE: &str = "requested lease not found";
/// What the driver says of a request that was not sent, because the connection has ended before.
const NOT_SENT: &str = "ylock: the connection has ended";

/// Returns what an error means for the algorithm, and whether the connection is of no use any more.
pub(super) fn classify(status: &Status) -> (Fault, bool) {
    if status.message().contains(NO_LEASE) {
        return (Fault::LeaseGone, false);
    }
    if status.message() == NOT_SENT {
        return (Fault::Refused(error(ErrorKind::Unavailable, "the connection has ended", status)), true);
    }
    if let Some(known) = KNOWN.iter().find(|known| status.message().contains(known.text)) {
        let error = error(known.kind, known.message, status);
        let fault = if known.refused { Fault::Refused(error) } else { Fault::Unknown(error) };
        return (fault, known.ends_connection);
    }
    let (kind, message) = match status.code() {
        Code::Unauthenticated | Code::PermissionDenied => {
            (ErrorKind::Config, "the server refused the request")
        }
        Code::Unavailable | Code::Cancelled | Code::DeadlineExceeded | Code::Unknown | Code::Aborted => {
            (ErrorKind::Unavailable, "the server did not answer")
        }
        _ => (ErrorKind::Unexpected, "the server answered something unexpected"),
    };
    // What the servers did not say themselves comes from the connection.
    (Fault::Unknown(error(kind, message, status)), kind == ErrorKind::Unavailable)
}

/// Returns whether a request was refused, and has had no effect, because the login has ended.
pub(super) fn is_end_of_login(status: &Status) -> bool {
    END_OF_LOGIN.iter().any(|text| status.message().contains(text))
}

/// Returns the error of a login or of a question that changes nothing.
pub(super) fn of_question(status: &Status) -> Error {
    match classify(status).0 {
        Fault::Refused(error) | Fault::Unknown(error) => error,
        Fault::LeaseGone => error(ErrorKind::Unexpected, "the server answered something unexpected", status),
    }
}

/// Returns the status of a request that was not sent.
pub(super) fn not_ready(_: tonic::transport::Error) -> Status {
    Status::unavailable(NOT_SENT)
}

/// Returns an error that may go away by itself.
pub(super) fn unavailable(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Unavailable, message).with_engine(crate::NAME)
}

pub(super) fn unexpected(message: &str) -> Error {
    Error::new(ErrorKind::Unexpected, message).with_engine(crate::NAME)
}

pub(super) fn config(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Config, message).with_engine(crate::NAME)
}

fn error(kind: ErrorKind, message: &'static str, status: &Status) -> Error {
    Error::new(kind, message).with_engine(crate::NAME).with_source(status.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_that_is_gone_is_told_apart() {
        let status = Status::not_found("etcdserver: requested lease not found");
        assert!(matches!(classify(&status), (Fault::LeaseGone, false)));
    }

    /// What had an effect, or may have, must never be taken for what had none.
    #[test]
    fn only_what_the_servers_refuse_has_certainly_had_no_effect() {
        for text in [
            "etcdserver: permission denied",
            "etcdserver: authentication failed, invalid user ID or password",
            "etcdserver: user name is empty",
            "etcdserver: invalid auth token",
            "etcdserver: request is too large",
            "etcdserver: too many requests",
            "etcdserver: rpc not supported for learner",
            NOT_SENT,
        ] {
            assert!(matches!(classify(&Status::unknown(text)).0, Fault::Refused(_)), "{text}");
        }
        for text in [
            "etcdserver: request timed out",
            "etcdserver: leader changed",
            "etcdserver: no leader",
            "etcdserver: server stopped",
            "etcdserver: mvcc: database space exceeded",
            "h2 error",
            "",
        ] {
            assert!(matches!(classify(&Status::unavailable(text)).0, Fault::Unknown(_)), "{text}");
        }
    }

    #[test]
    fn a_broken_connection_is_given_up_and_one_that_works_is_not() {
        assert!(classify(&Status::unavailable("tcp connect error")).1);
        assert!(classify(&Status::unavailable("etcdserver: no leader")).1);
        assert!(classify(&Status::resource_exhausted("etcdserver: too many requests")).1);
        assert!(!classify(&Status::permission_denied("etcdserver: permission denied")).1);
        assert!(!classify(&Status::unavailable("etcdserver: request timed out")).1);
    }
}
