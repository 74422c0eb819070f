//! Seeds of runs over the simulated cluster of etcd that must not break anything, and what is more than is promised.

use crate::support;
use ylock_simulation::Subject::{EtcdEngine, KeeperOverEtcd};
use ylock_simulation::{Fault, Setting, run};

#[test]
fn the_etcd_engine_breaks_nothing() {
    support::nothing_breaks(EtcdEngine);
}

#[test]
fn the_keeper_over_etcd_breaks_nothing() {
    support::nothing_breaks(KeeperOverEtcd);
}

#[test]
fn a_seed_decides_everything() {
    [EtcdEngine, KeeperOverEtcd].into_iter().for_each(support::a_seed_decides_everything);
}

#[test]
fn locks_are_taken_in_every_run() {
    [EtcdEngine, KeeperOverEtcd].into_iter().for_each(support::locks_are_taken_in_every_run);
}

/// A cluster that is there again at once, with less in it, has forgotten locks that are held: what `engine-etcd/guarantees.md` says is the end of
/// exclusion.
#[test]
fn a_majority_that_lost_its_disks_lets_two_in() {
    let setting = || Setting { of: EtcdEngine, allowed: vec![Fault::Forget], ..Setting::default() };
    support::must_be_found("a majority lost its disks", 0, 300, |seed| {
        run(seed, &setting()).wrong.into_iter().find(|what| what.contains("two valid holders"))
    });
}

/// The same cluster, away for longer than a lease lasts, breaks nothing: no lock is relied on any more, and tokens grow.
#[test]
fn a_cluster_that_is_set_up_anew_later_breaks_nothing() {
    support::none_fails("etcd, set up anew", |seed| {
        let allowed = vec![Fault::Anew, Fault::Drift, Fault::Crash];
        let wrong = run(seed, &Setting { of: EtcdEngine, allowed, ..Setting::default() }).wrong;
        (!wrong.is_empty()).then(|| format!("seed {seed}: {}", wrong.join("; ")))
    });
}
