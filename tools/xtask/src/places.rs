//! The folders of downloads, node data and lock files: outside `target/`, so that `cargo clean` does not remove them.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

#[derive(Clone, Debug)]
pub(crate) struct Places {
    root: PathBuf,
    is_for_tests: bool,
}

impl Places {
    /// Finds the root: `$YLOCK_CACHE`, or `ylock` in the user's cache folder.
    pub(crate) fn find() -> Result<Self> {
        let given = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let root = given("YLOCK_CACHE")
            .or_else(|| given("XDG_CACHE_HOME").map(|cache| cache.join("ylock")))
            .or_else(|| given("HOME").map(|home| home.join(".cache/ylock")))
            .context("no cache folder is known: set YLOCK_CACHE to a folder for the test servers")?;
        let root = std::path::absolute(root)?;
        fs::create_dir_all(&root).with_context(|| format!("cannot create {}", root.display()))?;
        Ok(Self { root, is_for_tests: false })
    }

    #[cfg(test)]
    pub(crate) fn at(root: PathBuf) -> Self {
        Self { root, is_for_tests: false }
    }

    /// Returns the same places, for servers that live for minutes and of which no speed is measured.
    pub(crate) fn for_tests(&self) -> Self {
        Self { is_for_tests: true, ..self.clone() }
    }

    pub(crate) fn is_for_tests(&self) -> bool {
        self.is_for_tests
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the lock file that is held while servers are started or stopped, so that two commands never do this at once.
    pub(crate) fn change_lock(&self) -> PathBuf {
        self.root.join("change.lock")
    }

    /// Returns the lock file that every run that uses the servers shares, and that tests that break servers hold alone.
    pub(crate) fn usage_lock(&self) -> PathBuf {
        self.root.join("usage.lock")
    }

    pub(crate) fn skips_file(&self) -> PathBuf {
        self.root.join(format!("skips-{}", std::process::id()))
    }
}
