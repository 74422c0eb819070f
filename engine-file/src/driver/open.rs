//! How files and folders are opened and made.
//!
//! So that no program which this process starts has them, too: a child that had the pipe of a client would be taken for that client, and one that had
//! a file locked would stop the lock, for as long as it runs.
//!
//! Below the folder that the caller has named, each one by its name alone and never through a link: a user of the group may put a link there, to
//! whatever of this user's it would have cleared or changed.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{
    AtFlags, CWD, Dir, Mode, OFlags, RenameFlags, fchmod, linkat, mkdirat, openat, renameat_with, unlinkat,
};
use rustix::io::Errno;
use rustix::path::Arg;

use super::stop_point;

/// The permissions of files. The sticky bit means nothing to the kernel; `systemd-tmpfiles` passes over a file that has it, however old. A user who
/// may only read a file may lock it all the same, and others out: the folder itself may be one that all users can look into.
pub(super) const OF_OWNER: u32 = 0o1600;
/// Those of files of a group.
pub(super) const OF_GROUP: u32 = 0o1660;
/// What the name of a folder or a pipe ends with until it is complete.
pub(super) const NEW: &str = ".new";
/// How often something may be removed just before it is opened.
pub(super) const REMOVED: u32 = 1000;

/// Opens a file, or makes it. Never waits, as for the other end of a pipe that is in its place.
pub(super) fn open(below: impl AsFd, name: impl Arg, how: OFlags) -> Result<OwnedFd, Errno> {
    let how = how | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    openat(below, name, how, Mode::from_raw_mode(OF_OWNER))
}

/// Opens the folder that the caller has named, also by a link to it.
pub(super) fn open_folder(path: &Path) -> Result<OwnedFd, Errno> {
    openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// Opens a folder in another one.
pub(super) fn open_inner(below: impl AsFd, name: impl Arg) -> Result<OwnedFd, Errno> {
    let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    openat(below, name, how, Mode::empty())
}

/// Opens a file for reading and writing; makes it if it is missing.
///
/// In a shared folder it gets its name when the group may open it. The mask of the process may keep the group out, and a process that was killed before
/// it let the group in would leave a file that no other user can open.
pub(super) fn open_or_make(below: impl AsFd, name: &str, is_shared: bool) -> Result<OwnedFd, Errno> {
    if !is_shared {
        stop_point::pass();
        return open(below, name, OFlags::RDWR | OFlags::CREATE);
    }
    for _ in 0..REMOVED {
        stop_point::pass();
        match open(&below, name, OFlags::RDWR) {
            Err(Errno::NOENT) => {}
            opened => return opened,
        }
        match make_for_group(&below, name) {
            // Another process has made it meanwhile.
            Err(Errno::EXIST) => {}
            made => return made,
        }
    }
    Err(Errno::NOENT)
}

fn make_for_group(below: impl AsFd, name: &str) -> Result<OwnedFd, Errno> {
    stop_point::pass();
    let nameless =
        openat(&below, ".", OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC, Mode::from_raw_mode(OF_GROUP));
    let file = match nameless {
        // A file system without nameless files. One that is killed before the next call closes this lock to other users until the folder is cleared.
        Err(Errno::OPNOTSUPP | Errno::ISDIR) => {
            let file = open(&below, name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)?;
            fchmod(&file, Mode::from_raw_mode(OF_GROUP))?;
            return Ok(file);
        }
        nameless => nameless?,
    };
    fchmod(&file, Mode::from_raw_mode(OF_GROUP))?;
    stop_point::pass();
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    linkat(CWD, own, below, name, AtFlags::SYMLINK_FOLLOW)?;
    Ok(file)
}

/// Makes a folder. Returns whether it was there.
///
/// A shared one gets its name when the group may use it; see [`open_or_make`].
pub(super) fn make_folder(below: impl AsFd, name: &Path, is_shared: bool) -> Result<bool, Errno> {
    stop_point::pass();
    let made = if is_shared {
        make_folder_for_group(below, name)
    } else {
        mkdirat(below, name, Mode::from_raw_mode(mode_of(false)))
    };
    match made {
        Ok(()) => Ok(false),
        Err(Errno::EXIST) => Ok(true),
        Err(errno) => Err(errno),
    }
}

fn make_folder_for_group(below: impl AsFd, name: &Path) -> Result<(), Errno> {
    // Most of the time it is there.
    if rustix::fs::statat(&below, name, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
        return Err(Errno::EXIST);
    }
    let new = make_new_folder(&below, name, Mode::from_raw_mode(mode_of(true)))?;
    let named = open_and_name_folder(&below, &new, name);
    if named.is_err() {
        let _ = unlinkat(&below, &*new, AtFlags::REMOVEDIR);
    }
    named
}

/// Lets the group into a new folder, and gives it its name.
pub(super) fn open_and_name_folder(below: impl AsFd, new: &Path, name: &Path) -> Result<(), Errno> {
    let folder = open_inner(&below, new)?;
    // A user of the group may have put a folder of this user's in its place, for this client to open it to the group.
    if !is_empty(&folder)? {
        return Err(Errno::NOTEMPTY);
    }
    fchmod(folder, Mode::from_raw_mode(mode_of(true)))?;
    stop_point::pass();
    renameat_with(&below, new, &below, name, RenameFlags::NOREPLACE)
}

fn is_empty(folder: &OwnedFd) -> Result<bool, Errno> {
    for entry in Dir::read_from(folder)? {
        if !matches!(entry?.file_name().to_bytes(), b"." | b"..") {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Makes a folder beside the place of another one, with a name that no other process of the host takes.
fn make_new_folder(below: impl AsFd, beside: &Path, mode: Mode) -> Result<PathBuf, Errno> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let new = beside.with_file_name(format!("{}-{count}{NEW}", std::process::id()));
        match mkdirat(&below, &new, mode) {
            // Left by a process that was killed, or of one in another container.
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
            Ok(()) => return Ok(new),
        }
    }
}

/// The permissions of folders. In a shared one, files belong to the group of the folder.
pub(super) fn mode_of(is_shared: bool) -> u32 {
    if is_shared { 0o2770 } else { 0o700 }
}
