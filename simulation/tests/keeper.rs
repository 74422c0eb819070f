//! Seeds of runs above the keeper that must not break anything.

use std::sync::atomic::{AtomicU64, Ordering};

use clap::ValueEnum;
use ylock_simulation::{Outcome, Setting, Subject, run};

#[test]
fn the_keeper_over_memory_breaks_nothing() {
    nothing_breaks(Subject::KeeperOverMemory, 1_000);
}

#[test]
fn the_keeper_over_cassandra_breaks_nothing() {
    nothing_breaks(Subject::KeeperOverCassandra, 300);
}

fn nothing_breaks(of: Subject, seeds: u64) {
    let next = AtomicU64::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let failed: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| failures(of, &next, seeds))).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no panic in a run")).collect()
    });
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

fn failures(of: Subject, next: &AtomicU64, seeds: u64) -> Vec<String> {
    let numbers = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)));
    numbers.take_while(|seed| *seed < seeds).filter_map(|seed| failure(of, seed)).collect()
}

fn failure(of: Subject, seed: u64) -> Option<String> {
    let (wrong, name) = (play(of, seed).wrong, of.to_possible_value()?);
    (!wrong.is_empty()).then(|| {
        let name = name.get_name();
        format!("cargo xtask simulate --of {name} --from {seed} --seeds 1 --trace: {}", wrong.join("; "))
    })
}

fn play(of: Subject, seed: u64) -> Outcome {
    run(seed, &Setting { of, lines: true, ..Setting::default() })
}

/// The same seed gives the same trace, another seed another one. Every map of every run has a random seed of its own, so nothing
/// depends on the order of a map.
#[test]
fn a_seed_decides_everything() {
    for of in [Subject::KeeperOverMemory, Subject::KeeperOverCassandra] {
        for seed in 0..20 {
            let [once, again, other] = [seed, seed, seed + 1].map(|seed| play(of, seed));
            let differs = once.lines.iter().zip(&again.lines).find(|(one, other)| one != other);
            assert_eq!(differs, None, "{of:?}, seed {seed}");
            assert_eq!(once.hash, again.hash, "{of:?}, seed {seed}");
            assert_ne!(once.hash, other.hash, "{of:?}, seed {seed}");
        }
    }
}

/// Nothing is found where nothing happens.
#[test]
fn locks_are_taken_in_every_run() {
    for of in [Subject::KeeperOverMemory, Subject::KeeperOverCassandra] {
        for seed in 0..20 {
            assert!(play(of, seed).entries > 0, "{of:?}, seed {seed}");
        }
    }
}

/// A reader that shared the lock with a writer that had become a reader used to get the token of the writer.
#[test]
fn a_reader_that_joins_a_former_writer_has_a_larger_token() {
    assert_eq!(failure(Subject::KeeperOverMemory, 1), None);
    assert_eq!(failure(Subject::KeeperOverCassandra, 1), None);
}

/// A process that was paused for a lease in its first attempt to give a lock back used to give up, and told all its waiters that the
/// store did not answer.
#[test]
fn a_pause_does_not_give_up_a_release() {
    for seed in [367, 976, 999] {
        assert_eq!(failure(Subject::KeeperOverMemory, seed), None);
    }
}
