//! Words that leave a reader to guess who is meant: `cargo xtask check` finds them in what users and contributors read.

use anyhow::{Result, bail};

use crate::tracked;

/// A sentence names the holder, waiter, client, server or caller instead.
const VAGUE: [&str; 8] =
    ["somebody", "nobody", "whoever", "everybody", "anybody", "someone", "anyone", "everyone"];
/// The sources of the product and of its conformance suite, and the pages.
const READ: [&str; 8] = [
    "*.md",
    "src/*",
    "ylock-cli/src/*",
    "ylock-core/src/*",
    "ylock-metrics/src/*",
    "engine-*/src/*",
    "examples/*",
    "tools/testkit/src/*",
];

/// Fails, with every place, if a vague word is found.
pub(crate) fn check() -> Result<()> {
    let files = tracked::files(&READ)?;
    let found: Vec<String> = files.iter().flat_map(|file| vague_words(&file.path, &file.text)).collect();
    if found.is_empty() { Ok(()) } else { bail!("sentences do not name who is meant:\n{}", found.join("\n")) }
}

fn vague_words(path: &str, text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let is_vague = |word: &str| VAGUE.contains(&word.to_lowercase().as_str());
    let lines = text.lines().enumerate().filter(|(_, line)| line.split(|c| !is_part(c)).any(is_vague));
    lines.map(|(number, line)| format!("  {path}:{}: {}", number + 1, line.trim())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_and_names_of_tests_are_not() {
        let found =
            vague_words("a.rs", "// Nobody waits.\nfn nobody_waits() {}\n/// The waiter, whoever it is.");
        assert_eq!(found, ["  a.rs:1: // Nobody waits.", "  a.rs:3: /// The waiter, whoever it is."]);
    }
}
