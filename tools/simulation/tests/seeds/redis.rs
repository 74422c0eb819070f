//! Seeds of runs over the simulated Redis server: those that must not break anything, and what the engine does not promise to bear.

use crate::support;
use std::time::Duration;

use ylock_simulation::Subject::{KeeperOverRedis, KeeperOverRedisCluster, RedisCluster, RedisEngine};
use ylock_simulation::{Fault, Setting, run};

#[test]
fn the_redis_engine_breaks_nothing() {
    support::nothing_breaks(RedisEngine, 300);
}

#[test]
fn the_keeper_over_redis_breaks_nothing() {
    support::nothing_breaks(KeeperOverRedis, 100);
}

/// Slots move while locks in them are held and waited for.
#[test]
fn a_cluster_breaks_nothing() {
    support::nothing_breaks(RedisCluster, 100);
}

#[test]
fn the_keeper_over_a_cluster_breaks_nothing() {
    support::nothing_breaks(KeeperOverRedisCluster, 30);
}

/// A server of a cluster that takes a lock over compares its leases with its own clock.
#[test]
fn clocks_of_a_cluster_that_differ_too_much_let_two_in() {
    let with =
        |allowed: &[Fault]| Setting { of: RedisCluster, allowed: allowed.to_vec(), ..Setting::default() };
    let setting = with(&[Fault::Reshard, Fault::Loss, Fault::Pause, Fault::Apart]);
    let found = (0..500).find(|seed| lets_two_in(*seed, &setting)).expect("clocks that differ break nothing");
    let without = with(&[Fault::Reshard, Fault::Loss, Fault::Pause]);
    assert!(!lets_two_in(found, &without), "seed {found} breaks without them, too");
}

/// A waiter that is announced behind a grant may want another lease than that.
#[test]
fn the_keeper_over_redis_breaks_nothing_with_different_leases() {
    let leases = [5, 20].map(Duration::from_secs).to_vec();
    support::none_fails(100, |seed| {
        let setting = Setting { of: KeeperOverRedis, leases: leases.clone(), ..Setting::default() };
        let wrong = run(seed, &setting).wrong;
        (!wrong.is_empty()).then(|| format!("seed {seed}: {}", wrong.join("; ")))
    });
}

#[test]
fn a_seed_decides_everything() {
    [RedisEngine, KeeperOverRedis, RedisCluster].into_iter().for_each(support::a_seed_decides_everything);
}

#[test]
fn locks_are_taken_in_every_run() {
    let all = [RedisEngine, KeeperOverRedis, RedisCluster, KeeperOverRedisCluster];
    all.into_iter().for_each(support::locks_are_taken_in_every_run);
}

/// What `engine-redis/guarantees.md` excludes must be found: otherwise the simulation would find nothing there.
#[test]
fn what_is_not_promised_lets_two_in() {
    for excluded in [Fault::Forget, Fault::SetForward, Fault::FailOver] {
        let setting = Setting { of: RedisEngine, allowed: vec![excluded], ..Setting::default() };
        assert!((0..500).any(|seed| lets_two_in(seed, &setting)), "{excluded:?} breaks nothing");
    }
}

fn lets_two_in(seed: u64, setting: &Setting<'_>) -> bool {
    run(seed, setting).wrong.iter().any(|what| what.contains("two valid holders"))
}
