//! The work tree of another commit, to compare with.

use std::{path::PathBuf, process::Command};

use anyhow::{Result, ensure};

use crate::{cargo, child};

/// A work tree, which is removed with this.
pub(crate) struct Tree(PathBuf);

impl Tree {
    pub(crate) fn of(commit: &str) -> Result<Self> {
        let path = root().join("tree");
        // One that an earlier run could not remove.
        drop(Self(path.clone()));
        let mut add = cargo::in_workspace("git");
        add.args(["worktree", "add", "--quiet", "--force", "--detach"]).arg(&path).arg(commit);
        ensure!(child::run(&mut add, None)?.success(), "there is no work tree of {commit}");
        Ok(Self(path))
    }

    /// Returns a command of cargo in this tree. What it builds outlives the tree.
    pub(crate) fn cargo(&self) -> Command {
        let mut cargo = cargo::cargo();
        cargo.current_dir(&self.0).env("CARGO_TARGET_DIR", root().join("build"));
        cargo
    }
}

fn root() -> PathBuf {
    cargo::workspace().join("target/against")
}

impl Drop for Tree {
    fn drop(&mut self) {
        if self.0.exists() {
            let mut remove = cargo::in_workspace("git");
            remove.args(["worktree", "remove", "--force"]).arg(&self.0);
            // What is left is removed by the next run.
            let _ = child::run(&mut remove, None);
        }
    }
}
