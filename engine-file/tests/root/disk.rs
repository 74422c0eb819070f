//! A file system of a few pages.

use std::fs;
use std::path::{Path, PathBuf};

use ylock_testkit::own_servers::SmallDisk;

/// A file system in memory, there for as long as this.
pub(super) struct Disk(SmallDisk);

impl Disk {
    /// Mounts one. Returns nothing, and counts the test as left out, where that is not allowed.
    pub(super) fn mount(test: &str, options: &str) -> Option<Self> {
        SmallDisk::mount("file", test, options).map(Self)
    }

    /// Returns the folder of the locks.
    pub(super) fn folder(&self) -> PathBuf {
        self.0.path().join("ylock")
    }

    /// Takes all pages that are free, but so many.
    pub(super) fn fill_but(&self, pages: u64) {
        self.0.fill_but(pages * rustix::param::page_size() as u64);
    }

    /// Gives all pages back that were taken.
    pub(super) fn free(&self) {
        self.0.free();
    }
}

/// Returns the names in a folder below that of the locks.
pub(super) fn names(folder: &Path, below: &str) -> Vec<String> {
    let entries = fs::read_dir(folder.join(below)).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}
