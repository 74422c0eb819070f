//! Runs of many seeds, and what each subject must keep to.

#![allow(dead_code, reason = "each of the tests uses a part")]

use std::sync::atomic::{AtomicU64, Ordering};

use clap::ValueEnum;
use ylock_simulation::{Outcome, Setting, Subject, run};
use ylock_testkit::short_or_long;

/// Runs the seeds on all cores. `failure` returns what goes wrong with one.
pub(crate) fn none_fails(seeds: u64, failure: impl Fn(u64) -> Option<String> + Sync) {
    let next = AtomicU64::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let worker = || -> Vec<_> {
        let numbers = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)));
        numbers.take_while(|seed| *seed < seeds).filter_map(&failure).collect()
    };
    let failed: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no panic in a run")).collect()
    });
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Ten times as many in the long run.
pub(crate) fn nothing_breaks(of: Subject, seeds: u64) {
    none_fails(short_or_long(seeds, seeds * 10), |seed| failure(of, seed));
}

pub(crate) fn failure(of: Subject, seed: u64) -> Option<String> {
    let (wrong, name) = (play(of, seed).wrong, of.to_possible_value()?);
    (!wrong.is_empty()).then(|| {
        let name = name.get_name();
        format!("cargo xtask simulate --of {name} --from {seed} --seeds 1 --trace: {}", wrong.join("; "))
    })
}

/// As `failure`, where rows of dead clients are observed; nothing of what knows no such rows.
pub(crate) fn failure_observed(of: Subject, seed: u64) -> Option<String> {
    let wrong = match of.is_of_cassandra() {
        true => run(seed, &Setting { of, ..Setting::default().observed() }).wrong,
        false => return None,
    };
    (!wrong.is_empty()).then(|| format!("{of:?}, observed, seed {seed}: {}", wrong.join("; ")))
}

fn play(of: Subject, seed: u64) -> Outcome {
    run(seed, &Setting { of, lines: true, ..Setting::default() })
}

/// The same seed gives the same trace, another seed another one.
pub(crate) fn a_seed_decides_everything(of: Subject) {
    for seed in 0..20 {
        let [once, again, other] = [seed, seed, seed + 1].map(|seed| play(of, seed));
        let differs = once.lines.iter().zip(&again.lines).find(|(one, other)| one != other);
        assert_eq!(differs, None, "{of:?}, seed {seed}");
        assert_eq!(once.hash, again.hash, "{of:?}, seed {seed}");
        assert_ne!(once.hash, other.hash, "{of:?}, seed {seed}");
    }
}

/// Nothing is found where nothing happens.
pub(crate) fn locks_are_taken_in_every_run(of: Subject) {
    for seed in 0..20 {
        assert!(play(of, seed).entries > 0, "{of:?}, seed {seed}");
    }
}
