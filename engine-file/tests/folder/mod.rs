//! A folder for the locks of one test.

mod standing;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use ylock_engine_file::{FileEngine, FileOptions};

/// A folder that is there for as long as the test.
#[derive(Debug)]
pub(crate) struct Folder {
    outer: PathBuf,
    path: PathBuf,
}

impl Folder {
    /// Names a new one, in memory where the system has such a file system. The first client makes it.
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let memory = Path::new("/dev/shm");
        let all = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let outer = all.join(format!("ylock-test-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&outer).unwrap();
        Self { path: outer.join("locks of a test"), outer }
    }

    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of a file that is not one of the locks, and goes with this folder.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.outer.join(name)
    }

    /// Connects another client.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) async fn client(&self) -> FileEngine {
        FileEngine::connect(&FileOptions::new(&self.path)).await.unwrap()
    }

    /// Connects another client, whose background work stands still with this runtime.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) async fn client_that_stands(&self) -> FileEngine {
        FileEngine::over(&FileOptions::new(&self.path), standing::Standing::new()).await.unwrap()
    }

    /// Returns the names of the files of keys.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn locks(&self) -> Vec<String> {
        self.list("locks")
    }

    /// Returns the names of the pipes of clients.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn clients(&self) -> Vec<String> {
        self.list("clients")
    }

    fn list(&self, inner: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path.join(inner)).into_iter().flatten();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.outer);
    }
}
