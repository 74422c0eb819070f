//! The codes with which servers refuse requests, and what each of them means: the one table of them.

use redis::RedisError;
use ylock_core::ErrorKind;

/// A kind, and what happened in a few words; the server's own words follow as the source.
pub(super) type Meaning = (ErrorKind, &'static str);

pub(super) const NO_LOGIN: Meaning =
    (ErrorKind::Config, "the login was refused: look at the user and the password of the URL");

/// What a server adds to an error that a script has raised: it has run until there. An error
/// without it has refused the call before.
const FROM_SCRIPT: &str = " script: ";
/// What a server says of a user that may not write. No script of this engine that sets a field has
/// written before it does so: `finish` and the quick ways begin with `HSET`, and rights do not
/// change while a script runs.
const REFUSED_FIRST: &str = "run the 'hset' command";
/// What a server of version 7.0 says, with no code of its own, of a command in a script for which
/// the user has no right; and it does not say which.
const REFUSED_IN_SCRIPT: &str = "The user executing the script can't run this command";
/// What a server says that has no such command, or under another name.
const NO_SUCH_COMMAND: &str = "unknown command";

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
        let known = Self::ALL.iter().copied().find(|known| known.as_str() == code)?;
        let is_refused = known == Self::General
            && error.detail().is_some_and(|words| words.starts_with(REFUSED_IN_SCRIPT));
        Some(if is_refused { Self::NoPerm } else { known })
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

    /// Returns whether a call of a script has certainly written nothing that is answered like this;
    /// `words` follow the code. The table in `guarantees.md` says the same.
    pub(super) fn leaves_nothing(self, words: &str) -> bool {
        let comes_from_script = words.contains(FROM_SCRIPT);
        match self {
            // Every write of a script goes to its one key, and is refused for the same reason.
            Self::WrongType => true,
            Self::NoPerm => !comes_from_script || words.contains(REFUSED_FIRST),
            // The text of a script may fail for any reason, in the middle too.
            Self::General => !comes_from_script && words.starts_with(NO_SUCH_COMMAND),
            Self::NoScript
            | Self::NoAuth
            | Self::WrongPass
            | Self::Oom
            | Self::ReadOnly
            | Self::Loading
            | Self::Busy
            | Self::MasterDown
            | Self::ClusterDown
            | Self::TryAgain
            | Self::NoReplicas
            | Self::Misconf
            | Self::Moved
            | Self::Ask
            | Self::CrossSlot => !comes_from_script,
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

    #[test]
    fn a_call_that_is_refused_leaves_nothing_and_a_script_that_failed_may_have_written() {
        const BEFORE: &str = "refused";
        const IN_THE_MIDDLE: &str = "refused script: 2b, on @user_script:7.";
        for code in Code::ALL {
            let leaves = [BEFORE, IN_THE_MIDDLE].map(|words| code.leaves_nothing(words));
            let meant = match code {
                Code::General => [false, false],
                Code::WrongType => [true, true],
                _ => [true, false],
            };
            assert_eq!(leaves, meant, "{code:?}");
        }
        assert!(Code::General.leaves_nothing("unknown command 'EVALSHA', with args beginning with: "));
        assert!(!Code::General.leaves_nothing("unknown command script: 2b, on @user_script:7."));
    }

    /// As servers say it from version 7.2 on.
    #[test]
    fn a_user_that_may_run_scripts_and_not_write_leaves_nothing() {
        let words = |command: &str| {
            format!(
                "ACL failure in script: User shop has no permissions to run the '{command}' command script: 2b, on @user_script:7."
            )
        };
        assert!(Code::NoPerm.leaves_nothing(&words("hset")));
        for later in ["hdel", "pexpireat", "publish"] {
            assert!(!Code::NoPerm.leaves_nothing(&words(later)), "{later}");
        }
        assert!(Code::NoPerm.leaves_nothing("User shop has no permissions to run the 'evalsha' command"));
    }

    /// And whatever it is, some of it may have been written: it does not say what was refused.
    #[test]
    fn a_server_of_version_7_0_refuses_a_part_of_a_script_without_a_code() {
        let words = "The user executing the script can't run this command or subcommand script: 2b, on @user_script:2.";
        let error =
            RedisError::from((DriverKind::Server(ServerErrorKind::ResponseError), "", words.to_owned()));
        assert_eq!(Code::of(&error), Some(Code::NoPerm));
        assert!(!Code::NoPerm.leaves_nothing(words));
    }

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
