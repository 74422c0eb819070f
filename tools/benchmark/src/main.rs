//! The benchmark that the thesis never printed: its old lock (Listings 3 and 4) against its queue lock (Listings 6 and 7).
//!
//! `cargo xtask bench thesis [-- OPTIONS]`. What is measured and what came out: `engine-cassandra/docs/benchmark.md`.

mod arguments;
mod budget;
mod chart;
mod columns;
mod contender;
mod counting;
mod critical_section;
mod figures;
mod machine;
mod markers;
mod matrix;
mod measure;
mod plots;
mod point;
mod real;
mod record;
mod render;
mod results;
mod run;
mod simulated;
mod tables;

use std::path::Path;

use anyhow::Result;
use clap::Parser;

use crate::arguments::Arguments;
use crate::matrix::{CONTENDERS, HOLDS, Place, points};
use crate::results::Results;

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = arguments.folder(&workspace);
    if !arguments.render_only {
        run::all(&arguments, &folder)?;
    }
    let results = Results::read(&folder)?;
    // Half a matrix would take the other half out of the documents; a user who wants that says so.
    if arguments.render_only || (!arguments.quick && is_whole(&results)) {
        render::into_documents(&results, &workspace.join("engine-cassandra/docs"))?;
        println!("engine-cassandra/docs/benchmark.md shows {} points", results.points.len());
    } else {
        render::beside(&results, &folder)?;
        println!("tables and plots are in {}; --render-only puts them into the documents", folder.display());
    }
    Ok(())
}

/// Returns whether every point of the matrix is known.
fn is_whole(results: &Results) -> bool {
    let mut places = Arguments::simulated_places();
    places.push(Place::Real);
    let all = points(&places, &CONTENDERS, &HOLDS);
    all.iter().all(|point| results.points.contains_key(point))
}
