//! Seeds of runs over the simulated Redis server: those that must not break anything, and what the engine does not promise to bear.

use crate::support;
use std::time::Duration;

use ylock_simulation::Subject::{KeeperOverRedis, KeeperOverRedisCluster, RedisCluster, RedisEngine};
use ylock_simulation::{Fault, Setting, run};

#[test]
fn the_redis_engine_breaks_nothing() {
    support::nothing_breaks(RedisEngine);
}

#[test]
fn the_keeper_over_redis_breaks_nothing() {
    support::nothing_breaks(KeeperOverRedis);
}

/// Slots move while locks in them are held and waited for.
#[test]
fn a_cluster_breaks_nothing() {
    support::nothing_breaks(RedisCluster);
}

#[test]
fn the_keeper_over_a_cluster_breaks_nothing() {
    support::nothing_breaks(KeeperOverRedisCluster);
}

/// A server of a cluster that takes a lock over compares its leases with its own clock.
#[test]
fn clocks_of_a_cluster_that_differ_too_much_let_two_in() {
    let with =
        |allowed: &[Fault]| Setting { of: RedisCluster, allowed: allowed.to_vec(), ..Setting::default() };
    let setting = with(&[Fault::Reshard, Fault::Loss, Fault::Pause, Fault::Apart]);
    let without = with(&[Fault::Reshard, Fault::Loss, Fault::Pause]);
    support::must_be_found("clocks differ", 6, 500, |seed| {
        let found = two_inside(seed, &setting)?;
        assert_eq!(two_inside(seed, &without), None, "seed {seed} breaks without them, too");
        Some(found)
    });
}

/// A waiter that is announced behind a grant may want another lease than that.
#[test]
fn the_keeper_over_redis_breaks_nothing_with_different_leases() {
    let leases = [5, 20].map(Duration::from_secs).to_vec();
    support::none_fails("keeper-over-redis, two leases", |seed| {
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
    for (excluded, at) in [(Fault::Forget, 3), (Fault::SetForward, 0), (Fault::FailOver, 0)] {
        let setting = Setting { of: RedisEngine, allowed: vec![excluded], ..Setting::default() };
        support::must_be_found(&format!("{excluded:?}"), at, 500, |seed| two_inside(seed, &setting));
    }
}

fn two_inside(seed: u64, setting: &Setting<'_>) -> Option<String> {
    run(seed, setting).wrong.into_iter().find(|what| what.contains("two valid holders"))
}
