//! Locks files, to keep commands that run at the same time apart. The system frees these advisory locks when a command dies.

use std::{fs::File, path::Path, thread, time::Duration};

use anyhow::{Context, Result, bail};
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

use crate::interrupt;

#[derive(Debug)]
pub(crate) struct FileLock {
    _open: File,
}

impl FileLock {
    pub(crate) fn shared(path: &Path) -> Result<Self> {
        Self::wait(path, FlockOperation::NonBlockingLockShared, interrupt::pause)
    }

    pub(crate) fn exclusive(path: &Path) -> Result<Self> {
        Self::wait(path, FlockOperation::NonBlockingLockExclusive, interrupt::pause)
    }

    /// Waits for the exclusive lock, also after Ctrl-C: for cleaning up.
    pub(crate) fn exclusive_regardless(path: &Path) -> Result<Self> {
        let pause = |time| {
            thread::sleep(time);
            Ok(())
        };
        Self::wait(path, FlockOperation::NonBlockingLockExclusive, pause)
    }

    /// Tries to take the exclusive lock. Returns `None` if another command holds the lock.
    pub(crate) fn try_exclusive(path: &Path) -> Result<Option<Self>> {
        Self::attempt(path, FlockOperation::NonBlockingLockExclusive)
    }

    fn wait(path: &Path, how: FlockOperation, pause: fn(Duration) -> Result<()>) -> Result<Self> {
        let mut said = false;
        loop {
            if let Some(lock) = Self::attempt(path, how)? {
                return Ok(lock);
            }
            if !said {
                eprintln!("waiting until another xtask command no longer uses the servers ...");
                said = true;
            }
            // Polled, because a blocking call would not notice Ctrl-C.
            pause(Duration::from_millis(100))?;
        }
    }

    fn attempt(path: &Path, how: FlockOperation) -> Result<Option<Self>> {
        let open = File::options().create(true).append(true).open(path);
        let open = open.with_context(|| format!("cannot open {}", path.display()))?;
        match flock(&open, how) {
            Ok(()) => Ok(Some(Self { _open: open })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => bail!("cannot lock {}: {error}", path.display()),
        }
    }
}
