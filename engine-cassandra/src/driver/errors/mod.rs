//! Translates the driver's errors into what they mean to a caller.

use std::error::Error as StdError;

use scylla::errors::{
    ConnectionError, ConnectionPoolError, DbError, ExecutionError, MetadataError, PrepareError,
    RequestAttemptError, SchemaAgreementError,
};
use ylock_core::{Error, ErrorKind};

pub(super) mod connect;

/// A kind, and what happened in a few words; the driver's own words follow as the source.
pub(super) type Meaning = (ErrorKind, &'static str);

const NO_NODE: Meaning = (ErrorKind::Unavailable, "no node of the cluster can be reached");
const NO_ANSWER: Meaning = (ErrorKind::Unavailable, "the cluster did not answer in time");
const BROKEN: Meaning = (ErrorKind::Unavailable, "the connection broke before the answer came");
const NO_AGREEMENT: Meaning = (ErrorKind::Unavailable, "the nodes have not agreed on the new schema");
const ODD: Meaning = (ErrorKind::Unexpected, "the cluster or its driver did something unexpected");

/// Returns the error for a request that failed. Whether it had an effect is not known, whatever the error says: a write that timed out
/// may still arrive, and one that was refused by a busy node may have been taken by another.
pub(super) fn classify(error: ExecutionError) -> Error {
    with_meaning(execution(&error), error)
}

/// Returns whether the answer of a node, or the lack of one, says that another node may do better.
pub(super) fn is_refusal(error: &RequestAttemptError) -> bool {
    attempt(error).0 == ErrorKind::Unavailable
}

/// Returns the error for a statement that could not be prepared.
pub(super) fn prepare(error: PrepareError) -> Error {
    with_meaning(preparation(&error), error)
}

/// Returns the error for nodes that did not agree on the schema.
pub(super) fn agreement(error: SchemaAgreementError) -> Error {
    with_meaning(NO_AGREEMENT, error)
}

/// Returns the error for a driver that could not read which nodes there are.
pub(super) fn metadata(error: MetadataError) -> Error {
    with_meaning(meta(&error), error)
}

/// Returns the error for an answer that cannot be decoded.
pub(super) fn answer(error: impl StdError + Send + Sync + 'static) -> Error {
    with_meaning((ErrorKind::Unexpected, "an answer of the cluster cannot be understood"), error)
}

fn with_meaning((kind, message): Meaning, source: impl StdError + Send + Sync + 'static) -> Error {
    Error::new(kind, message).with_engine(crate::NAME).with_source(source)
}

fn execution(error: &ExecutionError) -> Meaning {
    match error {
        ExecutionError::EmptyPlan => NO_NODE,
        ExecutionError::ConnectionPoolError(error) => pool(error),
        ExecutionError::LastAttemptError(error) => attempt(error),
        ExecutionError::MetadataError(error) => meta(error),
        ExecutionError::PrepareError(error) => preparation(error),
        ExecutionError::RequestTimeout(_) => NO_ANSWER,
        ExecutionError::SchemaAgreementError(_) => NO_AGREEMENT,
        _ => ODD,
    }
}

fn preparation(error: &PrepareError) -> Meaning {
    match error {
        PrepareError::ConnectionPoolError(error) => pool(error),
        PrepareError::AllAttemptsFailed { first_attempt } => attempt(first_attempt),
        _ => ODD,
    }
}

fn attempt(error: &RequestAttemptError) -> Meaning {
    match error {
        RequestAttemptError::BrokenConnectionError(_) => BROKEN,
        RequestAttemptError::DbError(error, _) => database(error),
        RequestAttemptError::UnableToAllocStreamId => {
            (ErrorKind::Unavailable, "too many requests of this client wait for an answer")
        }
        _ => ODD,
    }
}

/// Returns what a server's error means: the one table of its codes.
pub(super) fn database(error: &DbError) -> Meaning {
    match error {
        DbError::Unavailable { .. } => (ErrorKind::Unavailable, "too few replicas are up"),
        DbError::ReadTimeout { .. } | DbError::WriteTimeout { .. } => {
            (ErrorKind::Unavailable, "too few replicas answered in time")
        }
        // A node that is being stopped answers with any of these, and another node will do.
        DbError::ReadFailure { .. }
        | DbError::WriteFailure { .. }
        | DbError::IsBootstrapping
        | DbError::ServerError => (ErrorKind::Unavailable, "a node failed to carry out the request"),
        DbError::Overloaded | DbError::RateLimitReached { .. } => {
            (ErrorKind::Unavailable, "the cluster is overloaded")
        }
        DbError::AuthenticationError => (ErrorKind::Config, "the login was refused"),
        DbError::Unauthorized => (ErrorKind::Config, "the user may not do this"),
        // Among them a table or keyspace that was dropped.
        DbError::Invalid | DbError::SyntaxError | DbError::ConfigError => {
            (ErrorKind::Config, "the cluster refused the statement")
        }
        // The driver's list may grow; what it has besides is about statements that are not sent for locks.
        _ => ODD,
    }
}

fn pool(error: &ConnectionPoolError) -> Meaning {
    match error {
        ConnectionPoolError::Broken { last_connection_error } => connection(last_connection_error),
        ConnectionPoolError::Initializing => NO_NODE,
        _ => ODD,
    }
}

/// Returns what the loss of a connection means, while others may still be there: never the caller's fault.
fn connection(error: &ConnectionError) -> Meaning {
    match error {
        ConnectionError::ConnectTimeout | ConnectionError::IoError(_) => NO_NODE,
        _ => BROKEN,
    }
}

fn meta(error: &MetadataError) -> Meaning {
    match error {
        MetadataError::ConnectionPoolError(error) => pool(error),
        _ => (ErrorKind::Unavailable, "the cluster did not say which nodes it has"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_node_is_asked_where_this_one_cannot_and_not_where_no_node_would() {
        let of = |error| is_refusal(&RequestAttemptError::DbError(error, String::new()));
        assert!(of(DbError::Overloaded) && of(DbError::IsBootstrapping) && of(DbError::ServerError));
        assert!(is_refusal(&RequestAttemptError::UnableToAllocStreamId));
        assert!(!of(DbError::Invalid) && !of(DbError::Unauthorized) && !of(DbError::ProtocolError));
    }
}
