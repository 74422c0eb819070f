//! Compiles the published crates with the oldest Rust that `rust-version` says is enough.

use std::process::Command;

use anyhow::{Result, bail};

use crate::{cargo, child};

/// Fails if the crates do not compile. Where that Rust is not installed, returns why the check is left out: installing it is up to the user.
pub(crate) fn check(version: &str, unpublished: &[&str]) -> Result<Option<String>> {
    let Some(toolchain) = installed().into_iter().find(|toolchain| is_of(version, toolchain)) else {
        let install = format!("rustup toolchain install {version} --profile minimal");
        return Ok(Some(format!("Rust {version}, the oldest that works, is not installed: `{install}`")));
    };
    // The cargo that runs this program is of another version, and so is the first one on its path.
    let mut command = cargo::in_workspace("rustup");
    command.args(["run", &toolchain, "cargo", "check", "--workspace", "--all-features"]);
    command.args(unpublished.iter().flat_map(|package| ["--exclude", package]));
    eprintln!("\nrustup run {toolchain} cargo check --workspace --all-features, of the published crates");
    if !child::run(&mut command, None)?.success() {
        bail!("the published crates do not compile with Rust {version}");
    }
    Ok(None)
}

/// Returns the names of the installed toolchains; none without `rustup`.
fn installed() -> Vec<String> {
    let Ok(output) = Command::new("rustup").args(["toolchain", "list"]).output() else { return Vec::new() };
    let names = String::from_utf8_lossy(&output.stdout);
    names.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// Returns whether a toolchain is of this version: `1.88-x86_64-…`, or a patch of it, `1.88.0-x86_64-…`.
fn is_of(version: &str, toolchain: &str) -> bool {
    toolchain.strip_prefix(version).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toolchain_is_of_the_version_that_its_name_begins_with() {
        for toolchain in
            ["1.88", "1.88.0", "1.88-x86_64-unknown-linux-gnu", "1.88.0-x86_64-unknown-linux-gnu"]
        {
            assert!(is_of("1.88", toolchain), "{toolchain}");
        }
        for toolchain in ["1.8.0", "1.880.0", "11.88.0", "stable-x86_64-unknown-linux-gnu", "nightly-1.88"] {
            assert!(!is_of("1.88", toolchain), "{toolchain}");
        }
    }
}
