//! The store of users who name none: a folder of their own on this host.

use std::path::PathBuf;

/// Returns the folder of this user. It is found by the number of the user and by nothing else, so that a shell, a cron job and a service of one
/// user share their locks whatever their environment is.
///
/// A user who makes the folder of another one only gets in the way: the file engine refuses a folder that belongs to another user.
pub(crate) fn folder() -> PathBuf {
    PathBuf::from(format!("/tmp/ylock-{}", rustix::process::getuid().as_raw()))
}

/// Returns the URL of that folder.
pub(crate) fn url() -> String {
    format!("file://{}", folder().display())
}
