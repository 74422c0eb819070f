//! The files that git tracks, for checks that read them.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cargo;

/// A file that git tracks.
pub(crate) struct File {
    /// From the root of the workspace on.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Returns the files of text that one of the patterns matches. A `*` matches folders, too.
pub(crate) fn files(patterns: &[&str]) -> Result<Vec<File>> {
    let root = cargo::workspace();
    let output = Command::new("git")
        .current_dir(&root)
        .arg("ls-files")
        .args(patterns)
        .output()
        .context("git ls-files")?;
    if !output.status.success() {
        bail!("git ls-files: {}", String::from_utf8_lossy(&output.stderr));
    }
    let paths = String::from_utf8_lossy(&output.stdout);
    // A picture is no text, and a file that was removed is still tracked.
    let read = |path: &str| {
        Some(File { path: path.to_owned(), text: std::fs::read_to_string(root.join(path)).ok()? })
    };
    Ok(paths.lines().filter_map(read).collect())
}
