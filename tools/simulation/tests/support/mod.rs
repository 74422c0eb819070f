//! Runs of many seeds, and what each subject must keep to.

#![allow(dead_code, reason = "each of the tests uses a part")]

mod played;

use std::fs;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::ValueEnum;
use ylock_simulation::{Outcome, Setting, Subject, run};
use ylock_testkit::part_again;

pub(crate) use played::seeds_of;

/// Runs the seeds that this run plays of what a row of the table names. `failure` returns what goes wrong with one.
pub(crate) fn none_fails(what: &str, failure: impl Fn(u64) -> Option<String> + Sync) {
    let seeds = seeds_of(what);
    let (failed, cpu) = failures(seeds.clone(), failure);
    let each = cpu / u32::try_from(seeds.end - seeds.start).expect("not that many seeds");
    println!("seeds {seeds:?} of {what}, {each:?} of CPU each");
    assert!(failed.is_empty(), "{}: seeds {seeds:?} of {what}:\n{}", part_again(), failed.join("\n"));
}

/// Runs these seeds on all cores. Returns what goes wrong with them, and the CPU time that they take.
pub(crate) fn failures(
    seeds: Range<u64>,
    failure: impl Fn(u64) -> Option<String> + Sync,
) -> (Vec<String>, Duration) {
    let next = AtomicU64::new(seeds.start);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let worker = || -> (Vec<_>, Duration) {
        let numbers = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)));
        let failed = numbers.take_while(|seed| *seed < seeds.end).filter_map(&failure).collect();
        (failed, cpu_of_this_thread())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        let all = workers.into_iter().map(|worker| worker.join().expect("no panic in a run"));
        all.fold(Default::default(), |(failed, cpu), (more, other)| ([failed, more].concat(), cpu + other))
    })
}

/// Fails unless one of so many seeds from `at` on finds a mistake; `finds` returns what one has found. `at` is the seed that found it last, so that one
/// run is enough until something changes.
pub(crate) fn must_be_found(variant: &str, at: u64, seeds: u64, finds: impl Fn(u64) -> Option<String>) {
    match (at..at + seeds).find_map(|seed| Some((seed, finds(seed)?))) {
        Some((seed, what)) if seed == at => println!("| {variant} | seed {seed} | {what} |"),
        Some((seed, what)) => println!("| {variant} | seed {seed}: write it down for {at} | {what} |"),
        None => panic!("{variant}: {seeds} seeds from {at} on did not find it"),
    }
}

/// Returns zero where the system does not say.
fn cpu_of_this_thread() -> Duration {
    let said = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = said.split(' ').next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

/// Returns how the command `simulate` and the table call a subject.
pub(crate) fn name(of: Subject) -> String {
    of.to_possible_value().expect("a name").get_name().to_owned()
}

/// Runs seeds of a subject, as many as the table says.
pub(crate) fn nothing_breaks(of: Subject) {
    none_fails(&name(of), |seed| failure(of, seed));
}

pub(crate) fn failure(of: Subject, seed: u64) -> Option<String> {
    let wrong = play(of, seed).wrong;
    (!wrong.is_empty()).then(|| {
        let (name, wrong) = (name(of), wrong.join("; "));
        format!("cargo xtask simulate --of {name} --from {seed} --seeds 1 --trace: {wrong}")
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
    let first = seeds_of(&name(of)).start;
    for seed in first..first + a_few(of) {
        let [once, again, other] = [seed, seed, seed + 1].map(|seed| play(of, seed));
        let differs = once.lines.iter().zip(&again.lines).find(|(one, other)| one != other);
        assert_eq!(differs, None, "{of:?}, seed {seed}");
        assert_eq!(once.hash, again.hash, "{of:?}, seed {seed}");
        assert_ne!(once.hash, other.hash, "{of:?}, seed {seed}");
    }
}

/// Nothing is found where nothing happens.
pub(crate) fn locks_are_taken_in_every_run(of: Subject) {
    for seed in 0..a_few(of) {
        assert!(play(of, seed).entries > 0, "{of:?}, seed {seed}");
    }
}

/// Returns how many seeds are played of a subject where a few are enough: an eighth of the part of this run, at most twenty.
fn a_few(of: Subject) -> u64 {
    let part = seeds_of(&name(of));
    ((part.end - part.start) / 8).clamp(2, 20)
}
