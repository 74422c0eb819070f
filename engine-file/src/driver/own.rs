//! Whether a file is one of the folder's own, and has its name there.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Stat, fstat, statat};
use rustix::path::Arg;
use ylock_core::Result;

use super::errors::unexpected;

/// What the files of a folder have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Own {
    /// The group of a shared folder, which all that is made in it belongs to. A user of the group may give a file of another user a second name in the
    /// folder, where the system lets users do that (`fs.protected_hardlinks` is 0). That file belongs to another group, and is left as it is.
    group: Option<u32>,
}

impl Own {
    pub(super) fn of(folder: &OwnedFd, is_shared: bool) -> Result<Self, rustix::io::Errno> {
        Ok(Self { group: if is_shared { Some(fstat(folder)?.st_gid) } else { None } })
    }

    pub(super) fn is_shared(self) -> bool {
        self.group.is_some()
    }

    /// Returns whether this is a file of this type that was made in the folder.
    pub(super) fn is_own(self, found: &Stat, what: FileType) -> bool {
        FileType::from_raw_mode(found.st_mode) == what && self.group.is_none_or(|group| found.st_gid == group)
    }

    /// Fails if this is no file that was made in the folder.
    pub(super) fn check(self, found: &Stat, shown: impl Fn() -> String) -> Result<()> {
        if self.is_own(found, FileType::RegularFile) {
            return Ok(());
        }
        Err(unexpected(format!(
            "{} was not made by ylock: it is no file, or does not belong to the group of its folder. Remove it, and find out who put it there",
            shown()
        )))
    }
}

/// Returns whether this name is that of a file or folder that is open.
pub(super) fn names(below: impl AsFd, name: impl Arg, open: &Stat) -> bool {
    statat(below, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|named| is_same(&named, open))
}

pub(super) fn is_same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}
