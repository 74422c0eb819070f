//! The rules of the observed lease, in every order in which they can be followed: clients that may enter once each, with a claim and up to
//! two more writes; writes and burials that arrive whenever they like; clocks that are right, and leases without a margin.
//!
//! What the simulation tries at random is complete here, and smaller: a look reads all rows at one moment, and among three clients it
//! ends then, and a lease is one tick instead of two.

mod rules;
mod state;

use std::collections::HashSet;

use rules::{Broken, Rules};
use state::{MOST, State};

/// Looks at every state that can be reached; returns how many there are, and one in which two clients are inside.
fn explore(writes: [u8; MOST], broken: Broken) -> (usize, Option<State>) {
    // With three clients there are too many states otherwise.
    let ends_with_its_read = writes[2] > 0;
    let rules = Rules { writes, lease: if ends_with_its_read { 1 } else { 2 }, ends_with_its_read, broken };
    let (mut known, mut open, mut next) =
        (HashSet::from([State::default()]), vec![State::default()], Vec::new());
    while let Some(state) = open.pop() {
        if state.is_broken() {
            return (known.len(), Some(state));
        }
        rules.next(&state, &mut next);
        open.extend(next.drain(..).map(|state| canonical(state, writes)).filter(|next| known.insert(*next)));
    }
    (known.len(), None)
}

/// Returns the one state that stands for all that go on alike.
fn canonical(state: State, writes: [u8; MOST]) -> State {
    let mut state = state.tidied();
    for (one, other) in [(0, 1), (1, 2), (0, 1)] {
        if writes[one] == writes[other] {
            state = state.with_either(one, other);
        }
    }
    state
}

#[test]
fn the_rules_let_one_of_two_clients_in() {
    let (states, broken) = explore([3, 3, 0], Broken::Nothing);
    println!("{states} states");
    assert_eq!(broken, None);
}

/// One with a claim and two renewals, and two that want in.
#[test]
fn the_rules_let_one_of_three_clients_in() {
    let (states, broken) = explore([3, 1, 1], Broken::Nothing);
    println!("{states} states");
    assert_eq!(broken, None);
}

/// Two that renew once, or claim once more, and one that wants in.
#[test]
fn the_rules_let_one_of_three_clients_in_of_which_two_go_on() {
    let (states, broken) = explore([2, 2, 1], Broken::Nothing);
    println!("{states} states");
    assert_eq!(broken, None);
}

#[test]
fn every_rule_is_needed() {
    for broken in [
        Broken::OneStampForTwo,
        Broken::CountsFromTheBeginning,
        Broken::ComparesClients,
        Broken::BuriesTheNext,
        Broken::BelievesLateRenewals,
        Broken::EntersLate,
        Broken::EntersBeforeTheBurialAndCountsToTheEnd,
    ] {
        let (states, found) = explore([3, 3, 0], broken);
        println!("{broken:?}: {states} states");
        assert!(found.is_some(), "{broken:?} breaks nothing");
    }
}

/// Either would do: a second look that began a lease after the first one, for its own claim was acknowledged before; or any look after the
/// burial, which shows a heartbeat that was acknowledged in time. The engine does both.
#[test]
fn one_of_two_precautions_would_do() {
    for broken in [Broken::CountsToTheEnd, Broken::EntersBeforeTheBurial] {
        assert_eq!(explore([3, 3, 0], broken).1, None, "{broken:?}");
    }
}
