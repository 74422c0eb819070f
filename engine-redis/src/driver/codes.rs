//! The codes with which servers refuse requests, and what each of them means: the one table of them.

use redis::RedisError;
use ylock_core::ErrorKind;

/// A kind, and what happened in a few words; the server's own words follow as the source.
pub(super) type Meaning = (ErrorKind, &'static str);

pub(super) const NO_LOGIN: Meaning =
    (ErrorKind::Config, "the login was refused: look at the user and the password of the URL");

/// A code that a client makes something of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    /// An error without a code of its own, such as that of a script that failed.
    General,
    NoScript,
    NoAuth,
    WrongPass,
    NoPerm,
    WrongType,
    Oom,
    ReadOnly,
    Loading,
    Busy,
    MasterDown,
    ClusterDown,
    TryAgain,
    NoReplicas,
    Misconf,
    Moved,
    Ask,
    CrossSlot,
}

ylock_core::closed_set! {
    /// Returns the code as servers send it.
    pub(super) Code: General = "ERR", NoScript = "NOSCRIPT", NoAuth = "NOAUTH", WrongPass = "WRONGPASS", NoPerm = "NOPERM",
    WrongType = "WRONGTYPE", Oom = "OOM", ReadOnly = "READONLY", Loading = "LOADING", Busy = "BUSY", MasterDown = "MASTERDOWN",
    ClusterDown = "CLUSTERDOWN", TryAgain = "TRYAGAIN", NoReplicas = "NOREPLICAS", Misconf = "MISCONF", Moved = "MOVED", Ask = "ASK",
    CrossSlot = "CROSSSLOT"
}

impl Code {
    /// Returns the code of an error; nothing if no server sent it, or with a code that is not known here.
    pub(super) fn of(error: &RedisError) -> Option<Self> {
        let code = error.code()?;
        Self::ALL.iter().copied().find(|known| known.as_str() == code)
    }

    /// Returns what the code means to a caller.
    pub(super) fn meaning(self) -> Meaning {
        match self {
            Self::General => {
                (ErrorKind::Unexpected, "what is stored for the lock is not what this version writes")
            }
            Self::NoScript => (ErrorKind::Unexpected, "the server answered something unexpected"),
            Self::NoAuth | Self::WrongPass => NO_LOGIN,
            Self::NoPerm => (
                ErrorKind::Config,
                "the server's user may not do this; the rights that it needs are in the engine's guarantees.md",
            ),
            Self::WrongType => (ErrorKind::Unexpected, "something other than a lock is stored at its key"),
            Self::Oom => (ErrorKind::Unavailable, "the server's memory is full"),
            Self::ReadOnly => (ErrorKind::Unavailable, "the server is a replica that only answers reads"),
            Self::Loading
            | Self::Busy
            | Self::MasterDown
            | Self::ClusterDown
            | Self::TryAgain
            | Self::NoReplicas
            | Self::Misconf => (ErrorKind::Unavailable, "the server cannot carry out requests now"),
            Self::Moved | Self::Ask | Self::CrossSlot => (
                ErrorKind::Config,
                "the server is part of a cluster: its URL must begin with redis+cluster://",
            ),
        }
    }

    /// Returns whether a server that says this is the wrong one for now, so that its connection is of no use any more.
    pub(super) fn ends_connection(self) -> bool {
        match self {
            Self::ReadOnly | Self::Loading | Self::MasterDown | Self::ClusterDown => true,
            Self::General
            | Self::NoScript
            | Self::NoAuth
            | Self::WrongPass
            | Self::NoPerm
            | Self::WrongType
            | Self::Oom
            | Self::Busy
            | Self::TryAgain
            | Self::NoReplicas
            | Self::Misconf
            | Self::Moved
            | Self::Ask
            | Self::CrossSlot => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use redis::{ErrorKind as DriverKind, ServerErrorKind};

    use super::*;

    /// The driver has kinds of its own for some codes, and hands on the others as they are.
    #[test]
    fn the_codes_that_the_driver_knows_are_found() {
        for (kind, code) in [
            (ServerErrorKind::ResponseError, Code::General),
            (ServerErrorKind::NoScript, Code::NoScript),
            (ServerErrorKind::NoPerm, Code::NoPerm),
            (ServerErrorKind::ReadOnly, Code::ReadOnly),
            (ServerErrorKind::BusyLoading, Code::Loading),
            (ServerErrorKind::MasterDown, Code::MasterDown),
            (ServerErrorKind::ClusterDown, Code::ClusterDown),
            (ServerErrorKind::TryAgain, Code::TryAgain),
            (ServerErrorKind::Moved, Code::Moved),
            (ServerErrorKind::Ask, Code::Ask),
            (ServerErrorKind::CrossSlot, Code::CrossSlot),
        ] {
            let error = RedisError::from((DriverKind::Server(kind), "as the driver makes it"));
            assert_eq!(Code::of(&error), Some(code));
        }
        assert_eq!(Code::of(&RedisError::from((DriverKind::Io, "no server said this"))), None);
    }
}
