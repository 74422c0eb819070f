//! Seeds of runs over the simulated ensemble that must not break anything.

use crate::support;
use ylock_simulation::Subject::{KeeperOverZookeeper, ZookeeperEngine};

#[test]
fn the_zookeeper_engine_breaks_nothing() {
    support::nothing_breaks(ZookeeperEngine);
}

#[test]
fn the_keeper_over_zookeeper_breaks_nothing() {
    support::nothing_breaks(KeeperOverZookeeper);
}

/// A server that hears that the session of a client has moved used to refuse what the client asked for, and go on; a real one closes the
/// connection, and the client learns that this is an old one.
#[test]
fn a_session_that_has_moved_ends_its_old_connection() {
    assert_eq!(support::failure(KeeperOverZookeeper, 50_051_996), None);
}

#[test]
fn a_seed_decides_everything() {
    [ZookeeperEngine, KeeperOverZookeeper].into_iter().for_each(support::a_seed_decides_everything);
}

#[test]
fn locks_are_taken_in_every_run() {
    [ZookeeperEngine, KeeperOverZookeeper].into_iter().for_each(support::locks_are_taken_in_every_run);
}
