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

/// Returns the error for a request that failed. A write that timed out may still arrive; one that
/// was refused before it was sent to a replica [had no effect](had_no_effect).
pub(super) fn classify(error: ExecutionError) -> Error {
    let had_no_effect = had_no_effect(&error);
    let said = with_meaning(execution(&error), error);
    if had_no_effect { said.without_effect() } else { said }
}

/// Returns whether a write that failed like this has reached no replica, and will reach none. A
/// write is sent to one coordinator, once: its profile has neither retries nor copies, so what that
/// one says is said of the whole request. The table in `guarantees.md` says the same.
fn had_no_effect(error: &ExecutionError) -> bool {
    match error {
        // No connection was there to send it on. The driver goes on to the next node only for want
        // of one.
        ExecutionError::EmptyPlan | ExecutionError::ConnectionPoolError(_) => true,
        ExecutionError::LastAttemptError(error) => match error {
            RequestAttemptError::UnableToAllocStreamId => true,
            RequestAttemptError::DbError(error, _) => comes_before_the_replicas(error),
            _ => false,
        },
        _ => false,
    }
}

/// Returns whether a coordinator answers like this only before it has sent a write to a replica.
fn comes_before_the_replicas(error: &DbError) -> bool {
    match error {
        // It reads the statement, and asks for the rights of the user, before it does anything.
        DbError::SyntaxError
        | DbError::Invalid
        | DbError::ConfigError
        | DbError::Unauthorized
        | DbError::AuthenticationError
        | DbError::Unprepared { .. }
        | DbError::IsBootstrapping => true,
        // It counts the replicas that are up, and sends to none if they are too few.
        DbError::Unavailable { .. } => true,
        // Said also by one that has sent it to some replicas: older versions look at each in turn.
        // And what a replica says comes too late.
        DbError::Overloaded | DbError::RateLimitReached { .. } => false,
        DbError::WriteTimeout { .. }
        | DbError::WriteFailure { .. }
        | DbError::ReadTimeout { .. }
        | DbError::ReadFailure { .. }
        | DbError::ServerError => false,
        // The driver's list may grow.
        _ => false,
    }
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
    use std::time::Duration;

    use scylla::errors::WriteType;
    use scylla::statement::Consistency;

    use super::*;

    #[test]
    fn a_write_that_was_refused_before_the_replicas_had_it_has_no_effect_and_no_other_is_known_to_have_none()
    {
        let of = |error| {
            let answer = RequestAttemptError::DbError(error, String::new());
            classify(ExecutionError::LastAttemptError(answer)).had_no_effect()
        };
        let unavailable = || DbError::Unavailable { consistency: Consistency::Quorum, required: 2, alive: 1 };
        for refused in [
            DbError::SyntaxError,
            DbError::Invalid,
            DbError::ConfigError,
            DbError::Unauthorized,
            DbError::AuthenticationError,
            DbError::Unprepared { statement_id: Vec::new().into() },
            DbError::IsBootstrapping,
            unavailable(),
        ] {
            assert!(of(refused.clone()), "{refused:?}");
        }
        let (consistency, write_type) = (Consistency::Quorum, WriteType::Simple);
        for unknown in [
            DbError::Overloaded,
            DbError::ServerError,
            DbError::ProtocolError,
            DbError::TruncateError,
            DbError::WriteTimeout { consistency, received: 1, required: 2, write_type: write_type.clone() },
            DbError::WriteFailure { consistency, received: 1, required: 2, numfailures: 1, write_type },
        ] {
            assert!(!of(unknown.clone()), "{unknown:?}");
        }
        assert!(classify(ExecutionError::EmptyPlan).had_no_effect());
        let full = ExecutionError::LastAttemptError(RequestAttemptError::UnableToAllocStreamId);
        assert!(classify(full).had_no_effect());
        assert!(!classify(ExecutionError::RequestTimeout(Duration::ZERO)).had_no_effect());
    }

    #[test]
    fn another_node_is_asked_where_this_one_cannot_and_not_where_no_node_would() {
        let of = |error| is_refusal(&RequestAttemptError::DbError(error, String::new()));
        assert!(of(DbError::Overloaded) && of(DbError::IsBootstrapping) && of(DbError::ServerError));
        assert!(is_refusal(&RequestAttemptError::UnableToAllocStreamId));
        assert!(!of(DbError::Invalid) && !of(DbError::Unauthorized) && !of(DbError::ProtocolError));
    }
}
