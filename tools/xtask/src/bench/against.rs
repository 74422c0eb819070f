//! Compares a benchmark with that of an older commit: `cargo xtask bench redis --against COMMIT`.
//!
//! Both programs are built first and then run in turns, so that what the machine does meanwhile hits both.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

use super::figures::Figures;
use crate::{cargo, child, engine::Bench, store::Variable, tree::Tree};

const ROUNDS: usize = 5;

/// The two programs.
pub(super) struct Programs {
    before: PathBuf,
    now: PathBuf,
}

impl Programs {
    /// Builds the benchmark as it is now, and as it was at a commit.
    pub(super) fn build(bench: &Bench, commit: &str) -> Result<Self> {
        let now = program(cargo::cargo(), bench)?;
        let tree = Tree::of(commit)?;
        Ok(Self { before: program(tree.cargo(), bench)?, now })
    }

    /// Runs both in turns, and prints the median of each figure.
    pub(super) fn compare(&self, arguments: &[String], variables: &[Variable]) -> Result<()> {
        let (mut before, mut now) = (Figures::default(), Figures::default());
        for round in 0..ROUNDS {
            eprintln!("round {} of {ROUNDS}", round + 1);
            let mut both = [(&self.before, &mut before), (&self.now, &mut now)];
            // What runs first may find the machine in another state.
            if round % 2 == 1 {
                both.reverse();
            }
            for (program, figures) in both {
                figures.add(&run(program, arguments, variables)?);
            }
        }
        print(&before, &now);
        Ok(())
    }
}

fn run(program: &Path, arguments: &[String], variables: &[Variable]) -> Result<String> {
    let mut command = cargo::in_workspace(program);
    command.arg("--bench").args(arguments).envs(variables.iter().map(|(name, value)| (name, value)));
    let mut printed = Vec::new();
    let status = child::stdout_into(&mut command, None, |bytes| printed.extend_from_slice(bytes))?;
    ensure!(status.success(), "{} ended with {status}", program.display());
    Ok(String::from_utf8_lossy(&printed).into_owned())
}

/// Prints the lines that both have, each with the medians before and now and the ratio of every number that is not the same.
fn print(before: &Figures, now: &Figures) {
    let mut heading = "";
    for place in &now.order {
        let (Some(old), Some(new)) = (before.medians(place), now.medians(place)) else {
            println!("(only one of the two prints) {}", place.with(&now.medians(place).unwrap_or_default()));
            continue;
        };
        if heading != place.heading() {
            heading = place.heading();
            println!("\n## {heading}");
        }
        let ratios = old.iter().zip(&new).filter(|(old, new)| old != new);
        let ratios: Vec<_> = ratios.map(|(old, new)| format!("{:.2}", new / old)).collect();
        println!("before  {}", place.with(&old));
        println!("now     {}  (× {})", place.with(&new), ratios.join(", "));
    }
}

/// Builds a benchmark, and returns its program.
fn program(mut cargo: Command, bench: &Bench) -> Result<PathBuf> {
    let Some(words) = bench.command.strip_prefix("bench ") else {
        bail!("{} is not a benchmark of cargo, so two of its runs cannot be compared", bench.name);
    };
    cargo.args(["bench", "--no-run"]).args(words.split(' '));
    cargo::program(cargo, "bench").context("the benchmark does not compile")
}
