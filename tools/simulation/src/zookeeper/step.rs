//! The steps of a transaction: as a client asks for them, and as the servers make them.

use std::fmt;
use std::sync::Arc;

use super::SessionId;

/// The kind of a node that is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Persistent,
    Container,
    Ephemeral,
    /// Ephemeral, with a place behind its name.
    Numbered,
}

/// One step of a transaction, as a client asks for it.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Check(String),
    Create(String, Vec<u8>, Kind),
    Delete(String),
    Write(String, Vec<u8>, i64),
}

/// As the trace shows it: without contents.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Check(path) => write!(f, "check {path}"),
            Self::Create(path, _, kind) => write!(f, "create {path} {kind:?}"),
            Self::Delete(path) => write!(f, "delete {path}"),
            Self::Write(path, _, version) => write!(f, "write {path} version {version}"),
        }
    }
}

/// One change, as every server makes it.
#[derive(Clone, Debug)]
pub(super) enum Edit {
    Create { path: Arc<str>, content: Arc<[u8]>, owner: Option<SessionId>, is_container: bool },
    Delete(Arc<str>),
    Write(Arc<str>, Arc<[u8]>),
    Begin(SessionId),
    End(SessionId),
}
