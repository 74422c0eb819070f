//! Turns results into documents.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::arguments::Arguments;
use crate::matrix::{CONTENDERS, HOLDS, Lock, Place, Point, points};
use crate::results::Results;
use crate::{markers, plots, tables};

/// The hand-written document in the folder of documents, with tables between markers.
const DOCUMENT: &str = "benchmark.md";
/// The folder beside it, which is generated as a whole.
const FOLDER: &str = "benchmark";
const EVERYTHING: &str = "tables.md";

/// Writes the parts of the document whose points are all known, and returns how many they are: half of a part would take the other half out
/// of the document.
pub(crate) fn into_documents(results: &Results, documents: &Path) -> Result<usize> {
    let path = documents.join(DOCUMENT);
    let mut parts = 0;
    let all = whole_matrix();
    let known = |part: fn(&Point) -> bool| {
        all.iter().filter(|point| part(point)).all(|point| results.points.contains_key(point))
    };
    if known(|point| point.lock != Lock::Told) {
        replace(&path, tables::blocks(results))?;
        beside(results, &documents.join(FOLDER))?;
        parts += 1;
    }
    if known(Point::compares_told) {
        replace(&path, vec![("told", tables::told(results))])?;
        parts += 1;
    }
    Ok(parts)
}

fn whole_matrix() -> Vec<Point> {
    let mut places = Arguments::simulated_places();
    places.push(Place::Real);
    points(&places, &CONTENDERS, &HOLDS)
}

/// Puts new contents between the markers of these names.
fn replace(path: &Path, blocks: Vec<(&str, String)>) -> Result<()> {
    let mut text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    for (name, block) in blocks {
        text = markers::replace(&text, name, &block).with_context(|| path.display().to_string())?;
    }
    write(path, &text)
}

/// Writes tables and plots only.
pub(crate) fn beside(results: &Results, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    write(&folder.join(EVERYTHING), &tables::everything(results))?;
    plots::draw(results, folder)
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
