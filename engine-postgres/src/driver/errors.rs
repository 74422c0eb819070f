//! The meaning of the driver's errors.

use tokio_postgres::Error as DriverError;
use tokio_postgres::error::{DbError, Severity, SqlState};
use ylock_core::options::ended_handshake;
use ylock_core::{Error, ErrorKind};

use crate::functions::WRONG_ISOLATION;

/// Returns an error that says in our words what happened, with the driver's error as its source.
pub(super) fn classify(error: DriverError) -> Error {
    let ((kind, message), had_no_effect) = (meaning(&error), had_no_effect(&error));
    let said = Error::new(kind, message).with_engine(crate::NAME).with_source(error);
    if had_no_effect { said.without_effect() } else { said }
}

/// Returns the error of a connection that could not be opened: the request that wanted it was not
/// sent.
pub(super) fn of_login(error: DriverError) -> Error {
    let error = match ended_handshake(&error) {
        Some(message) => wrong(message).with_source(error),
        None => classify(error),
    };
    error.without_effect()
}

/// Returns whether the server has said that it has rolled the transaction back, which is the whole
/// of a request. The table in `guarantees.md` says the same.
fn had_no_effect(error: &DriverError) -> bool {
    let said = error.as_db_error();
    said.is_some_and(|said| rolls_back(said.parsed_severity(), said.code()))
}

/// Returns whether an error with this severity and code comes from the server itself and ends the
/// transaction with nothing done.
///
/// What is worse than an error ends the session, and may do so while a transaction that is
/// committed waits for a standby. Poolers send codes of connections and of the system for a server
/// whose answer they have not seen, some of them as plain errors, and old ones without a severity
/// that is the same in every language.
fn rolls_back(severity: Option<Severity>, code: &SqlState) -> bool {
    let is_of_others = matches!(class(code), "08" | "58" | "XX") || code.code().starts_with("57P");
    severity == Some(Severity::Error) && !is_of_others && *code != SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN
}

/// Returns an error that may go away by itself, of the kind `Unavailable`.
pub(crate) fn unavailable(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Unavailable, message).with_engine(crate::NAME)
}

/// Returns an error about the configuration of server or client.
pub(super) fn wrong(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Config, message).with_engine(crate::NAME)
}

/// Returns whether the server could not let waiters be told: nothing has happened then.
pub(super) fn is_about_telling(error: &DriverError) -> bool {
    error.as_db_error().is_some_and(|error| {
        // The first is the code at the commit, when the queue of messages is full.
        *error.code() == SqlState::PROGRAM_LIMIT_EXCEEDED
            || error.where_().is_some_and(|place| place.contains("pg_notify"))
            // At the commit, outside of any function: another transaction that notifies does not end its commit.
            || *error.code() == SqlState::LOCK_NOT_AVAILABLE && error.where_().is_none()
    })
}

/// Returns whether the server is one that does not take settings with the login, as some poolers do not.
pub(super) fn is_about_settings(error: &DriverError) -> bool {
    error.as_db_error().is_some_and(|error| {
        *error.code() == SqlState::PROTOCOL_VIOLATION && error.message().contains("startup parameter")
    })
}

/// Returns whether the session has no such prepared statement, or another client's under this name. The server has done nothing.
pub(super) fn knows_no_statement(error: &DriverError) -> bool {
    matches!(error.code(), Some(&SqlState::INVALID_SQL_STATEMENT_NAME | &SqlState::DUPLICATE_PSTATEMENT))
}

/// Returns whether the server is not the one that takes writes, any more: another one may be.
pub(super) fn ends_connection(error: &DriverError) -> bool {
    error.is_closed()
        || error.as_db_error().is_none()
        || error.code().is_some_and(|code| {
            *code == SqlState::READ_ONLY_SQL_TRANSACTION || class(code) == "57" || class(code) == "08"
        })
}

fn meaning(error: &DriverError) -> (ErrorKind, String) {
    let Some(error) = error.as_db_error() else { return without_code(error) };
    let says = error.message();
    let silent = |message: String| (ErrorKind::Unavailable, message);
    match error.code() {
        &SqlState::LOCK_NOT_AVAILABLE => {
            silent("the row of the lock stayed locked by a transaction".to_owned())
        }
        &SqlState::T_R_DEADLOCK_DETECTED | &SqlState::T_R_SERIALIZATION_FAILURE => {
            silent(format!("the server ended the transaction: {says}"))
        }
        &SqlState::INVALID_SQL_STATEMENT_NAME | &SqlState::DUPLICATE_PSTATEMENT => {
            silent("a pooler changed the session under a prepared statement".to_owned())
        }
        &SqlState::READ_ONLY_SQL_TRANSACTION => silent("the server takes no writes".to_owned()),
        code if code.code() == WRONG_ISOLATION => (ErrorKind::Config, with_hint(error)),
        code => match class(code) {
            // Connections, resources, an operator, the system.
            "08" | "53" | "57" | "58" => silent(format!("the server did not do it: {says}")),
            "28" => (ErrorKind::Config, format!("the login was refused: {says}")),
            "3D" | "3F" | "42" => (ErrorKind::Config, format!("the server refused it: {says}")),
            _ => (ErrorKind::Unexpected, format!("the server answered something unexpected: {says}")),
        },
    }
}

/// Returns what an error means that no server sent.
fn without_code(error: &DriverError) -> (ErrorKind, String) {
    let said = error.to_string();
    // The driver has no other name for these.
    if said.starts_with("invalid configuration") || said.contains("TLS handshake") {
        return (ErrorKind::Config, said);
    }
    if said.contains("authentication") || said.starts_with("invalid connection string") {
        return (ErrorKind::Config, format!("the login was refused: {said}"));
    }
    (ErrorKind::Unavailable, "the server did not answer".to_owned())
}

fn with_hint(error: &DbError) -> String {
    match error.hint() {
        Some(hint) => format!("{}: {hint}", error.message()),
        None => error.message().to_owned(),
    }
}

fn class(code: &SqlState) -> &str {
    code.code().get(..2).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_server_itself_rolls_back_and_what_may_come_from_elsewhere_says_nothing() {
        let rolled_back = |code| rolls_back(Some(Severity::Error), &SqlState::from_code(code));
        // No right, no such function, no writes, no such schema, a row that stayed locked, a
        // deadlock, no memory, a request that was cancelled, and an error of ours.
        for code in ["42501", "42883", "25006", "3F000", "55P03", "40P01", "53200", "57014", WRONG_ISOLATION]
        {
            assert!(rolled_back(code), "{code}");
        }
        for code in ["08006", "08P01", "57P01", "57P02", "58000", "XX000", "40003"] {
            assert!(!rolled_back(code), "{code}");
        }
        for severity in [Some(Severity::Fatal), Some(Severity::Panic), None] {
            assert!(!rolls_back(severity, &SqlState::INSUFFICIENT_PRIVILEGE), "{severity:?}");
        }
    }
}
