//! The files that code in this crate writes. The repository contains them too, for users who have no Rust.

use std::{fs, path::Path};

use anyhow::{Context, Result};

use crate::{dashboards, rules};

/// Returns the names of all files, from the folder of this example, and their contents.
pub fn all() -> Vec<(String, String)> {
    let mut files: Vec<_> = dashboards::all()
        .iter()
        .map(|dashboard| {
            (format!("grafana/dashboards/{}.json", dashboard.uid), format!("{:#}\n", dashboard.json()))
        })
        .collect();
    files.extend([
        ("prometheus/rules/recording.yml".to_owned(), rules::recording_yaml()),
        ("prometheus/rules/alerts.yml".to_owned(), rules::alerts_yaml()),
        ("prometheus/tests/alerts.yml".to_owned(), rules::tests_yaml()),
    ]);
    files
}

/// Writes all files into the folder of this example, and returns their number.
///
/// # Errors
/// If a file cannot be written.
pub fn write(example: &Path) -> Result<usize> {
    let files = all();
    for (name, text) in &files {
        let file = example.join(name);
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(files.len())
}
