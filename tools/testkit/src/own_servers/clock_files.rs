//! The files of a clock that can be set: the library that a process loads, and how much its clock is ahead. The command that starts
//! servers uses this module too.

use std::fs::{self, OpenOptions};
use std::io::{self, Error};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;

/// The clock of the process that was started with its [variables](Self::variables).
#[derive(Clone, Debug)]
pub(crate) struct ClockFiles {
    folder: PathBuf,
}

impl ClockFiles {
    /// Returns the files in this folder, which may not be there yet.
    pub(crate) fn in_folder(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Creates the files of a clock that is right until it is set.
    ///
    /// # Errors
    /// If that cannot be written, or without a C compiler.
    pub(crate) fn make(&self) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let source = self.folder.join("clock.c");
        fs::write(&source, include_str!("clock.c"))?;
        // Rust links with it too, so it is there.
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"]);
        let output = compiler.arg(self.library()).arg(&source).output()?;
        if !output.status.success() {
            return Err(Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        fs::write(self.ahead(), 0_i64.to_ne_bytes())
    }

    /// Returns the variables with which a process goes by this clock; a process that loads the clock does not start without both.
    pub(crate) fn variables(&self) -> [(&'static str, PathBuf); 2] {
        [("LD_PRELOAD", self.library()), ("YLOCK_TEST_CLOCK", self.ahead())]
    }

    /// Sets by how many microseconds the clock is ahead of the machine's.
    ///
    /// # Errors
    /// If there is no such clock.
    pub(crate) fn set(&self, ahead: i64) -> io::Result<()> {
        OpenOptions::new().write(true).open(self.ahead())?.write_all_at(&ahead.to_ne_bytes(), 0)
    }

    fn library(&self) -> PathBuf {
        self.folder.join("clock.so")
    }

    fn ahead(&self) -> PathBuf {
        self.folder.join("ahead")
    }
}
