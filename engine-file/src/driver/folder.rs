//! The folder that the processes share, opened once and for all: it is this one also if another one gets its name.

use std::fmt;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, CWD, FlockOperation, Stat, flock, fstat, fstatfs, fsync, statat};
use rustix::io::Errno;
use rustix::process::{Pid, Resource, getpid, getrlimit};
use ylock_core::{Error, Result};

use super::errors::{config, failed, unexpected};
use super::file_name::Shelf;
use super::layout::{Busy, CLIENTS, LOCKS, Layout, RUNS, touch};
use super::open::{make_folder, open_folder, open_inner};
use super::own::{Own, is_same, names};
use crate::options::FileOptions;

/// The file systems on which `flock` and pipes are known to be those of one kernel, by the numbers that `statfs` gives them.
const KNOWN: [(u64, &str); 9] = [
    (0x0102_1994, "tmpfs"),
    (0x8584_58f6, "ramfs"),
    (0xef53, "ext4"),
    (0x5846_5342, "xfs"),
    (0x9123_683e, "btrfs"),
    (0xf2f5_2010, "f2fs"),
    (0x2fc1_2fc1, "zfs"),
    (0xca45_1a4e, "bcachefs"),
    (0x794c_7630, "overlayfs"),
];
/// The permission of all users to write.
const WRITABLE_FOR_ALL: u32 = 0o002;
/// That of the group.
const WRITABLE_FOR_GROUP: u32 = 0o020;
/// What makes files belong to the group of their folder.
const OF_THE_GROUP: u32 = 0o2000;
/// So many microseconds may pass before it is looked again whether the path names this folder.
const LATELY: u64 = 100_000;
/// A file of a key has at least so many bytes.
const SMALLEST_FILE: u64 = 4096;

/// A folder with the files of locks and clients.
pub(crate) struct Folder {
    path: PathBuf,
    folder: OwnedFd,
    /// Where the files of the locks are.
    locks: OwnedFd,
    /// Where the files of the last runs of jobs are.
    runs: OwnedFd,
    /// Where the pipes of the clients are.
    pub(super) clients: OwnedFd,
    layout: Layout,
    pub(super) own: Own,
    /// When it was last seen that the path names this folder, in microseconds since the machine was started.
    seen: AtomicU64,
    /// The process that has opened it. One that was forked since has the same descriptors, and locks of files do not tell the two apart.
    process: Pid,
}

impl Folder {
    /// Opens the folder, and makes it if it is missing. Clears it of what clients have left, if none of them lives.
    pub(crate) fn open(
        options: &FileOptions,
        wall_micros: i64,
        boot_micros: u64,
    ) -> Result<Result<Self, Busy>> {
        // The process may change its working directory, and the path is looked at again.
        let path = std::path::absolute(options.folder()).unwrap_or_else(|_| options.folder().to_owned());
        let shown = path.display();
        let is_shared = options.is_shared();
        make_folder(CWD, &path, is_shared).map_err(|errno| cannot_make(&path, errno))?;
        let cannot_open = |below: &str| {
            let what = format!("open the folder {shown}{below}");
            move |errno| failed(&what, errno)
        };
        let folder = open_folder(&path).map_err(cannot_open(""))?;
        check(&folder, &path, is_shared)?;
        let own = Own::of(&folder, is_shared).map_err(cannot_open(""))?;
        let layout = match Layout::take(&folder, &path, wall_micros, boot_micros, &own)? {
            Ok(layout) => layout,
            Err(busy) => return Ok(Err(busy)),
        };
        let below = |name: &str| open_inner(&folder, name).map_err(cannot_open(&format!("/{name}")));
        let (locks, clients, runs) = (below(LOCKS)?, below(CLIENTS)?, below(RUNS)?);
        let (process, seen) = (getpid(), AtomicU64::new(boot_micros));
        Ok(Ok(Self { path, locks, runs, clients, layout, own, seen, process, folder }))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the time from which tokens are counted, in microseconds: that of the clock which counts since the machine was started, moved up
    /// to about the wall clock.
    pub(crate) fn token_clock(&self, boot_micros: u64) -> u64 {
        self.layout.token_clock(boot_micros)
    }

    pub(super) fn shelf(&self, shelf: Shelf) -> &OwnedFd {
        match shelf {
            Shelf::Locks => &self.locks,
            Shelf::Runs => &self.runs,
        }
    }

    /// Fails in a process that was forked from the one that has connected.
    pub(super) fn check_process(&self) -> Result<()> {
        if getpid() == self.process {
            return Ok(());
        }
        Err(unexpected(
            "this client was connected by the process that this one was forked from: connect again, after the fork",
        ))
    }

    /// Returns what is so of the folder: what it is, and what it is like.
    pub(crate) fn facts(&self) -> Vec<(&'static str, String)> {
        let kept = match file_system(&self.folder) {
            Some(name @ ("tmpfs" | "ramfs")) => {
                format!("{name}, in memory: empty when the machine was started again")
            }
            Some(name) => name.to_owned(),
            None => "not known".to_owned(),
        };
        let users = if self.own.is_shared() { "its group (mode=0770)" } else { "its owner (mode=0700)" };
        let clients = self.clients_now().map_or_else(|error| error.to_string(), |count| count.to_string());
        vec![
            ("folder", self.path.display().to_string()),
            ("file system", kept),
            ("shared by", users.to_owned()),
            ("clients now", clients),
        ]
    }

    /// Returns when it outlives a power cut which files are in a shelf.
    pub(super) fn sync(&self, shelf: Shelf) -> Result<(), Errno> {
        fsync(self.shelf(shelf))?;
        fsync(&self.folder)?;
        // Where the folder itself has its name. A user who may not list that one has not made the folder, nor has one in another file system: there
        // it is mounted, and some have nothing to sync.
        let Ok(outer) = open_inner(&self.folder, "..") else { return Ok(()) };
        if fstat(&outer)?.st_dev == fstat(&self.folder)?.st_dev { fsync(outer) } else { Ok(()) }
    }

    /// Shows a cleaner of old files that the folder is in use.
    pub(crate) fn touch(&self) {
        self.layout.touch();
        [&self.folder, &self.locks, &self.clients, &self.runs].into_iter().for_each(|folder| {
            // `systemd-tmpfiles` passes over a folder that is locked. Others go by its age.
            let _ = flock(folder, FlockOperation::NonBlockingLockShared);
            touch(folder);
        });
    }

    /// Fails if the folder was removed or moved: what is looked for in it is not free, but elsewhere, if another client has made the folder again.
    pub(crate) fn check_is_there(&self) -> Result<()> {
        if self.is_there() { Ok(()) } else { Err(self.is_gone()) }
    }

    /// Does so if that was not looked at lately.
    pub(crate) fn check_is_there_still(&self, boot_micros: u64) -> Result<()> {
        if boot_micros.saturating_sub(self.seen.load(Ordering::Relaxed)) < LATELY {
            return Ok(());
        }
        self.check_is_there()?;
        self.seen.store(boot_micros, Ordering::Relaxed);
        Ok(())
    }

    pub(crate) fn is_gone(&self) -> Error {
        unexpected(format!(
            "the folder {} was removed, moved or mounted over while it was in use: connect again, which makes it anew",
            self.path.display()
        ))
    }

    /// Fails if the files of runs are elsewhere, as [`check_is_there`](Self::check_is_there) does for locks.
    pub(crate) fn check_runs_are_there(&self) -> Result<()> {
        if self.is_there() && self.has(RUNS, &self.runs) { Ok(()) } else { Err(self.is_gone()) }
    }

    /// Returns whether path and names still lead to the folders that are open: clients that come later open what they lead to.
    pub(crate) fn is_there(&self) -> bool {
        let is_named = match (statat(CWD, &self.path, AtFlags::empty()), fstat(&self.folder)) {
            (Ok(named), Ok(own)) => is_same(&named, &own),
            (Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP), _) => false,
            // Not known, as where this process has given up the right to look.
            _ => true,
        };
        is_named && self.has(LOCKS, &self.locks) && self.has(CLIENTS, &self.clients)
    }

    fn has(&self, name: &str, open: &OwnedFd) -> bool {
        fstat(open).is_ok_and(|open| names(&self.folder, name, &open))
    }
}

impl fmt::Debug for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Folder").field("path", &self.path).finish_non_exhaustive()
    }
}

fn cannot_make(path: &Path, errno: Errno) -> Error {
    let shown = path.display();
    if matches!(errno, Errno::NOENT | Errno::NOTDIR) {
        return config(format!("cannot make the folder {shown}: the one that it is in is not there"));
    }
    failed(&format!("make the folder {shown}"), errno)
}

/// Fails if processes of other users, or of other machines, could change the folder.
fn check(folder: &OwnedFd, path: &Path, is_shared: bool) -> Result<()> {
    let shown = path.display();
    let found: Stat =
        fstat(folder).map_err(|errno| failed(&format!("read the permissions of {shown}"), errno))?;
    let own = rustix::process::geteuid().as_raw();
    if found.st_mode & WRITABLE_FOR_ALL != 0 {
        return Err(config(format!(
            "the folder {shown} is writable for all users: each of them could take locks away. Name a folder of its own below it, such as {shown}/ylock"
        )));
    }
    if is_shared && found.st_mode & OF_THE_GROUP == 0 && found.st_mode & WRITABLE_FOR_GROUP != 0 {
        return Err(config(format!(
            "mode=0770, but what is made in the folder {shown} does not belong to its group: chmod 2770 {shown}"
        )));
    }
    if is_shared && found.st_mode & WRITABLE_FOR_GROUP == 0 {
        return Err(config(format!(
            "mode=0770, but the folder {shown} is not writable for its group: chmod 2770 {shown}"
        )));
    }
    if !is_shared && found.st_mode & WRITABLE_FOR_GROUP != 0 {
        return Err(config(format!(
            "the folder {shown} is writable for its group: say mode=0770 if the group shares these locks, or chmod 700 {shown}"
        )));
    }
    if !is_shared && found.st_uid != own {
        return Err(config(format!(
            "the folder {shown} belongs to user {}, and this process runs as user {own}. Name a folder of this user's, or share one with a group: mode=0770",
            found.st_uid
        )));
    }
    check_file_system(folder, path)?;
    if getrlimit(Resource::Fsize).current.is_some_and(|most| most < SMALLEST_FILE) {
        return Err(config(format!(
            "this process may make no file of {SMALLEST_FILE} bytes, which each lock needs: raise the limit (ulimit -f)"
        )));
    }
    Ok(())
}

/// Returns the name of a file system that is known.
fn file_system(folder: &OwnedFd) -> Option<&'static str> {
    let number = file_system_number(folder).ok()?;
    KNOWN.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

fn file_system_number(folder: &OwnedFd) -> Result<u64, Errno> {
    Ok(fstatfs(folder)?.f_type as u64 & 0xffff_ffff)
}

fn check_file_system(folder: &OwnedFd, path: &Path) -> Result<()> {
    if file_system(folder).is_some() {
        return Ok(());
    }
    let shown = path.display();
    let number = file_system_number(folder)
        .map_err(|errno| failed(&format!("find out the file system of {shown}"), errno))?;
    let known = KNOWN.map(|(_, name)| name).join(", ");
    Err(config(format!(
        "file:// is for the processes of one host, and the file system of {shown} (type 0x{number:x}) may be shared with others or have no locks. \
         Name a folder on one of {known}, such as below /run"
    )))
}

#[cfg(test)]
mod tests {
    use ylock_core::Key;

    use super::*;
    use crate::driver::IfMissing;

    /// As in a process that was forked from the one that has connected.
    #[test]
    fn another_process_changes_nothing_with_what_it_has_inherited() {
        let path = std::env::temp_dir().join(format!("ylock-forked-{}", std::process::id()));
        let mut folder = Folder::open(&FileOptions::new(&path), 0, 0).unwrap().expect("the only client");
        let client = "1".parse().unwrap();
        let _pipe = folder.make_pipe(client).unwrap();
        let key = Key::new("users", "alice").unwrap();
        assert!(folder.lock(&key, IfMissing::Create).is_ok());
        folder.process = Pid::INIT;
        let error = folder.lock(&key, IfMissing::Create).unwrap_err();
        assert!(error.to_string().contains("forked"), "{error}");
        folder.remove_pipe(client).unwrap_err();
        assert!(path.join("clients").join(client.to_string()).exists());
        std::fs::remove_dir_all(path).unwrap();
    }
}
