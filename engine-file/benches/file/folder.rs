//! The folder of one run.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A folder in memory, for this process and those that it starts.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        let path = Self::of(std::process::id());
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).expect("a folder");
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("its own");
        Self(path)
    }

    /// Returns the path of the folder that this process, or the one that has started it, has made.
    pub(crate) fn path() -> PathBuf {
        let parent = Self::of(std::os::unix::process::parent_id());
        if parent.is_dir() { parent } else { Self::of(std::process::id()) }
    }

    fn of(process: u32) -> PathBuf {
        let memory = Path::new("/dev/shm");
        let all = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        all.join(format!("ylock-bench-{process}"))
    }

    /// Returns how many files of locks and clients there are.
    pub(crate) fn files(&self) -> usize {
        self.all().len()
    }

    /// Returns how many bytes of the file system they take.
    pub(crate) fn bytes(&self) -> u64 {
        self.all().iter().filter_map(|file| Some(fs::metadata(file).ok()?.blocks() * 512)).sum()
    }

    fn all(&self) -> Vec<PathBuf> {
        let inner =
            ["locks", "clients"].into_iter().filter_map(|inner| fs::read_dir(self.0.join(inner)).ok());
        inner.flatten().filter_map(|entry| Some(entry.ok()?.path())).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
