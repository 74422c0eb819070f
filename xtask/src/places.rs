//! Where downloads, node data and lock files live: outside `target/`, so that `cargo clean` fetches nothing again.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

#[derive(Clone, Debug)]
pub(crate) struct Places {
    root: PathBuf,
}

impl Places {
    /// `$YLOCK_CACHE`, or `ylock` in the user's cache folder.
    pub(crate) fn find() -> Result<Self> {
        let given = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let root = given("YLOCK_CACHE")
            .or_else(|| given("XDG_CACHE_HOME").map(|cache| cache.join("ylock")))
            .or_else(|| given("HOME").map(|home| home.join(".cache/ylock")))
            .context("set YLOCK_CACHE to a folder where the test servers may live")?;
        let root = std::path::absolute(root)?;
        fs::create_dir_all(&root).with_context(|| format!("cannot create {}", root.display()))?;
        Ok(Self { root })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// One folder per node: `node1/pid`, `node1/log`, `node1/data`, …
    pub(crate) fn nodes(&self) -> PathBuf {
        self.root.join("nodes")
    }

    /// Held while servers are started or stopped, so that two commands never do it at once.
    pub(crate) fn change_lock(&self) -> PathBuf {
        self.root.join("change.lock")
    }

    /// Shared by every run that uses the servers; alone for tests that break them.
    pub(crate) fn usage_lock(&self) -> PathBuf {
        self.root.join("usage.lock")
    }

    pub(crate) fn skips_file(&self) -> PathBuf {
        self.root.join(format!("skips-{}", std::process::id()))
    }
}
