//! The seeds that are tried with each mutant: `cargo xtask mutants` says of what.

mod support;

use std::ops::Range;

use clap::ValueEnum;
use support::failure;
use ylock_simulation::Subject;

const SEEDS: u64 = 300;
/// The seeds that are tried before it is looked whether one has failed: most mutants fail with the first ones.
const PART: u64 = 10;
/// The seeds of each subject where none is named.
const A_FEW: u64 = 5;

#[test]
fn seeds_break_nothing() {
    let Ok(names) = std::env::var("YLOCK_MUTANTS_OF") else {
        return Subject::value_variants()
            .iter()
            .for_each(|of| none_fails(0..A_FEW, |seed| failure(*of, seed)));
    };
    for name in names.split(',') {
        let of = Subject::from_str(name, false).expect("the name of a subject");
        for first in (0..SEEDS).step_by(PART as usize) {
            none_fails(first..first + PART, |seed| {
                failure(of, seed).or_else(|| support::failure_observed(of, seed))
            });
        }
    }
}

fn none_fails(seeds: Range<u64>, failure: impl Fn(u64) -> Option<String> + Sync) {
    let (failed, _) = support::failures(seeds, failure);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
