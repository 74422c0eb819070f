//! Seeds of runs in which tasks take several locks at once, or one after the other as they find out which they need.
//!
//! That every one of them gets in is the check that no ring of waiters closes.

use crate::support;
use ylock_simulation::Subject::{
    KeeperAtOnce, KeeperOverCassandra, KeeperOverEtcd, KeeperOverMemory, KeeperOverRedis, KeeperOverZookeeper,
};
use ylock_simulation::{Outcome, Sets, Setting, Subject, run};

fn play(of: Subject, seed: u64) -> Outcome {
    run(seed, &Setting { of, sets: Sets::Right, lines: true, ..Setting::default() })
}

fn nothing_breaks(of: Subject) {
    let name = support::name(of);
    support::none_fails(&format!("{name} --sets"), |seed| {
        let wrong = play(of, seed).wrong.join("; ");
        let again =
            format!("cargo xtask simulate --of {name} --sets --expiry ttl --from {seed} --seeds 1 --trace");
        (!wrong.is_empty()).then(|| format!("{again}: {wrong}"))
    });
}

#[test]
fn sets_over_memory_break_nothing() {
    nothing_breaks(KeeperOverMemory);
}

#[test]
fn sets_that_are_answered_at_once_break_nothing() {
    nothing_breaks(KeeperAtOnce);
}

#[test]
fn sets_over_cassandra_break_nothing() {
    nothing_breaks(KeeperOverCassandra);
}

#[test]
fn sets_over_redis_break_nothing() {
    nothing_breaks(KeeperOverRedis);
}

#[test]
fn sets_over_zookeeper_break_nothing() {
    nothing_breaks(KeeperOverZookeeper);
}

#[test]
fn sets_over_etcd_break_nothing() {
    nothing_breaks(KeeperOverEtcd);
}

#[test]
fn a_seed_decides_everything() {
    for of in [KeeperOverMemory, KeeperAtOnce, KeeperOverCassandra] {
        for seed in 0..10 {
            let [once, again] = [seed, seed].map(|seed| play(of, seed));
            let differs = once.lines.iter().zip(&again.lines).find(|(one, other)| one != other);
            assert_eq!(differs, None, "{of:?}, seed {seed}");
            assert_eq!(once.hash, again.hash, "{of:?}, seed {seed}");
        }
    }
}
