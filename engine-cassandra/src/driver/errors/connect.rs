//! Explains why a client could not connect, in words that name what to change.

use std::io;

use scylla::errors::{
    ConnectionError, ConnectionPoolError, ConnectionSetupRequestErrorKind, DbError, MetadataError,
    NewSessionError,
};
use ylock_core::{Error, ErrorKind};

use crate::options::{CassandraOptions, Tls};

/// Returns the error for a session that could not be made: no node could be reached, or none let this client in.
pub(in crate::driver) fn failed(error: NewSessionError, options: &CassandraOptions) -> Error {
    let (kind, message) = match &error {
        NewSessionError::MetadataError(MetadataError::ConnectionPoolError(ConnectionPoolError::Broken {
            last_connection_error,
        })) => connection(last_connection_error, options),
        NewSessionError::FailedToResolveAnyHostname(_) => unreachable("no host could be resolved", options),
        NewSessionError::IllegalConfig(_) => {
            (ErrorKind::Config, "the options contradict each other".to_owned())
        }
        _ => unreachable("no node gave a usable answer", options),
    };
    Error::new(kind, message).with_engine(crate::NAME).with_source(error)
}

/// Returns the error for a connection that was not made in time.
pub(in crate::driver) fn too_slow(what: &str, options: &CassandraOptions) -> Error {
    let (kind, message) = unreachable(what, options);
    Error::new(kind, message).with_engine(crate::NAME)
}

/// Returns the error for a session of the program that has ended: there is no other, and nothing to make one with.
pub(in crate::driver) fn handed_over_session_ended() -> Error {
    let message = "the runtime of the session that was handed over has ended: hand over a session whose runtime lives as long as the locks";
    Error::new(ErrorKind::Unavailable, message).with_engine(crate::NAME)
}

type Explanation = (ErrorKind, String);

fn unreachable(what: &str, options: &CassandraOptions) -> Explanation {
    (ErrorKind::Unavailable, format!("cannot connect to {}: {what}", options.addresses().join(", ")))
}

fn connection(error: &ConnectionError, options: &CassandraOptions) -> Explanation {
    match error {
        ConnectionError::IoError(error) => input_output(error, options),
        ConnectionError::ConnectionSetupRequestError(error) => refused(error.get_error(), options),
        ConnectionError::ConnectTimeout => unreachable("no node answered in time", options),
        _ => unreachable("the connection broke", options),
    }
}

fn input_output(error: &io::Error, options: &CassandraOptions) -> Explanation {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(_)) => (
            ErrorKind::Config,
            format!(
                "the certificate of {} is not trusted; name its authority with tls_ca=…",
                options.addresses().join(", ")
            ),
        ),
        Some(_) => {
            (ErrorKind::Config, format!("no agreement on TLS with {}", options.addresses().join(", ")))
        }
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            unreachable("the connection was closed", options)
        }
        None => unreachable("no server listens there", options),
    }
}

fn refused(error: &ConnectionSetupRequestErrorKind, options: &CassandraOptions) -> Explanation {
    match error {
        ConnectionSetupRequestErrorKind::DbError(
            refused @ (DbError::AuthenticationError | DbError::Unauthorized),
            _,
        ) => {
            let user = options.login().map_or("", |login| &login.user);
            (super::database(refused).0, format!("login failed for user {user:?}"))
        }
        ConnectionSetupRequestErrorKind::MissingAuthentication => {
            (ErrorKind::Config, "the cluster demands a login: cassandra://user:password@…".to_owned())
        }
        ConnectionSetupRequestErrorKind::BrokenConnection(_) if options.tls() == Tls::Off => {
            unreachable("the node hung up; perhaps it demands tls=on", options)
        }
        _ => unreachable("the node refused the connection", options),
    }
}
