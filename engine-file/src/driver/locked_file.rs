//! A file that this process has locked.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::stop_point;

/// How often a lock is tried that another process has: it has it for some microseconds.
const TRIES: u32 = 26;
/// The first tries, between which this process stays on its core. Between the last ones it lets another one run, which may have the lock: on a busy
/// machine each of these can take as long as that one's slice of time.
const SPINNING: u32 = 24;

/// A file, locked until this is dropped.
#[derive(Debug)]
pub(super) struct LockedFile(OwnedFd);

impl LockedFile {
    /// Locks a file. Returns nothing if another process has it locked.
    pub(super) fn try_lock(file: OwnedFd) -> Result<Option<Self>, Errno> {
        for tried in 0..TRIES {
            stop_point::pass();
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Some(Self(file))),
                Err(Errno::WOULDBLOCK) if tried < SPINNING => (0..32).for_each(|_| std::hint::spin_loop()),
                Err(Errno::WOULDBLOCK) => std::thread::yield_now(),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(None)
    }
}

impl AsFd for LockedFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for LockedFile {
    /// Unlocks. Closing alone would not, where another thread has forked a process meanwhile that has the file open as well.
    fn drop(&mut self) {
        let unlocked = flock(&self.0, FlockOperation::Unlock);
        debug_assert!(unlocked.is_ok(), "a file that is open can be unlocked");
    }
}
