//! Seeds of runs in which tasks use what is built on locks: permits, the lead, and jobs that are run once per period.

use crate::support;
use ylock_simulation::Subject::{
    KeeperAtOnce, KeeperOverCassandra, KeeperOverEtcd, KeeperOverMemory, KeeperOverRedis, KeeperOverZookeeper,
};
use ylock_simulation::{Built, Outcome, Setting, Subject, run};

fn play(of: Subject, seed: u64) -> Outcome {
    run(seed, &Setting { of, built: Built::Right, lines: true, ..Setting::default() })
}

fn nothing_breaks(of: Subject) {
    let name = support::name(of);
    support::none_fails(&format!("{name} --built"), |seed| {
        let wrong = play(of, seed).wrong.join("; ");
        let again =
            format!("cargo xtask simulate --of {name} --built --expiry ttl --from {seed} --seeds 1 --trace");
        (!wrong.is_empty()).then(|| format!("{again}: {wrong}"))
    });
}

#[test]
fn what_is_built_over_memory_breaks_nothing() {
    nothing_breaks(KeeperOverMemory);
}

#[test]
fn what_is_built_on_locks_that_are_answered_at_once_breaks_nothing() {
    nothing_breaks(KeeperAtOnce);
}

#[test]
fn what_is_built_over_cassandra_breaks_nothing() {
    nothing_breaks(KeeperOverCassandra);
}

#[test]
fn what_is_built_over_redis_breaks_nothing() {
    nothing_breaks(KeeperOverRedis);
}

#[test]
fn what_is_built_over_zookeeper_breaks_nothing() {
    nothing_breaks(KeeperOverZookeeper);
}

#[test]
fn what_is_built_over_etcd_breaks_nothing() {
    nothing_breaks(KeeperOverEtcd);
}

/// A holder that was paused while it stored that a run begins, and lost the lock meanwhile, was told that the store had lost tokens.
#[test]
fn one_that_lost_a_job_while_it_began_is_told_so() {
    assert_eq!(play(KeeperOverMemory, 711_491).wrong, [""; 0]);
}

/// The clock of a holder stood still while it stored that a run begins. It did not know that it had lost the lock, and was told that the store had lost
/// tokens: nothing better is promised to it.
#[test]
fn one_whose_clock_stood_still_while_a_job_began_is_refused() {
    assert_eq!(play(KeeperAtOnce, 5_598).wrong, [""; 0]);
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
