//! The seeds that are tried with each mutant: `cargo xtask mutants` says of what.

mod support;

use clap::ValueEnum;
use ylock_simulation::Subject;

const SEEDS: u64 = 300;

#[test]
fn seeds_break_nothing() {
    let subjects = std::env::var("YLOCK_MUTANTS_OF").unwrap_or_default();
    for name in subjects.split(',').filter(|name| !name.is_empty()) {
        let of = Subject::from_str(name, false).expect("the name of a subject");
        support::nothing_breaks(of, SEEDS);
    }
}
