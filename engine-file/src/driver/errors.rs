//! The errors of the system, as ours.

use rustix::io::Errno;
use ylock_core::{Error, ErrorKind};

/// Returns the error of an operation that failed: `what` says which, and on what.
pub(super) fn failed(what: &str, errno: Errno) -> Error {
    let kind = match errno {
        // What is short now may not be so in a moment.
        Errno::NOSPC
        | Errno::DQUOT
        | Errno::MFILE
        | Errno::NFILE
        | Errno::NOMEM
        | Errno::INTR
        | Errno::AGAIN => ErrorKind::Unavailable,
        Errno::ACCESS | Errno::PERM | Errno::ROFS => ErrorKind::Config,
        _ => ErrorKind::Unexpected,
    };
    Error::new(kind, format!("cannot {what}: {errno}")).with_source(std::io::Error::from(errno))
}

pub(super) fn config(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Config, message)
}

pub(super) fn unexpected(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Unexpected, message)
}
