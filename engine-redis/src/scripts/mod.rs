//! The texts of the scripts, as the server gets them: what is quick when nobody else is there, what all share, and the operation.
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

/// See the file.
pub const ACQUIRE: &str = text!("acquire", "alone/acquire.lua");
/// See the file.
pub const RELEASE: &str = text!("release", "alone/release.lua");
/// See the file.
pub const RENEW: &str = text!("renew");
/// See the file.
pub const INSPECT: &str = text!("inspect");
/// See the file.
pub const REVOKE: &str = text!("revoke");
