//! Words that leave a reader to guess who is meant: `cargo xtask check` finds them in what users and contributors read.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// A sentence names the holder, waiter, client, server or caller instead.
const VAGUE: [&str; 8] =
    ["somebody", "nobody", "whoever", "everybody", "anybody", "someone", "anyone", "everyone"];
/// The product's sources and the pages.
const READ: [&str; 6] =
    ["*.md", "src/*", "ylock-core/src/*", "ylock-metrics/src/*", "engine-*/src/*", "examples/*"];

/// Fails, with every place, if a vague word is found.
pub(crate) fn check() -> Result<()> {
    let mut found = Vec::new();
    for path in read_files()? {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        found.extend(vague_words(&path, &text));
    }
    if found.is_empty() { Ok(()) } else { bail!("sentences do not name who is meant:\n{}", found.join("\n")) }
}

fn read_files() -> Result<Vec<PathBuf>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let output =
        Command::new("git").current_dir(&root).arg("ls-files").args(READ).output().context("git ls-files")?;
    if !output.status.success() {
        bail!("git ls-files: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(|path| root.join(path)).collect())
}

fn vague_words(path: &Path, text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let is_vague = |word: &str| VAGUE.contains(&word.to_lowercase().as_str());
    let lines = text.lines().enumerate().filter(|(_, line)| line.split(|c| !is_part(c)).any(is_vague));
    lines.map(|(number, line)| format!("  {}:{}: {}", path.display(), number + 1, line.trim())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_and_names_of_tests_are_not() {
        let found = vague_words(
            Path::new("a.rs"),
            "// Nobody waits.\nfn nobody_waits() {}\n/// The waiter, whoever it is.",
        );
        assert_eq!(found, ["  a.rs:1: // Nobody waits.", "  a.rs:3: /// The waiter, whoever it is."]);
    }
}
