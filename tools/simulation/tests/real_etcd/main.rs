//! The simulated cluster of etcd and a real one get the same operations, and answer alike.

#[path = "../both_sides/mod.rs"]
mod both_sides;
mod ends;
mod game;
mod operations;
mod said;
mod sides;

use game::Game;
use said::{Step, compare};
use sides::{Real, Side};

/// Ten runs, because the simulation ends a run that takes a million steps.
const SEEDS: u64 = 10;
const OPERATIONS: usize = 1_000;
const OPERATIONS_OF_A_CLUSTER: usize = 200;

/// What must have been among the answers, or little was compared.
const ANSWERS: [&str; 9] = [
    "held",
    "not held",
    "LeaseGone",
    "Unknown(Unexpected)",
    "deleted 1",
    "deleted 0",
    "and more",
    "it was deleted",
    "it was changed",
];

fn same_answers(servers: Real, operations: usize) {
    let mut all = Vec::new();
    for seed in 0..SEEDS {
        let play = |side: Side| Game::play(side, seed, operations);
        let [real, simulated] = [sides::real(servers, play), sides::simulated(servers, play)];
        compare(&real, &simulated).unwrap_or_else(|difference| panic!("seed {seed}: {difference}"));
        all.extend(simulated);
    }
    for answer in ANSWERS {
        let times = all.iter().map(|step: &Step| step.times(answer)).sum::<usize>();
        println!("{answer}: {times} times");
        assert!(times > 0, "{answer}");
    }
}

#[test]
#[ignore = "needs etcd: run `cargo xtask test`"]
fn ten_thousand_operations_have_the_same_answers() {
    same_answers(Real::One, OPERATIONS);
}

#[test]
#[ignore = "needs etcd: run `cargo xtask test`"]
fn two_thousand_operations_on_three_members_have_the_same_answers() {
    same_answers(Real::Cluster, OPERATIONS_OF_A_CLUSTER);
}

#[test]
#[ignore = "needs etcd: run `cargo xtask test`"]
fn the_keys_of_a_lease_go_together_when_it_ends() {
    let [real, simulated] =
        [sides::real(Real::One, ends::expires), sides::simulated(Real::One, ends::expires)];
    compare(&real, &simulated).unwrap_or_else(|difference| panic!("{difference}"));
}
