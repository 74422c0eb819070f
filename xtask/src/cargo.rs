//! Calls cargo, and asks it about the workspace.

use std::{
    env,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
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

/// A crate of the workspace.
#[derive(Clone, Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) features: Vec<String>,
    /// The names of the files in `tests/`.
    pub(crate) tests: Vec<String>,
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
    packages.iter().map(package).collect()
}

fn package(described: &Value) -> Result<Package> {
    let text = |value: &Value| value.as_str().map(str::to_owned).context("cargo metadata lacks a name");
    let features = described["features"].as_object().context("cargo metadata lacks features")?;
    let targets = described["targets"].as_array().context("cargo metadata lacks targets")?;
    let is_test =
        |target: &&Value| target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|k| k == "test"));
    Ok(Package {
        name: text(&described["name"])?,
        id: text(&described["id"])?,
        features: features.keys().filter(|name| *name != "default").cloned().collect(),
        tests: targets.iter().filter(is_test).map(|target| text(&target["name"])).collect::<Result<_>>()?,
    })
}

const OURS: [&str; 2] = ["CARGO_MANIFEST_", "CARGO_PKG_"];
