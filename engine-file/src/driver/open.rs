//! How files and folders are opened: so that no program which this process starts has them, too. A child that had the pipe of a client would be
//! taken for that client, and one that had a file locked would stop the lock, for as long as it runs.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::path::Arg;

/// Opens a file, or makes it, for its owner and its group. Fails if it is a link: that may lead anywhere.
pub(super) fn open(below: impl AsFd, name: impl Arg, how: OFlags) -> Result<OwnedFd, Errno> {
    openat(below, name, how | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::from_raw_mode(0o660))
}

/// Opens a folder, also by a link to it.
pub(super) fn open_folder(below: impl AsFd, name: impl Arg) -> Result<OwnedFd, Errno> {
    openat(below, name, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}
