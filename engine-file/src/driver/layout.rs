//! The file `layout`: which run of which machine the folder is used in, and whether any client lives.
//!
//! Each client has this file locked for as long as it lives, shared with the others. A client that gets it for itself alone is the only one: what
//! is left of others is void then, and it clears the folder. So nothing is left of processes that were killed, and nothing of an earlier
//! run of the machine is believed. The last runs of jobs stay: they belong to no client.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, fchmod, flock, ftruncate, mkdirat, unlinkat,
};
use rustix::io::{Errno, pread, pwrite};
use ylock_core::Result;

use super::errors::{config, failed};
use super::folder::mode_of;
use super::machine::Machine;
use super::open::{open, open_folder};
use super::slots::Slots;
use super::stop_point;
use crate::state::State;

pub(super) const LOCKS: &str = "locks";
pub(super) const RUNS: &str = "runs";
pub(super) const CLIENTS: &str = "clients";
const LAYOUT: &str = "layout";
const VERSION: &str = "ylock 1";

/// The file, locked for as long as the client lives.
#[derive(Debug)]
pub(super) struct Layout {
    /// Held, not read.
    _locked: OwnedFd,
    /// What is added to the time since the machine was started, in microseconds. The same for all clients of a run.
    tokens_begin: u64,
}

/// What the file says.
#[derive(Debug, PartialEq, Eq)]
struct Written {
    machine: Machine,
    tokens_begin: u64,
}

impl Layout {
    /// Joins the clients of the folder. The first one clears it. Returns nothing while another one is clearing it.
    pub(super) fn take(
        folder: &OwnedFd,
        path: &Path,
        wall_micros: i64,
        boot_micros: u64,
        is_shared: bool,
    ) -> Result<Option<Self>> {
        let here = Machine::here()?;
        let file = open(folder, LAYOUT, OFlags::RDWR | OFlags::CREATE)
            .map_err(|errno| failed(&format!("open {}/{LAYOUT}", path.display()), errno))?;
        if is_shared {
            // Only its owner may, and only its owner needs to.
            let _ = fchmod(&file, Mode::from_raw_mode(0o660));
        }
        let clearing = Clearing { folder, path, here: &here, wall_micros, boot_micros, is_shared };
        // By each client, not only by the first: those that live may be of a version that knew nothing of it.
        clearing.make(RUNS)?;
        if lock(&file, FlockOperation::NonBlockingLockExclusive, path)? {
            clearing.clear(&file)?;
        }
        // Alone before or not: from here on with the others. Between the two another client may be alone for a moment, and clear what is
        // clear.
        if !lock(&file, FlockOperation::NonBlockingLockShared, path)? {
            return Ok(None);
        }
        // Nothing is written yet if the client that was to clear the folder has ended instead: then again.
        let Some(written) = Written::read(&file, path)? else { return Ok(None) };
        let tokens_begin = written.checked(&here, path)?;
        Ok(Some(Self { _locked: file, tokens_begin }))
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
        let mut next = |name| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        let (boot, time) = (next("ylock 1: boot")?.to_owned(), next("time")?.to_owned());
        Some(Self { machine: Machine { boot, time }, tokens_begin: next("tokens")?.parse().ok()? })
    }

    fn to_text(&self) -> String {
        let Self { machine: Machine { boot, time }, tokens_begin } = self;
        format!("{VERSION}: boot {boot}\ntime {time}\ntokens {tokens_begin}\nend\n")
    }

    /// Fails if the clients that live run elsewhere.
    fn checked(self, here: &Machine, path: &Path) -> Result<u64> {
        let shown = path.display();
        if self.machine.boot != here.boot {
            return Err(config(format!(
                "the folder {shown} is in use on another machine: file:// is for the processes of one host"
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
        let text = Written { machine: self.here.clone(), tokens_begin }.to_text();
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
        let mode = Mode::from_raw_mode(mode_of(self.is_shared));
        stop_point::pass();
        match mkdirat(self.folder, below, mode) {
            Ok(()) if self.is_shared => {
                let made = rustix::fs::chmodat(self.folder, below, mode, AtFlags::empty());
                made.map_err(|errno| self.failed("let the group into", below, errno))?;
                Ok(false)
            }
            Ok(()) => Ok(false),
            Err(Errno::EXIST) if self.is_shared => {
                // Its maker may have been killed before it let the group in. Only its owner may do so.
                let _ = rustix::fs::chmodat(self.folder, below, mode, AtFlags::empty());
                Ok(true)
            }
            Err(Errno::EXIST) => Ok(true),
            Err(errno) => Err(self.failed("make", below, errno)),
        }
    }

    /// Removes everything in a folder, and makes the folder if it is missing. `see` is shown each file of a key before.
    fn remove_all(&self, below: &str, mut see: impl FnMut(&OwnedFd) -> Result<()>) -> Result<()> {
        if !self.make(below)? {
            return Ok(());
        }
        let folder = open_folder(self.folder, below).map_err(|errno| self.failed("open", below, errno))?;
        self.empty(&folder, below, &mut see)
    }

    fn empty(
        &self,
        folder: &OwnedFd,
        shown: &str,
        see: &mut dyn FnMut(&OwnedFd) -> Result<()>,
    ) -> Result<()> {
        for entry in Dir::read_from(folder).map_err(|errno| self.failed("list", shown, errno))? {
            let entry = entry.map_err(|errno| self.failed("list", shown, errno))?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            stop_point::pass();
            let removed = match entry.file_type() {
                FileType::Directory => {
                    let inner = open_folder(folder, name);
                    self.empty(&inner.map_err(|errno| self.failed("open", shown, errno))?, shown, see)?;
                    unlinkat(folder, name, AtFlags::REMOVEDIR)
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
