//! Seeds that must not break anything.

mod support;

use ylock_engine_cassandra::options::{Clock, Protocol};
use ylock_simulation::{Setting, run};

#[test]
fn two_thousand_seeds_break_nothing() {
    assert_sound(2_000, Protocol::Queue, Clock::Hlc);
}

/// The baseline would be none if it were fast by letting two clients in.
#[test]
fn five_hundred_seeds_do_not_break_the_old_algorithm() {
    assert_sound(500, Protocol::ShadowRows, Clock::Hlc);
}

/// Clocks decide which client goes first, never which one gets in.
#[test]
fn five_hundred_seeds_break_nothing_with_the_global_time() {
    assert_sound(500, Protocol::Queue, Clock::GlobalTime);
}

fn assert_sound(seeds: u64, protocol: Protocol, clock: Clock) {
    support::none_fails(seeds, |seed| failure(seed, protocol, clock));
}

fn failure(seed: u64, protocol: Protocol, clock: Clock) -> Option<String> {
    let wrong = run(seed, &Setting { protocol, clock, ..Setting::default() }).wrong;
    (!wrong.is_empty()).then(|| {
        format!(
            "{protocol:?} {clock:?}, cargo xtask simulate --from {seed} --seeds 1 --trace: {}",
            wrong.join("; ")
        )
    })
}

/// The same seed gives the same trace, another seed another one.
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

/// A holder that found out by its renewal that it had been revoked used to give the lock back before it said so: another client got in
/// beside it.
#[test]
fn a_loss_is_told_before_the_lock_is_given_away() {
    for seed in [4, 12, 107] {
        assert_eq!(failure(seed, Protocol::Queue, Clock::Hlc), None);
    }
}
