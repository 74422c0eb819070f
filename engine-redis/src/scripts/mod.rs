//! The texts of the scripts, as the server gets them: the quick way for a lock without contention, the part that all share, and the
//! operation.
//!
//! Not covered by semver.

macro_rules! text {
    ($name:literal $(, $quick:literal)?) => {
        concat!(
            // Without the flag a server whose memory is full would refuse to renew and to give back too, and locks would be lost.
            "#!lua flags=allow-oom\n",
            $(include_str!($quick), "\n",)?
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

/// The script of `acquire.lua`.
pub const ACQUIRE: &str = text!("acquire", "alone/acquire.lua");
/// The script of `release.lua`.
pub const RELEASE: &str = text!("release", "alone/release.lua");
/// The script of `renew.lua`.
pub const RENEW: &str = text!("renew");
/// The script of `inspect.lua`.
pub const INSPECT: &str = text!("inspect");
/// The script of `revoke.lua`.
pub const REVOKE: &str = text!("revoke");
