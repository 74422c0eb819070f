//! Calls cargo, and asks it about the workspace.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::{child, engine::Engine};

/// Returns the root of the workspace.
pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn cargo() -> Command {
    in_workspace(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Creates the command that runs a program in the root of the workspace.
pub(crate) fn in_workspace(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(workspace());
    for (name, _) in env::vars_os() {
        // `cargo run` describes xtask in these variables. Build scripts that watch them would run again and again.
        if OURS.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command
}

/// Returns the command as a user would type it.
pub(crate) fn shown(command: &Command) -> String {
    let words = command.get_args().map(|word| word.to_string_lossy().into_owned());
    ["cargo".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

/// Builds what this command says, and returns the program of this kind that was built last.
pub(crate) fn program(mut command: Command, kind: &str) -> Result<PathBuf> {
    command.arg("--message-format=json-render-diagnostics");
    let mut messages = Vec::new();
    let status = child::stdout_into(&mut command, None, |bytes| messages.extend_from_slice(bytes))?;
    ensure!(status.success(), "`{}` ended with {status}", shown(&command));
    let messages = messages.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    let mut programs = messages.filter_map(|message: Value| {
        let is_meant = message["target"]["kind"].as_array()?.iter().any(|one| one == kind);
        message["executable"].as_str().filter(|_| is_meant).map(PathBuf::from)
    });
    programs.next_back().with_context(|| format!("`{}` has built no program", shown(&command)))
}

/// A crate of the workspace.
#[derive(Clone, Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) id: String,
    /// From the root of the workspace on; empty for the crate at the root.
    pub(crate) folder: String,
    pub(crate) features: Vec<String>,
    /// The oldest Rust that works, such as `1.88`.
    pub(crate) rust_version: String,
    /// The names of the files in `tests/`.
    pub(crate) tests: Vec<String>,
    /// True if there is a library or a program. A crate of examples alone has no unit tests.
    pub(crate) has_unit_tests: bool,
}

impl Package {
    /// Returns whether the tests of the crate are those of this engine.
    pub(crate) fn is_of(&self, engine: &Engine) -> bool {
        engine.packages.contains(&self.name.as_str())
    }
}

pub(crate) fn packages() -> Result<Vec<Package>> {
    let mut command = cargo();
    command.args(["metadata", "--no-deps", "--format-version", "1"]).stderr(Stdio::inherit());
    let output = command.output()?;
    if !output.status.success() {
        bail!("`{}` failed", shown(&command));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    let root = PathBuf::from(metadata["workspace_root"].as_str().context("cargo metadata names no root")?);
    packages.iter().map(|described| package(described, &root)).collect()
}

fn package(described: &Value, root: &Path) -> Result<Package> {
    let text = |value: &Value| {
        value.as_str().map(str::to_owned).context("cargo metadata lacks a name or a Rust version")
    };
    let features = described["features"].as_object().context("cargo metadata lacks features")?;
    let targets = described["targets"].as_array().context("cargo metadata lacks targets")?;
    let is_of = |target: &Value, kind: &str| {
        target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|one| one == kind))
    };
    let is_test = |target: &&Value| is_of(target, "test");
    let manifest = PathBuf::from(text(&described["manifest_path"])?);
    let folder = manifest.parent().context("a manifest has no folder")?.strip_prefix(root)?;
    Ok(Package {
        folder: folder.display().to_string(),
        name: text(&described["name"])?,
        id: text(&described["id"])?,
        features: features.keys().filter(|name| *name != "default").cloned().collect(),
        rust_version: text(&described["rust_version"])?,
        tests: targets.iter().filter(is_test).map(|target| text(&target["name"])).collect::<Result<_>>()?,
        has_unit_tests: targets.iter().any(|target| is_of(target, "lib") || is_of(target, "bin")),
    })
}

const OURS: [&str; 2] = ["CARGO_MANIFEST_", "CARGO_PKG_"];
