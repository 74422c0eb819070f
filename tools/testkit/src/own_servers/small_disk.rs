//! A file system of a few pages, to see what becomes of locks when it is full.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

const PAGE: usize = 4096;

/// A file system in memory, there for as long as this.
#[derive(Debug)]
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts one with these options of `tmpfs`. Returns nothing, and counts the test as left out, where that is not allowed.
    ///
    /// # Panics
    /// If it has no place.
    pub fn mount(engine: &str, test: &str, options: &str) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("ylock-disk-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", options, "ylock-test"]).arg(&path);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        if command.status().is_ok_and(|status| status.success()) {
            return Some(Self(path));
        }
        // It needs root, who may not either in most containers.
        fs::remove_dir(&path).expect("removed");
        crate::note_skip(engine, test, "a small file system cannot be mounted here: that needs root");
        None
    }

    /// Returns where it is mounted.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Takes all bytes that are free, but so many.
    ///
    /// # Panics
    /// If that fails for another reason than that nothing is free any more.
    pub fn fill_but(&self, bytes: u64) {
        let mut filler = File::options().append(true).create(true).open(self.filler()).expect("a file");
        loop {
            match filler.write(&[b'x'; PAGE]) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => break,
                Err(error) => panic!("{error}"),
            }
        }
        let length = filler.metadata().expect("a length").len();
        filler.set_len(length.saturating_sub(bytes)).expect("shortened");
    }

    /// Gives everything back that was taken.
    ///
    /// # Panics
    /// If nothing was taken.
    pub fn free(&self) {
        fs::remove_file(self.filler()).expect("it was filled");
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Also while a client has files open there.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
        let _ = fs::remove_dir(&self.0);
    }
}
