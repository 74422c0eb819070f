//! Seeds of runs above the keeper that must not break anything.

use crate::support;
use crate::support::failure;
use ylock_simulation::Subject::{KeeperAtOnce, KeeperOverCassandra, KeeperOverMemory};

#[test]
fn the_keeper_over_memory_breaks_nothing() {
    support::nothing_breaks(KeeperOverMemory);
}

#[test]
fn the_keeper_that_is_answered_at_once_breaks_nothing() {
    support::nothing_breaks(KeeperAtOnce);
}

#[test]
fn the_keeper_over_cassandra_breaks_nothing() {
    support::nothing_breaks(KeeperOverCassandra);
}

/// Every map of every run has a random seed of its own, so nothing depends on the order of a map.
#[test]
fn a_seed_decides_everything() {
    [KeeperOverMemory, KeeperAtOnce, KeeperOverCassandra]
        .into_iter()
        .for_each(support::a_seed_decides_everything);
}

#[test]
fn locks_are_taken_in_every_run() {
    [KeeperOverMemory, KeeperAtOnce, KeeperOverCassandra]
        .into_iter()
        .for_each(support::locks_are_taken_in_every_run);
}

/// A reader that shared the lock with a writer that had become a reader used to get the token of the writer.
#[test]
fn a_reader_that_joins_a_former_writer_has_a_larger_token() {
    assert_eq!(failure(KeeperOverMemory, 1), None);
    assert_eq!(failure(KeeperOverCassandra, 1), None);
}

/// A process that was paused for a lease in its first attempt to give a lock back used to give up, and told all its waiters that the
/// store did not answer.
#[test]
fn a_pause_does_not_give_up_a_release() {
    for seed in [367, 976, 999] {
        assert_eq!(failure(KeeperOverMemory, seed), None);
    }
}
