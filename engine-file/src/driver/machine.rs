//! What tells one run of a machine from another, and whether processes read one clock.

use std::fs;

use rustix::io::Errno;
use ylock_core::{Error, Result};

use super::errors::{config, failed};

/// A run of the machine, and the clock that its processes read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Machine {
    /// Another one after each start of the machine.
    pub(super) boot: String,
    /// The time namespace: processes in different ones read clocks that differ.
    pub(super) time: String,
}

impl Machine {
    /// Returns that of this process.
    pub(super) fn here() -> Result<Self> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").map_err(unknown)?;
        // A kernel without time namespaces has one clock for all.
        let time = fs::read_link("/proc/self/ns/time").map(|link| link.to_string_lossy().into_owned());
        Ok(Self { boot: boot.trim().to_owned(), time: time.unwrap_or_else(|_| "one".to_owned()) })
    }
}

fn unknown(error: std::io::Error) -> Error {
    let message = "file:// needs /proc/sys/kernel/random/boot_id, to know locks that are left from before the machine was started";
    // A process without descriptors may read it in a moment.
    match Errno::from_io_error(&error) {
        Some(errno @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => {
            failed("read /proc/sys/kernel/random/boot_id", errno)
        }
        _ => config(message).with_source(error),
    }
}
