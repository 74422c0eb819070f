//! The command `ylock` of one of the two versions.

use std::{
    ffi::OsStr,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use anyhow::{Context, Result};

use super::holder::Holder;
use crate::{cargo, tree::Tree};

/// The exit codes of `ylock`.
pub(super) const REFUSED: i32 = 64;
pub(super) const NOT_FREE: i32 = 75;

/// For so long a command waits for a lock that it must get.
const PATIENCE: &str = "60s";

#[derive(Debug)]
pub(super) struct Program {
    /// The word for the version, in what is printed.
    pub(super) name: &'static str,
    path: PathBuf,
}

/// What a command takes: a lock or a permit.
pub(super) type Taken<'a> = &'a [&'a str];

impl Program {
    /// Builds the command as it was at a commit, and as it is now.
    pub(super) fn both(commit: &str) -> Result<[Self; 2]> {
        let now = built(cargo::cargo())?;
        let tree = Tree::of(commit)?;
        let before = built(tree.cargo()).with_context(|| format!("the command of {commit}"))?;
        Ok([Self { name: "before", path: before }, Self { name: "now", path: now }])
    }

    fn command<S: AsRef<OsStr>>(&self, store: &str, words: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(&self.path);
        // Nothing of the user's own configuration.
        command.env("YLOCK_STORE", store).env("YLOCK_CONFIG", "/dev/null").env_remove("YLOCK_PASSWORD");
        command.args(words).stdin(Stdio::null());
        command
    }

    /// Returns what a command says that ends by itself.
    pub(super) fn says(&self, store: &str, words: &[&str]) -> Result<Output> {
        self.command(store, words).output().with_context(|| format!("cannot run {}", self.path.display()))
    }

    /// Begins to wait for a lock, to hold it then until it is told to give it back.
    pub(super) fn takes(&self, store: &str, taken: Taken<'_>) -> Result<Holder> {
        let words = [&["run", "--wait", PATIENCE], taken, &["--", "sh", "-c", Holder::COMMAND]].concat();
        Holder::begin(self.command(store, words))
    }

    /// Tries to take a lock for a moment. Returns what the attempt has said.
    pub(super) fn tries(&self, store: &str, taken: Taken<'_>) -> Result<Output> {
        self.says(store, &[&["run", "--no-wait"], taken, &["--", "true"]].concat())
    }
}

fn built(mut cargo: Command) -> Result<PathBuf> {
    cargo.args(["build", "--package=ylock-cli", "--features=all"]);
    cargo::program(cargo, "bin")
}
