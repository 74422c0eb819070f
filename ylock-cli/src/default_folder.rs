//! The store of users who name none: a folder of their own on this host.

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::PathBuf;

use crate::exit::{Failed, Result, USAGE};

/// Returns the URL of the folder of this user. It is found by the number of the user and by nothing else, so that a shell, a cron job and a service of
/// one user share their locks whatever their environment is.
///
/// # Errors
/// If there is something else of this name, such as a link that another user has made: where it leads to, files would be made and removed. A folder
/// of this user in `/tmp` cannot be put out of the way by others.
pub(crate) fn url() -> Result<String> {
    let path = PathBuf::from(format!("/tmp/ylock-{}", rustix::process::geteuid().as_raw()));
    let wrong =
        |why: &str| Failed::new(USAGE, format!("{}: {why}; name another store with --store", path.display()));
    match DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(wrong(&error.to_string())),
        _ => {}
    }
    let found = fs::symlink_metadata(&path).map_err(|error| wrong(&error.to_string()))?;
    if !found.is_dir() {
        return Err(wrong("it is not a folder"));
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(wrong("it belongs to another user"));
    }
    Ok(format!("file://{}", path.display()))
}
