//! The file of one key, locked: the kernel lets one process at a time change it.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Mode, OFlags, chmodat, fchmod, fstat, mkdirat, unlinkat};
use rustix::io::Errno;
use ylock_core::{Error, ErrorKind, Key, Result};

use super::errors::{failed, unexpected};
use super::file_name::{FileName, Shelf};
use super::folder::Folder;
use super::locked_file::LockedFile;
use super::open::open;
use super::slots::{Failed, Slots};
use super::stop_point;

/// How often a file may be removed just before it is locked.
const REMOVED: u32 = 1000;

/// What to do about a key that has no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfMissing {
    /// Make one.
    Create,
    /// Take it for a key without contenders.
    Leave,
}

/// A key whose file this process has locked. Unlocked when it is dropped.
#[derive(Debug)]
pub(crate) struct Locked<'a> {
    folder: &'a Folder,
    name: FileName,
    /// `None` if the key has no file, and is to have none.
    file: Option<LockedFile>,
    slots: Slots,
    text: String,
}

impl Folder {
    /// Locks the file of a key. Returns nothing if another process has it locked.
    pub(crate) fn lock(&self, key: &Key, if_missing: IfMissing) -> Result<Option<Locked<'_>>> {
        self.lock_file(FileName::of(key, Shelf::Locks), if_missing)
    }

    /// Locks the file of the last run of a key's job. Returns nothing if another process has it locked.
    pub(crate) fn lock_run(&self, key: &Key, if_missing: IfMissing) -> Result<Option<Locked<'_>>> {
        self.lock_file(FileName::of(key, Shelf::Runs), if_missing)
    }

    pub(super) fn lock_file(&self, name: FileName, if_missing: IfMissing) -> Result<Option<Locked<'_>>> {
        self.check_process()?;
        for _ in 0..REMOVED {
            let Some(file) = self.open_file(&name, if_missing)? else {
                return Ok(Some(Locked {
                    folder: self,
                    name,
                    file: None,
                    slots: Slots::default(),
                    text: String::new(),
                }));
            };
            let locked = LockedFile::try_lock(file);
            let locked = locked.map_err(|errno| failed(&format!("lock {}", self.shown(&name)), errno))?;
            let Some(file) = locked else { return Ok(None) };
            stop_point::pass();
            // Removed between the opening and the locking: another one may be there by now, and that is the key's.
            if fstat(&file).is_ok_and(|found| found.st_nlink == 0) {
                continue;
            }
            return self.read_locked(name, file).map(Some);
        }
        Err(Error::new(ErrorKind::Unavailable, format!("{} is removed again and again", self.shown(&name))))
    }

    fn read_locked(&self, name: FileName, file: LockedFile) -> Result<Locked<'_>> {
        let (slots, text) = Slots::read(&file).map_err(|why| self.failure(&name, "read", &why))?;
        if slots.is_empty() {
            self.let_the_group_in(&file);
        }
        Ok(Locked { folder: self, name, file: Some(file), slots, text })
    }

    /// Opens the file of a key. Returns nothing if it has none, and is to have none.
    fn open_file(&self, name: &FileName, if_missing: IfMissing) -> Result<Option<OwnedFd>> {
        let how = if if_missing == IfMissing::Create { OFlags::RDWR | OFlags::CREATE } else { OFlags::RDWR };
        for _ in 0..REMOVED {
            stop_point::pass();
            match open(self.shelf(name.shelf), name.as_str(), how) {
                Ok(file) => return Ok(Some(file)),
                Err(Errno::NOENT) if if_missing == IfMissing::Leave => return Ok(None),
                Err(Errno::NOENT) => self.make_folders_of(name)?,
                Err(errno) => return Err(failed(&format!("open {}", self.shown(name)), errno)),
            }
        }
        Err(Error::new(
            ErrorKind::Unavailable,
            format!("the folders of {} are removed again and again", self.shown(name)),
        ))
    }

    /// Makes the folders that a long name is in. A short one is in none, so its folder is gone if there was no place for its file.
    fn make_folders_of(&self, name: &FileName) -> Result<()> {
        let mut last = Err(Errno::NOENT);
        for folder in name.folders() {
            stop_point::pass();
            last = mkdirat(self.shelf(name.shelf), folder, Mode::from_raw_mode(self.mode()));
            if last.is_ok() && self.is_shared() {
                // The mask of the process may have kept the group out.
                let mode = Mode::from_raw_mode(self.mode());
                let _ = chmodat(self.shelf(name.shelf), folder, mode, AtFlags::empty());
            }
        }
        match last {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            // A folder further out has been removed by the client that left it last: again.
            Err(Errno::NOENT) if name.folders().nth(1).is_some() && self.is_there() => Ok(()),
            Err(Errno::NOENT) => Err(self.is_gone()),
            Err(errno) => Err(failed(&format!("make the folders of {}", self.shown(name)), errno)),
        }
    }

    /// The mask of the process may have kept the group out of a file that this process has just made.
    fn let_the_group_in(&self, file: &LockedFile) {
        if self.is_shared() {
            // Only its owner may, and only its owner needs to.
            let _ = fchmod(file, Mode::from_raw_mode(0o660));
        }
    }

    fn shown(&self, name: &FileName) -> String {
        format!("{}/{}/{}", self.path().display(), name.shelf.name(), name.as_str())
    }

    fn failure(&self, name: &FileName, what: &str, why: &Failed) -> Error {
        let file = self.shown(name);
        match why {
            Failed::System(errno) => failed(&format!("{what} {file}"), *errno),
            Failed::TooLong => {
                Error::new(ErrorKind::Unavailable, format!("{file} has no room for another contender"))
            }
            Failed::Damaged(why) if name.shelf == Shelf::Runs => unexpected(format!(
                "{file} is damaged: {why}. Which run of this job was the last one is not known any more. Remove the file when the job may be run"
            )),
            Failed::Damaged(why) => unexpected(format!(
                "{file} is damaged: {why}. Who holds this lock is not known any more. Remove the file when no process uses what the lock protects"
            )),
        }
    }
}

impl Locked<'_> {
    /// Returns whether the key has a file.
    pub(crate) fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// Returns what is stored for the key; empty if nothing is.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns which key this is, as the text is to begin with it.
    pub(crate) fn title(&self) -> &str {
        self.name.as_str()
    }

    /// Returns the error that what is stored is not what this engine has written.
    pub(crate) fn damaged(&self, why: &'static str) -> Error {
        self.folder.failure(&self.name, "read", &Failed::Damaged(why))
    }

    /// Stores another text.
    pub(crate) fn write(&self, text: &str) -> Result<()> {
        let Some(file) = &self.file else {
            return Err(unexpected("a key without a file was to be changed"));
        };
        let written =
            self.slots.write(file, text).map_err(|why| self.folder.failure(&self.name, "write", &why));
        if written.is_err() && self.slots.is_empty() {
            // Made just now, in vain: it would be left.
            let _ = self.remove();
        }
        written
    }

    /// Removes what is stored, and the file.
    pub(crate) fn remove(&self) -> Result<()> {
        if self.file.is_none() {
            return Ok(());
        }
        stop_point::pass();
        let shelf = self.folder.shelf(self.name.shelf);
        match unlinkat(shelf, self.name.as_str(), AtFlags::empty()) {
            // Another program may have removed it: it is not there.
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => {
                return Err(failed(&format!("remove {}", self.folder.shown(&self.name)), errno));
            }
        }
        for folder in self.name.folders().rev() {
            stop_point::pass();
            // Of a long name: other files may be there.
            if unlinkat(shelf, folder, AtFlags::REMOVEDIR).is_err() {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::file_name::Shelf;
    use super::*;
    use crate::options::FileOptions;

    /// As where another thread has forked a process that has the file open as well: closing alone would not unlock it.
    #[test]
    fn a_file_that_cannot_be_read_is_unlocked_outright() {
        let path = std::env::temp_dir().join(format!("ylock-unlocked-{}", std::process::id()));
        let folder = Folder::open(&FileOptions::new(&path), 0, 0).unwrap().expect("the only client");
        std::fs::write(path.join("locks/users=alice"), [b'x'; 4096]).unwrap();
        let name = || FileName::of(&Key::new("users", "alice").unwrap(), Shelf::Locks);
        let open = || folder.open_file(&name(), IfMissing::Leave).unwrap().expect("there");
        let file = open();
        let _inherited = file.try_clone().unwrap();
        let locked = LockedFile::try_lock(file).unwrap().expect("none has it locked");
        let error = folder.read_locked(name(), locked).unwrap_err();
        assert!(error.to_string().contains("damaged"), "{error}");
        assert!(LockedFile::try_lock(open()).unwrap().is_some());
        std::fs::remove_dir_all(path).unwrap();
    }
}
