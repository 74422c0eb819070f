//! Returns the end of a log, for error messages.

use std::{fs, path::Path};

pub(crate) fn of(log: &[u8]) -> String {
    let text = String::from_utf8_lossy(log);
    let lines: Vec<_> = text.lines().collect();
    let end = lines[lines.len().saturating_sub(LINES)..].iter();
    end.map(|line| line.chars().take(WIDTH).collect()).collect::<Vec<String>>().join("\n")
}

pub(crate) fn of_file(log: &Path) -> String {
    let end = fs::read(log).map(|bytes| of(&bytes)).unwrap_or_default();
    format!("the last lines of {}:\n{end}", log.display())
}

const LINES: usize = 30;

/// The longest part of a line that is shown: Cassandra prints its whole configuration as one line.
const WIDTH: usize = 300;
