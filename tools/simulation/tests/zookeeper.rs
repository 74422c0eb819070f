//! Seeds of runs over the simulated ensemble that must not break anything.

mod support;

use ylock_simulation::Subject::{KeeperOverZookeeper, ZookeeperEngine};

#[test]
fn the_zookeeper_engine_breaks_nothing() {
    support::nothing_breaks(ZookeeperEngine, 600);
}

#[test]
fn the_keeper_over_zookeeper_breaks_nothing() {
    support::nothing_breaks(KeeperOverZookeeper, 200);
}

#[test]
fn a_seed_decides_everything() {
    [ZookeeperEngine, KeeperOverZookeeper].into_iter().for_each(support::a_seed_decides_everything);
}

#[test]
fn locks_are_taken_in_every_run() {
    [ZookeeperEngine, KeeperOverZookeeper].into_iter().for_each(support::locks_are_taken_in_every_run);
}
