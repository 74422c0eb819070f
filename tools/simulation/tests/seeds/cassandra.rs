//! Seeds that must not break anything.

use crate::support;
use std::time::Duration;

use ylock_engine_cassandra::options::{Clock, Protocol};
use ylock_simulation::{Setting, Subject, run};

#[test]
fn the_queue_breaks_nothing() {
    assert_sound("engine", Protocol::Queue, Clock::Hlc);
}

/// The baseline would be none if it were fast by letting two clients in.
#[test]
fn the_old_algorithm_breaks_nothing() {
    assert_sound("engine --protocol shadow-rows", Protocol::ShadowRows, Clock::Hlc);
}

/// Clocks decide which client goes first, never which one gets in.
#[test]
fn the_queue_breaks_nothing_with_the_global_time() {
    assert_sound("engine --clock global-time", Protocol::Queue, Clock::GlobalTime);
}

/// With clocks of the nodes that are as wrong as clients are told, clocks of clients that drift by 5 %, and three leases.
#[test]
fn the_queue_breaks_nothing_where_rows_are_observed() {
    support::none_fails("engine --expiry observed", |seed| failure_of(seed, Setting::default().observed()));
}

#[test]
fn the_old_algorithm_breaks_nothing_where_rows_are_observed() {
    let setting = || Setting { protocol: Protocol::ShadowRows, ..Setting::default().observed() };
    let what = "engine --expiry observed --protocol shadow-rows";
    support::none_fails(what, |seed| failure_of(seed, setting()));
}

#[test]
fn the_keeper_breaks_nothing_where_rows_are_observed() {
    let setting = || Setting { of: Subject::KeeperOverCassandra, ..Setting::default().observed() };
    support::none_fails("keeper-over-cassandra --expiry observed", |seed| failure_of(seed, setting()));
}

/// Looks showed now that a client had left and now that it waited, as only one replica had heard of it. What was noted of the client was forgotten
/// each time, so its row was watched anew without end.
#[test]
fn the_seed_in_which_a_row_was_watched_without_end_breaks_nothing() {
    assert_eq!(failure_of(7_300_002_727, Setting::default().observed()), None);
}

/// A client left, and after that came the answer to its write that had said that it was inside. The observer of the queue took the place for one that
/// was there, and complained of a newcomer that could not see it any more.
#[test]
fn the_seed_in_which_an_answer_came_after_its_row_was_left_breaks_nothing() {
    let leases = [5000, 1200, 20_000].map(Duration::from_millis).to_vec();
    let setting = Setting { replicas: 5, leases, ..Setting::default().observed() };
    assert_eq!(failure_of(50_021_384, setting), None);
}

/// Nothing is proved of burials where nothing is buried.
#[test]
fn rows_are_buried() {
    let burials: u64 = (0..50).map(|seed| run(seed, &Setting::default().observed()).burials).sum();
    assert!(burials > 50, "{burials}");
}

fn assert_sound(what: &str, protocol: Protocol, clock: Clock) {
    support::none_fails(what, |seed| failure(seed, protocol, clock));
}

fn failure(seed: u64, protocol: Protocol, clock: Clock) -> Option<String> {
    failure_of(seed, Setting { protocol, clock, ..Setting::default() })
}

fn failure_of(seed: u64, setting: Setting<'_>) -> Option<String> {
    let wrong = run(seed, &setting).wrong;
    let Setting { of, protocol, clock, expiry, .. } = setting;
    (!wrong.is_empty()).then(|| {
        format!(
            "{of:?} {protocol:?} {clock:?}, cargo xtask simulate --expiry {expiry} --from {seed} --seeds 1 --trace: {}",
            wrong.join("; ")
        )
    })
}

/// The same seed gives the same trace, another seed another one.
#[test]
fn a_seed_decides_everything() {
    for seed in 0..20 {
        for setting in [Setting::default(), Setting::default().observed()] {
            let hashes = [seed, seed, seed + 1].map(|seed| run(seed, &setting).hash);
            assert_eq!(hashes[0], hashes[1], "{setting:?}, seed {seed}");
            assert_ne!(hashes[0], hashes[2], "{setting:?}, seed {seed}");
        }
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
