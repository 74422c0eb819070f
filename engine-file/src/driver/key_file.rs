//! The file of one key, locked: the kernel lets one process at a time change it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, OFlags, fdatasync, fstat, fsync, unlinkat};
use rustix::io::Errno;
use ylock_core::{Error, ErrorKind, Key, Result};

use super::errors::{failed, unexpected};
use super::file_name::{FileName, Shelf};
use super::folder::Folder;
use super::locked_file::LockedFile;
use super::open::{REMOVED, make_folder, open, open_inner, open_or_make};
use super::own::names;
use super::slots::{Failed, Slots};
use super::stop_point;

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
    file: Option<(LockedFile, In<'a>)>,
    slots: Slots,
    text: String,
}

/// The folder that a file is in.
#[derive(Debug)]
enum In<'a> {
    Shelf(&'a OwnedFd),
    /// Of a long name: the folders from the outermost to the innermost.
    Folders(&'a OwnedFd, Vec<OwnedFd>),
}

impl AsFd for In<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Shelf(shelf) => shelf.as_fd(),
            Self::Folders(shelf, folders) => folders.last().unwrap_or(shelf).as_fd(),
        }
    }
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
            let Some((file, folder)) = self.open_file(&name, if_missing)? else {
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
            let found = fstat(&file);
            let found = found.map_err(|errno| failed(&format!("look at {}", self.shown(&name)), errno))?;
            // Removed between the opening and the locking: another one may be there by now, and that is the key's. The count of names would not do: a backup
            // by hard links has given the file another one.
            if !names(&folder, name.parts().1, &found) {
                continue;
            }
            self.own.check(&found, || self.shown(&name))?;
            return self.read_locked(name, file, folder).map(Some);
        }
        Err(Error::new(ErrorKind::Unavailable, format!("{} is removed again and again", self.shown(&name))))
    }

    fn read_locked<'a>(&'a self, name: FileName, file: LockedFile, folder: In<'a>) -> Result<Locked<'a>> {
        let (slots, text) = Slots::read(&file).map_err(|why| self.failure(&name, "read", &why))?;
        Ok(Locked { folder: self, name, file: Some((file, folder)), slots, text })
    }

    /// Opens the file of a key. Returns nothing if it has none, and is to have none.
    fn open_file(&self, name: &FileName, if_missing: IfMissing) -> Result<Option<(OwnedFd, In<'_>)>> {
        for _ in 0..REMOVED {
            match self.open_in_folders(name, if_missing) {
                Ok(opened) => return Ok(Some(opened)),
                Err(Errno::NOENT) if if_missing == IfMissing::Leave => return Ok(None),
                // A folder of a long name has been removed by the client that left it last: again.
                Err(Errno::NOENT) if name.parts().0.next().is_some() && self.is_there() => {}
                Err(Errno::NOENT) => return Err(self.is_gone()),
                Err(errno) => return Err(failed(&format!("open {}", self.shown(name)), errno)),
            }
        }
        Err(Error::new(
            ErrorKind::Unavailable,
            format!("the folders of {} are removed again and again", self.shown(name)),
        ))
    }

    /// Opens a file, and before that the folders that it is in, one by one: in a path of several names any of them might be a link.
    fn open_in_folders(&self, name: &FileName, if_missing: IfMissing) -> Result<(OwnedFd, In<'_>), Errno> {
        let shelf = self.shelf(name.shelf);
        let (folders, last) = name.parts();
        let mut opened = Vec::new();
        for part in folders {
            let below = opened.last().unwrap_or(shelf);
            if if_missing == IfMissing::Create {
                make_folder(below, Path::new(part), self.own.is_shared())?;
            }
            stop_point::pass();
            opened.push(open_inner(below, part)?);
        }
        let folder = if opened.is_empty() { In::Shelf(shelf) } else { In::Folders(shelf, opened) };
        let file = if if_missing == IfMissing::Create {
            open_or_make(&folder, last, self.own.is_shared())?
        } else {
            stop_point::pass();
            open(&folder, last, OFlags::RDWR)?
        };
        Ok((file, folder))
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
            Failed::Limited => Error::new(
                ErrorKind::Unavailable,
                format!(
                    "{file} has no room for another contender: this process may not make it larger (ulimit -f)"
                ),
            ),
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
        let Some((file, _)) = &self.file else {
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

    /// Stores another text, and returns when it outlives a power cut.
    pub(crate) fn write_through(&self, text: &str) -> Result<()> {
        self.write(text)?;
        let Some((file, folder)) = &self.file else { return Ok(()) };
        let synced = fdatasync(file).and_then(|()| self.sync_folders(folder));
        synced.map_err(|errno| {
            // None has read it yet.
            self.put_back(file);
            failed(&format!("sync {}", self.folder.shown(&self.name)), errno)
        })
    }

    /// Stores the text of before, if it can.
    fn put_back(&self, file: &LockedFile) {
        let is_back = if self.slots.is_empty() {
            self.remove().is_ok()
        } else {
            Slots::read(file).and_then(|(slots, _)| slots.write(file, &self.text)).is_ok()
        };
        if !is_back {
            tracing::debug!(file = %self.folder.shown(&self.name), "what could not be synced stays all the same");
        }
    }

    /// Syncs the folders that a file is in: all of them, also of a file that was there. The process that has made it may have been killed before it
    /// could, or have failed.
    fn sync_folders(&self, folder: &In<'_>) -> Result<(), Errno> {
        if let In::Folders(_, folders) = folder {
            folders.iter().rev().try_for_each(fsync)?;
        }
        self.folder.sync(self.name.shelf)
    }

    /// Removes what is stored, and the file.
    pub(crate) fn remove(&self) -> Result<()> {
        let Some((_, folder)) = &self.file else { return Ok(()) };
        stop_point::pass();
        let (folders, name) = self.name.parts();
        match unlinkat(folder, name, AtFlags::empty()) {
            // Another program may have removed it: it is not there.
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => {
                return Err(failed(&format!("remove {}", self.folder.shown(&self.name)), errno));
            }
        }
        let In::Folders(shelf, opened) = folder else { return Ok(()) };
        let below: Vec<_> = std::iter::once(*shelf).chain(opened).zip(folders).collect();
        for (outer, folder) in below.into_iter().rev() {
            stop_point::pass();
            // Other files may be there.
            if unlinkat(outer, folder, AtFlags::REMOVEDIR).is_err() {
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
        let (file, in_folder) = open();
        let _inherited = file.try_clone().unwrap();
        let locked = LockedFile::try_lock(file).unwrap().expect("none has it locked");
        let error = folder.read_locked(name(), locked, in_folder).unwrap_err();
        assert!(error.to_string().contains("damaged"), "{error}");
        assert!(LockedFile::try_lock(open().0).unwrap().is_some());
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn a_text_that_could_not_be_synced_is_put_back() {
        let path = std::env::temp_dir().join(format!("ylock-put-back-{}", std::process::id()));
        let folder = Folder::open(&FileOptions::new(&path), 0, 0).unwrap().expect("the only client");
        let key = Key::new("jobs", "report").unwrap();
        let lock = || folder.lock_run(&key, IfMissing::Create).unwrap().expect("none has it locked");
        for before in ["", "yesterday"] {
            let locked = lock();
            if !before.is_empty() {
                locked.write(before).unwrap();
            }
            drop(locked);
            let locked = lock();
            locked.write("today").unwrap();
            locked.put_back(&locked.file.as_ref().expect("created").0);
            drop(locked);
            assert_eq!(lock().text(), before);
        }
        std::fs::remove_dir_all(path).unwrap();
    }
}
