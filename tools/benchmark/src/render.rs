//! Turns results into documents.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::results::Results;
use crate::{markers, plots, tables};

/// The hand-written document in the folder of documents, with tables between markers.
const DOCUMENT: &str = "benchmark.md";
/// The folder beside it, which is generated as a whole.
const FOLDER: &str = "benchmark";
const EVERYTHING: &str = "tables.md";

/// Writes the tables and plots of the documents.
pub(crate) fn into_documents(results: &Results, documents: &Path) -> Result<()> {
    let path = documents.join(DOCUMENT);
    let mut text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    for (name, block) in tables::blocks(results) {
        text = markers::replace(&text, name, &block).with_context(|| path.display().to_string())?;
    }
    write(&path, &text)?;
    beside(results, &documents.join(FOLDER))
}

/// Writes tables and plots only, for trying out.
pub(crate) fn beside(results: &Results, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    write(&folder.join(EVERYTHING), &tables::everything(results))?;
    plots::draw(results, folder)
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
