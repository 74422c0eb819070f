//! Seeds that must not break anything.

use std::sync::atomic::{AtomicU64, Ordering};

use ylock_simulation::{Setting, run};

const SEEDS: u64 = 2_000;

#[test]
fn two_thousand_seeds_break_nothing() {
    let next = AtomicU64::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let failed: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| failures(&next))).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no panic in a run")).collect()
    });
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

fn failures(next: &AtomicU64) -> Vec<String> {
    let seeds = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)));
    seeds.take_while(|seed| *seed < SEEDS).filter_map(failure).collect()
}

fn failure(seed: u64) -> Option<String> {
    let wrong = run(seed, &Setting::default()).wrong;
    (!wrong.is_empty())
        .then(|| format!("cargo xtask simulate --from {seed} --seeds 1 --trace: {}", wrong.join("; ")))
}

/// The same seed, the same trace; another one, another.
#[test]
fn a_seed_decides_everything() {
    for seed in 0..20 {
        let hashes = [seed, seed, seed + 1].map(|seed| run(seed, &Setting::default()).hash);
        assert_eq!(hashes[0], hashes[1], "seed {seed}");
        assert_ne!(hashes[0], hashes[2], "seed {seed}");
    }
}

/// Nothing is found where nothing happens.
#[test]
fn locks_are_taken_in_every_run() {
    for seed in 0..50 {
        assert!(run(seed, &Setting::default()).entries > 0, "seed {seed}");
    }
}

/// A holder that found out by its renewal that it had been revoked used to give the lock back before it said so: somebody
/// else got in beside it.
#[test]
fn a_loss_is_told_before_the_lock_is_given_away() {
    for seed in [4, 12] {
        assert_eq!(failure(seed), None);
    }
}
