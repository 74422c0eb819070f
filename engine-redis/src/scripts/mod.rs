//! The texts of the scripts, as the server gets them: the quick ways, for a lock without contention and for the usual waiter and hand-over;
//! the part that all share; and the operation. What is asked about runs of jobs, and about keys, shares nothing with them.
//!
//! Not covered by semver.

macro_rules! text {
    ($name:literal $(, $alone:literal, $usual:expr)?) => {
        concat!(
            // Without the flag a server whose memory is full would refuse to renew and to give back too, and locks would be lost.
            "#!lua flags=allow-oom\n",
            include_str!("eviction.lua"),
            "\n",
            // First, and without what the others need: making that takes time, too.
            $(include_str!($alone), "\n",)?
            include_str!("common.lua"),
            "\n",
            $($usual,)?
            include_str!("lock.lua"),
            "\n",
            include_str!("queue.lua"),
            "\n",
            include_str!("turns.lua"),
            "\n",
            include_str!(concat!($name, ".lua"))
        )
    };
}

macro_rules! usual {
    ($name:literal) => {
        concat!(include_str!("quick/usual.lua"), "\n", include_str!($name), "\n")
    };
}

/// The script of `acquire.lua`.
pub const ACQUIRE: &str = text!("acquire", "quick/enter.lua", usual!("quick/wait.lua"));
/// The script of `release.lua`.
pub const RELEASE: &str = text!("release", "quick/leave.lua", usual!("quick/hand_over.lua"));
/// The script of `renew.lua`.
pub const RENEW: &str = text!("renew");
/// The script of `inspect.lua`.
pub const INSPECT: &str = text!("inspect");
/// The script of `revoke.lua`.
pub const REVOKE: &str = text!("revoke");

macro_rules! text_alone {
    ($name:literal $(, $with:literal)?) => {
        concat!("#!lua flags=allow-oom\n", $(include_str!($with), "\n",)? include_str!(concat!($name, ".lua")))
    };
}

/// The script of `last_run.lua`.
pub const LAST_RUN: &str = text_alone!("last_run");
/// The script of `store_run.lua`.
pub const STORE_RUN: &str = text_alone!("store_run", "eviction.lua");

/// The script of `keys.lua`.
pub const KEYS: &str = text_alone!("keys");

/// The script of `may_be_free.lua`.
pub const MAY_BE_FREE: &str = text_alone!("may_be_free");

/// The script of `version.lua`.
pub const VERSION: &str = text_alone!("version");

/// The scripts of `acquire.lua` and `release.lua` without the quick ways, which must do the same.
pub const SLOW: [&str; 2] = [text!("acquire"), text!("release")];
