//! The file `layout`: which run of which machine the folder is used in, and whether any client lives.
//!
//! Each client has this file locked for as long as it lives, shared with the others. A client that gets it for itself alone is the only one: what
//! is left of others is void then, and it clears the folder. So nothing is left of processes that were killed, and nothing of an earlier
//! run of the machine is believed. The last runs of jobs stay: they belong to no client.
//!
//! A cleaner of old files or an operator may remove this file beside clients that live, and the next client then has a new one for itself alone. So a
//! client clears the folder only where no pipe has a reader either.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, OFlags, Timestamps, UTIME_NOW, flock, fstat, ftruncate, futimens,
    unlinkat,
};
use rustix::io::{Errno, pread, pwrite};
use rustix::time::Timespec;
use ylock_core::Result;
use ylock_core::stored_version::OtherVersion;

use super::errors::{config, failed};
use super::file_name;
use super::machine::Machine;
use super::open::{make_folder, open, open_inner, open_or_make};
use super::own::Own;
use super::pipe::has_reader;
use super::slots::Slots;
use super::stop_point;
use crate::state::State;

pub(super) const LOCKS: &str = "locks";
pub(super) const RUNS: &str = "runs";
pub(super) const CLIENTS: &str = "clients";
const LAYOUT: &str = "layout";
/// The version of all that is in the folder but `runs`, whose files have their own.
const VERSION: u32 = 2;

/// The file, locked for as long as the client lives.
#[derive(Debug)]
pub(super) struct Layout {
    locked: OwnedFd,
    /// What is added to the time since the machine was started, in microseconds. The same for all clients of a run.
    tokens_begin: u64,
}

/// Why a client cannot join yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Busy {
    /// Another client is clearing the folder.
    Clearing,
    /// The file `layout` is new, and so many clients that live know nothing of it. One that is just ending shows for a moment, too.
    Replaced(usize),
}

/// What the file says.
#[derive(Debug, PartialEq, Eq)]
struct Written {
    version: u32,
    machine: Machine,
    tokens_begin: u64,
}

impl Layout {
    /// Joins the clients of the folder. The first one clears it.
    pub(super) fn take(
        folder: &OwnedFd,
        path: &Path,
        wall_micros: i64,
        boot_micros: u64,
        own: &Own,
    ) -> Result<Result<Self, Busy>> {
        let here = Machine::here()?;
        let shown = || format!("{}/{LAYOUT}", path.display());
        let file = open_or_make(folder, LAYOUT, own.is_shared())
            .map_err(|errno| failed(&format!("open {}", shown()), errno))?;
        let found = fstat(&file).map_err(|errno| failed(&format!("look at {}", shown()), errno))?;
        own.check(&found, shown)?;
        let clearing =
            Clearing { folder, path, here: &here, wall_micros, boot_micros, is_shared: own.is_shared() };
        // By each client, not only by the first: one of them may have been removed beside clients that live. Those find out, and connect again.
        for below in [LOCKS, CLIENTS, RUNS] {
            clearing.make(below)?;
        }
        if lock(&file, FlockOperation::NonBlockingLockExclusive, path)? {
            match clearing.clients_that_live()? {
                0 => clearing.clear(&file)?,
                count => return Ok(Err(Busy::Replaced(count))),
            }
        }
        // Alone before or not: from here on with the others. Between the two another client may be alone for a moment, and clear what is
        // clear.
        if !lock(&file, FlockOperation::NonBlockingLockShared, path)? {
            return Ok(Err(Busy::Clearing));
        }
        // Nothing is written yet if the client that was to clear the folder has ended instead: then again.
        let Some(written) = Written::read(&file, path)? else { return Ok(Err(Busy::Clearing)) };
        let tokens_begin = written.checked(&here, path)?;
        Ok(Ok(Self { locked: file, tokens_begin }))
    }

    /// Shows a cleaner of old files that the file is in use.
    pub(super) fn touch(&self) {
        touch(&self.locked);
    }

    pub(super) fn token_clock(&self, boot_micros: u64) -> u64 {
        self.tokens_begin.saturating_add(boot_micros)
    }
}

impl Written {
    fn read(file: &OwnedFd, path: &Path) -> Result<Option<Self>> {
        let mut bytes = [0; 512];
        let filled = pread(file, &mut bytes, 0)
            .map_err(|errno| failed(&format!("read {}/{LAYOUT}", path.display()), errno))?;
        let text = std::str::from_utf8(&bytes[..filled]).unwrap_or_default();
        Ok(Self::parse(text))
    }

    fn parse(text: &str) -> Option<Self> {
        // What follows is left of a longer text, if its writer was killed before it cut that off.
        let (text, _) = text.split_once("\nend\n")?;
        let mut lines = text.lines();
        let (version, boot) = lines.next()?.strip_prefix("ylock ")?.split_once(": boot ")?;
        let mut next = |name| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        let machine = Machine { boot: boot.to_owned(), time: next("time")?.to_owned() };
        let tokens_begin = next("tokens")?.parse().ok()?;
        Some(Self { version: version.parse().ok()?, machine, tokens_begin })
    }

    fn to_text(&self) -> String {
        let Self { version, machine: Machine { boot, time }, tokens_begin } = self;
        format!("ylock {version}: boot {boot}\ntime {time}\ntokens {tokens_begin}\nend\n")
    }

    /// Fails if the clients that live are of another version, or run elsewhere.
    fn checked(self, here: &Machine, path: &Path) -> Result<u64> {
        let shown = path.display();
        if self.version != VERSION {
            let other = OtherVersion {
                of: &format!("the folder {shown}"),
                place: "folder",
                found: &self.version.to_string(),
                own: &VERSION.to_string(),
                remedy: "begin this one, which clears the folder",
            };
            return Err(other.refused(crate::NAME));
        }
        if self.machine.boot != here.boot {
            return Err(config(format!(
                "the folder {shown} is in use on another machine, or in a container that shows a boot_id of its own, as LXC and systemd-nspawn do: \
                 file:// is for processes of one host that all read one /proc/sys/kernel/random/boot_id"
            )));
        }
        if self.machine.time != here.time {
            return Err(config(format!(
                "the folder {shown} is in use in another time namespace, where clocks tell another time: its processes and these must not share locks"
            )));
        }
        Ok(self.tokens_begin)
    }
}

/// What the first client does.
struct Clearing<'a> {
    folder: &'a OwnedFd,
    path: &'a Path,
    here: &'a Machine,
    wall_micros: i64,
    boot_micros: u64,
    is_shared: bool,
}

impl Clearing<'_> {
    fn clear(&self, file: &OwnedFd) -> Result<()> {
        let written = Written::read(file, self.path)?;
        let highest = self.clear_locks(LOCKS)?;
        self.remove_all(CLIENTS, |_| Ok(()))?;
        // Never back within a run, whatever the wall clock did meanwhile; and above every token that is still known.
        let of_this_run =
            written.filter(|written| written.machine == *self.here).map(|written| written.tokens_begin);
        let of_the_wall_clock = u64::try_from(self.wall_micros).unwrap_or(0).saturating_sub(self.boot_micros);
        let above_all = highest.saturating_add(1).saturating_sub(self.boot_micros);
        let tokens_begin = of_this_run.unwrap_or(of_the_wall_clock).max(above_all);
        let text = Written { version: VERSION, machine: self.here.clone(), tokens_begin }.to_text();
        stop_point::pass();
        // Over the old text, and cut off afterwards: a client that is killed in between must not leave a file that has forgotten where the tokens
        // of this run begin.
        let written =
            pwrite(file, text.as_bytes(), 0).map_err(|errno| self.failed("write", LAYOUT, errno))?;
        if written < text.len() {
            return Err(self.failed("write", LAYOUT, Errno::NOSPC));
        }
        stop_point::pass();
        ftruncate(file, text.len() as u64).map_err(|errno| self.failed("write", LAYOUT, errno))
    }

    /// Removes the files of all keys. Returns the largest token in them.
    fn clear_locks(&self, below: &str) -> Result<u64> {
        let mut highest = 0;
        self.remove_all(below, |file| {
            // What cannot be read is void as well.
            let token = Slots::read(file).ok().and_then(|(_, text)| State::token_in(&text));
            highest = highest.max(token.unwrap_or(0));
            Ok(())
        })?;
        Ok(highest)
    }

    /// Makes a folder if it is missing. Returns whether it was there.
    fn make(&self, below: &str) -> Result<bool> {
        make_folder(self.folder, Path::new(below), self.is_shared)
            .map_err(|errno| self.failed("make", below, errno))
    }

    /// Returns how many clients have their pipes open.
    fn clients_that_live(&self) -> Result<usize> {
        let failed = |errno| self.failed("list", CLIENTS, errno);
        let clients = match open_inner(self.folder, CLIENTS) {
            Err(Errno::NOENT) => return Ok(0),
            opened => opened.map_err(failed)?,
        };
        let mut count = 0;
        for entry in Dir::read_from(&clients).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            if !file_name::is_pipe(name.to_bytes()) {
                continue;
            }
            let look =
                |errno| self.failed("look at", &format!("{CLIENTS}/{}", name.to_string_lossy()), errno);
            count += usize::from(has_reader(&clients, name).map_err(look)?);
        }
        Ok(count)
    }

    /// Removes what clients have left in a folder, and makes the folder if it is missing. `see` is shown each file of a key before.
    fn remove_all(&self, below: &str, mut see: impl FnMut(&OwnedFd) -> Result<()>) -> Result<()> {
        if !self.make(below)? {
            return Ok(());
        }
        let folder = open_inner(self.folder, below).map_err(|errno| self.failed("open", below, errno))?;
        self.empty(&folder, below, &mut see)
    }

    /// Removes what this engine may have made. A user of the group may have moved a folder here that has other files of this user's in it.
    fn empty(
        &self,
        folder: &OwnedFd,
        shown: &str,
        see: &mut dyn FnMut(&OwnedFd) -> Result<()>,
    ) -> Result<()> {
        for entry in Dir::read_from(folder).map_err(|errno| self.failed("list", shown, errno))? {
            let entry = entry.map_err(|errno| self.failed("list", shown, errno))?;
            let name = entry.file_name();
            let is_folder = entry.file_type() == FileType::Directory;
            if !file_name::may_be_own(name.to_bytes(), is_folder) {
                continue;
            }
            stop_point::pass();
            let removed = match entry.file_type() {
                FileType::Directory => {
                    let inner = open_inner(folder, name);
                    self.empty(&inner.map_err(|errno| self.failed("open", shown, errno))?, shown, see)?;
                    match unlinkat(folder, name, AtFlags::REMOVEDIR) {
                        // What another program has put there.
                        Err(Errno::NOTEMPTY) => Ok(()),
                        removed => removed,
                    }
                }
                FileType::RegularFile => {
                    if let Ok(file) = open(folder, name, OFlags::RDONLY) {
                        see(&file)?;
                    }
                    unlinkat(folder, name, AtFlags::empty())
                }
                _ => unlinkat(folder, name, AtFlags::empty()),
            };
            removed.map_err(|errno| self.failed("clear", shown, errno))?;
        }
        Ok(())
    }

    fn failed(&self, what: &str, name: &str, errno: Errno) -> ylock_core::Error {
        failed(&format!("{what} {}/{name}", self.path.display()), errno)
    }
}

/// Sets the times of a file to now.
pub(super) fn touch(file: &OwnedFd) {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    if let Err(errno) = futimens(file, &Timestamps { last_access: now, last_modification: now }) {
        tracing::debug!(%errno, "a file of this client looks old to a cleaner of old files");
    }
}

/// Returns whether the file is locked now.
fn lock(file: &OwnedFd, how: FlockOperation, path: &Path) -> Result<bool> {
    loop {
        stop_point::pass();
        match flock(file, how) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) => return Ok(false),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(failed(&format!("lock {}/{LAYOUT}", path.display()), errno)),
        }
    }
}
