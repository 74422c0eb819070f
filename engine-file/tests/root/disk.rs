//! A file system of a few pages.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use super::{is_root, skip};

/// A file system in memory, there for as long as this.
pub(super) struct Disk(PathBuf);

impl Disk {
    /// Mounts one. Returns nothing, and counts the test as left out, where that is not allowed.
    pub(super) fn mount(test: &str, options: &str) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        if !is_root() {
            skip(test, "it needs root, to mount a small file system");
            return None;
        }
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("ylock-disk-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", options, "ylock-test"]).arg(&path).stderr(Stdio::null());
        if !command.status().is_ok_and(|status| status.success()) {
            // In most containers root may not.
            fs::remove_dir(&path).unwrap();
            skip(test, "a small file system cannot be mounted here");
            return None;
        }
        Some(Self(path))
    }

    /// Returns the folder of the locks.
    pub(super) fn folder(&self) -> PathBuf {
        self.0.join("ylock")
    }

    /// Takes all pages that are free, but so many.
    pub(super) fn fill_but(&self, pages: u64) {
        let page = [b'x'; 4096];
        let mut filler = File::options().append(true).create(true).open(self.filler()).unwrap();
        loop {
            match filler.write(&page) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => break,
                Err(error) => panic!("{error}"),
            }
        }
        let length = filler.metadata().unwrap().len();
        filler.set_len(length.saturating_sub(pages * rustix::param::page_size() as u64)).unwrap();
    }

    /// Gives all pages back that were taken.
    pub(super) fn free(&self) {
        fs::remove_file(self.filler()).unwrap();
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Also while a client has files open there.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
        let _ = fs::remove_dir(&self.0);
    }
}

/// Returns the names in a folder below that of the locks.
pub(super) fn names(folder: &Path, below: &str) -> Vec<String> {
    let entries = fs::read_dir(folder.join(below)).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}
