//! The simulated ZooKeeper servers and the real ones get the same operations, and answer alike.

#[path = "../both_sides/mod.rs"]
mod both_sides;
mod ends;
mod game;
mod operations;
mod said;
mod sides;

use std::time::Duration;

use game::Game;
use said::{Step, compare};
use sides::{Real, Side};

/// Ten runs, because the simulation ends a run that takes a million steps.
const SEEDS: u64 = 10;
const OPERATIONS: usize = 1_000;
const OPERATIONS_OF_AN_ENSEMBLE: usize = 200;
/// Longer than a busy machine makes a session wait.
const SESSION: Duration = Duration::from_secs(10);

/// What must have been among the answers, or little was compared.
const ANSWERS: [&str; 8] = [
    "Ok((0, true))",
    "NoNode",
    "NodeExists",
    "NotEmpty",
    "BadVersion",
    "NoChildren",
    "ConnectionLoss",
    ": true",
];

fn same_answers(servers: Real, operations: usize) {
    let mut all = Vec::new();
    for seed in 0..SEEDS {
        let play = |side: Side| Game::play(side, seed, operations);
        let of_simulated = sides::simulated(servers.count(), SESSION, play);
        let again = || sides::real(servers, SESSION, play);
        if let Err(difference) = compare(&again(), &of_simulated) {
            // The real server may have removed a lock in the moment in which it stood empty. That does not happen twice.
            let repeated =
                if difference.stood_empty { compare(&again(), &of_simulated) } else { Err(difference) };
            repeated.unwrap_or_else(|difference| panic!("seed {seed}: {}", difference.words));
        }
        all.extend(of_simulated);
    }
    for answer in ANSWERS {
        let times = all.iter().map(|step| step.times(answer)).sum::<usize>();
        println!("{answer}: {times} times");
        assert!(times > 0, "{answer}");
    }
}

#[test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
fn ten_thousand_operations_have_the_same_answers() {
    same_answers(Real::One, OPERATIONS);
}

#[test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
fn two_thousand_operations_on_three_servers_have_the_same_answers() {
    same_answers(Real::Ensemble, OPERATIONS_OF_AN_ENSEMBLE);
}

fn same_end(play: impl Fn(Side) -> futures_util::future::BoxFuture<'static, Vec<Step>>) {
    let session = Duration::from_secs(4);
    let (real, simulated) = (sides::real(Real::One, session, &play), sides::simulated(1, session, &play));
    compare(&real, &simulated).unwrap_or_else(|difference| panic!("{}", difference.words));
}

#[test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
fn what_a_session_has_goes_together_when_it_expires() {
    same_end(|side| Box::pin(ends::expires(side)));
}

#[test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
fn the_watches_of_a_session_that_is_closed_end() {
    same_end(|side| Box::pin(ends::is_closed(side)));
}
