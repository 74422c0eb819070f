//! The benchmark that the thesis never printed: its old lock (Listings 3 and 4) against its queue lock (Listings 6 and 7).
//!
//! `cargo xtask bench thesis [-- OPTIONS]`. What is measured and what came out: `engine-cassandra/docs/benchmark.md`.

mod arguments;
mod budget;
mod chart;
mod columns;
mod contender;
mod cores;
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
use crate::results::Results;

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if let Some(cores) = arguments.cores {
        return run::with_cores(&arguments, cores);
    }
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = arguments.folder(&workspace);
    if !arguments.render_only {
        run::all(&arguments, &folder)?;
    }
    let results = Results::read(&folder)?;
    render::beside(&results, &folder)?;
    println!("tables and plots are in {}", folder.display());
    if !arguments.quick {
        let parts = render::into_documents(&results, &workspace.join("engine-cassandra/docs"))?;
        println!(
            "{parts} of 2 parts of engine-cassandra/docs/benchmark.md are written anew: all of their points are known"
        );
    }
    Ok(())
}
