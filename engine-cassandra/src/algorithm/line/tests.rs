use ylock_core::Fairness;
use ylock_core::engine::{AcquisitionId, Ticket};

use super::*;
use crate::algorithm::rows_for_tests::{row, seen};
use crate::algorithm::store::Row;
use crate::hints::Key;

const OWN: Slot = Slot::from_u128(1_000);

fn endpoint(number: u128) -> Endpoint {
    Endpoint { address: ([10, 0, 0, 1], 7000 + number as u16).into(), key: Key::from_u128(number) }
}

/// A look that shows these: slot, ticket, state, and mode. Those with an even slot can be told something.
fn look<const N: usize>(rows: [(u128, i64, State, Mode); N]) -> Partition {
    let rows = rows.map(|(number, ticket, state, mode)| {
        let hints = number.is_multiple_of(2).then(|| endpoint(number));
        seen(number, Row { hints, ..row(number, mode, state, ticket) })
    });
    Partition { rows: rows.into(), ..Partition::default() }
}

fn numbers(front: &[(Endpoint, bool)]) -> Vec<(u128, bool)> {
    front.iter().map(|(to, second)| (to.key.as_u128(), *second)).collect()
}

fn said(number: u128, reads: bool) -> Waiter {
    Waiter { key: Key::from_u128(number), address: endpoint(0).address, reads }
}

use Mode::{Read, Write};
use State::{Claimed, Held, Idle, Waiting};

#[test]
fn the_first_two_are_told_in_the_order_of_the_queue() {
    let look = look([
        (2, 30, Waiting, Write),
        (4, 10, Claimed, Write),
        (6, 20, Waiting, Write),
        (8, 1, Held, Write),
        (10, 2, Idle, Write),
        (3, 3, Waiting, Write),
        (1_000, 4, Waiting, Write),
    ]);
    assert_eq!(numbers(&Line::of(&look, OWN).front(&[])), [(4, false), (6, true)]);
}

#[test]
fn readers_are_told_together_up_to_the_next_writer() {
    let look =
        look([(2, 1, Waiting, Read), (4, 2, Waiting, Read), (6, 3, Waiting, Write), (8, 4, Waiting, Read)]);
    assert_eq!(numbers(&Line::of(&look, OWN).front(&[])), [(2, false), (4, false), (6, true)]);
    let many = [0; 12].map(|_| (0, 0, Waiting, Read));
    let mut number = 0;
    let many = many.map(|(_, _, state, mode)| {
        number += 2;
        (number, 1, state, mode)
    });
    let front = Line::of(&super::tests::look(many), OWN).front(&[]);
    assert_eq!(front.iter().filter(|(_, second)| !second).count(), 8);
    assert_eq!(front.len(), 9);
}

#[test]
fn those_that_have_said_that_they_wait_come_behind_those_that_were_seen() {
    let line = Line::of(&look([(4, 10, Waiting, Write)]), OWN);
    assert_eq!(numbers(&line.front(&[said(4, false), said(8, false)])), [(4, false), (8, true)]);
    let front = Line::default().front(&[said(2, true), said(4, true), said(6, false), said(8, true)]);
    assert_eq!(numbers(&front), [(2, false), (4, false), (6, true)]);
    assert_eq!(Line::default().front(&[]), []);
}

#[test]
fn a_newcomer_tells_the_first_and_the_last_each_once() {
    let waiting = [(2, 1, Waiting, Write), (4, 2, Waiting, Write), (6, 3, Waiting, Read)];
    let ends = |shown: usize| {
        let mut rows = waiting;
        rows[shown..].iter_mut().for_each(|(_, _, state, _)| *state = Idle);
        Line::of(&look(rows), OWN).ends().map(|end| end.key.as_u128()).collect::<Vec<_>>()
    };
    assert_eq!([ends(0), ends(1), ends(2), ends(3)], [vec![], vec![2], vec![2, 4], vec![2, 6]]);
}

fn me(mode: Mode) -> Contender {
    Contender {
        slot: OWN,
        acquisition: AcquisitionId::from_u128(1_000),
        mode,
        ticket: Ticket::from_number(20),
        fairness: Fairness::Fair,
        claimed: None,
    }
}

/// Of a client without hints, and of one that is about to give way, nothing is heard.
#[test]
fn a_waiter_is_told_only_by_those_that_tell() {
    for (look, tells) in [
        (look([(2, 1, Held, Write)]), true),
        (look([(3, 1, Held, Write)]), false),
        (look([(2, 1, Held, Write), (3, 10, Waiting, Write)]), false),
        (look([(3, 1, Waiting, Write), (2, 10, Claimed, Write)]), true),
        (look([(2, 30, Claimed, Write)]), false),
    ] {
        assert_eq!(Before::of(&look, &me(Write)).tells, tells, "{look:?}");
    }
}

#[test]
fn a_waiter_tells_those_inside_and_the_one_directly_before_it() {
    let look = look([
        (2, 1, Held, Read),
        (4, 2, Held, Read),
        (6, 10, Waiting, Write),
        (8, 15, Claimed, Write),
        (10, 25, Waiting, Write),
        (1_000, 20, Waiting, Write),
    ]);
    let told = |mode| {
        let before = Before::of(&look, &me(mode));
        assert!(before.tells);
        before.endpoints.iter().map(|to| to.key.as_u128()).collect::<Vec<_>>()
    };
    assert_eq!(told(Write), [2, 4, 8]);
    assert_eq!(told(Read), [8], "readers inside are in no reader's way");
}

/// It tells when it enters and when it leaves. Where there is none, the last one that leaves tells.
#[test]
fn the_next_turn_is_told_of_by_the_last_one_that_goes_first() {
    let inside = [(2, 1, Held, Read), (4, 2, Held, Read)];
    let tellers = |look: &Partition, mode| Before::of(look, &me(mode)).tellers;
    let these = |numbers: &[u128]| numbers.iter().map(|number| endpoint(*number).address).collect::<Vec<_>>();
    assert_eq!(tellers(&look(inside), Write), these(&[2, 4]));
    let [one, two] = inside;
    let behind = look([one, two, (6, 10, Waiting, Write), (8, 25, Waiting, Write)]);
    assert_eq!(tellers(&behind, Write), these(&[6]));
    assert_eq!(tellers(&look([one, (3, 10, Waiting, Write)]), Write), [], "it cannot tell");
    // The writer makes room for all readers at once.
    let readers = look([(2, 1, Held, Write), (4, 10, Claimed, Read), (6, 15, Claimed, Read)]);
    assert_eq!(tellers(&readers, Read), these(&[2]));
    let unfair = Contender { fairness: Fairness::Unfair, ..me(Write) };
    let look = look([(2, 1, Held, Write), (4, 10, Waiting, Write)]);
    assert_eq!(Before::of(&look, &unfair).tellers, these(&[2]), "it waits for no waiter");
}

/// It is to look at once: no other client has anything to tell.
#[test]
fn a_reader_behind_readers_relies_on_none() {
    let before = Before::of(&look([(2, 1, Held, Read), (4, 10, Claimed, Read)]), &me(Read));
    assert!(!before.tells && before.tellers.is_empty());
    assert_eq!(before.endpoints.len(), 1, "it says that it waits all the same");
}
