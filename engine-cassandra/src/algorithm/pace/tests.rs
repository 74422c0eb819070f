use ylock_core::Mode;
use ylock_core::environment::SystemEnvironment;

use super::*;
use crate::algorithm::rows_for_tests::{row, seen};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Moment {
    Moment::from_nanos(millis * 1_000_000)
}

/// A look that shows these acquisitions, each with its ticket.
fn look<const N: usize>(inside: [(u128, State, i64); N]) -> Partition {
    let rows = inside.map(|(number, state, ticket)| seen(number, row(number, Mode::Write, state, ticket)));
    Partition { rows: rows.into(), ..Partition::default() }
}

fn held(number: u128) -> Partition {
    look([(number, State::Held, 1)])
}

fn claimed(number: u128) -> Partition {
    look([(number, State::Claimed, 1)])
}

fn pace() -> Pace {
    Pace::new(Estimates::default())
}

fn learnt(hold: Duration, look: Duration) -> Pace {
    Pace::new(Estimates { hold, look })
}

#[test]
fn the_first_two_look_again_after_a_twelfth_of_the_hold() {
    for (before, more) in [(0, 0), (1, 2)] {
        let mut pace = pace();
        assert_eq!(pace.pause(before, &held(1), at(0)), ms(more));
        assert_eq!(pace.pause(before, &held(1), at(120)), ms(10 + more));
        assert_eq!(pace.pause(before, &held(1), at(60_000)), LONGEST);
    }
}

#[test]
fn they_wait_for_most_of_what_holds_have_lasted() {
    let mut pace = learnt(ms(160), ms(4));
    assert_eq!(pace.pause(0, &held(1), at(0)), ms(140));
    assert_eq!(pace.pause(0, &held(1), at(100)), ms(40));
    // Nothing is known of when a client will enter, or leave, that has only claimed.
    assert_eq!(learnt(ms(160), ms(4)).pause(0, &claimed(1), at(0)), ms(0));
}

#[test]
fn longer_holds_are_learnt_slowly_and_shorter_ones_fast() {
    let mut pace = pace();
    pace.pause(0, &held(1), at(0));
    pace.pause(0, &held(1), at(800));
    pace.pause(0, &held(2), at(900));
    assert_eq!(pace.estimates.hold, ms(200));
    pace.pause(1, &held(2), at(1_000));
    pace.pause(1, &held(3), at(1_001));
    assert_eq!(pace.estimates.hold, ms(150));
    pace.pause(0, &held(3), at(1_051));
    pace.enters();
    assert_eq!(pace.estimates.hold, ms(100));
    pace.enters();
    assert_eq!(pace.estimates.hold, ms(100), "it is learnt once");
}

/// A waiter that is told looks seldom: the last look may have been long before the hold was over.
#[test]
fn a_hint_of_a_turn_tells_how_long_the_hold_was() {
    let mut pace = pace();
    pace.pause(0, &held(1), at(0));
    pace.told_of_a_turn(at(800));
    pace.enters();
    assert_eq!(pace.estimates.hold, ms(200));
}

#[test]
fn nothing_is_learnt_from_claims_and_from_far_behind() {
    let mut claims = pace();
    claims.pause(0, &claimed(1), at(0));
    claims.pause(0, &claimed(1), at(800));
    // The same acquisition, and a hold that begins.
    claims.pause(0, &held(1), at(900));
    assert_eq!(claims.estimates.hold, ms(0));
    claims.pause(0, &held(2), at(1_300));
    assert_eq!(claims.estimates.hold, ms(0), "its end was seen as soon as its beginning");
    let mut behind = pace();
    behind.pause(2, &held(1), at(0));
    behind.pause(2, &held(1), at(800));
    behind.pause(2, &held(2), at(900));
    assert_eq!(behind.estimates.hold, ms(0));
}

#[test]
fn a_holder_is_inside_before_any_claim_and_of_claims_the_first_in_the_queue() {
    let inside = |rows| pace().observe(&rows, at(0), 0).inside.map(|(id, _)| id.as_u128());
    assert_eq!(inside(look([(1, State::Claimed, 1), (2, State::Held, 9)])), Some(2));
    assert_eq!(inside(look([(1, State::Claimed, 5), (2, State::Claimed, 4)])), Some(2));
    assert_eq!(inside(look([(1, State::Waiting, 5), (2, State::Idle, 4)])), None);
}

#[test]
fn those_far_behind_pause_for_most_of_the_turns_before_them() {
    let pause = |before, seen_for, inside: &Partition| {
        let mut pace = learnt(ms(80), ms(10));
        pace.pause(before, inside, at(0));
        pace.pause(before, inside, at(seen_for))
    };
    assert_eq!([2, 3].map(|before| pause(before, 50, &held(1))), [ms(99), ms(198)]);
    // A hold that has lasted longer than others makes each turn longer, and a claim does not.
    assert_eq!(pause(2, 170, &held(1)), ms(180));
    assert_eq!(pause(2, 170, &claimed(1)), ms(99));
    assert_eq!(pause(1_000, 0, &held(1)), LONGEST);
    assert_eq!(pace().pause(2, &held(1), at(0)), SHORTEST);
}

#[test]
fn a_newcomer_looks_at_once_unless_its_client_saw_several_others() {
    let Pace { estimates, .. } = learnt(ms(80), ms(10));
    assert_eq!([0, 1, 2, 3, 4].map(|others| estimates.first_pause(others)), [0, 0, 0, 99, 198].map(ms));
}

#[test]
fn the_time_of_a_look_is_an_average() {
    let mut pace = learnt(ms(0), ms(4));
    pace.looked_for(ms(16));
    assert_eq!(pace.estimates.look(), ms(7));
}

/// Its turn to claim comes when all but the last of those before it have been inside and given back.
#[test]
fn a_newcomer_that_is_told_looks_when_the_last_of_the_others_enters() {
    let Pace { estimates, .. } = learnt(ms(80), ms(10));
    let pauses = [0, 1, 2, 3, 100].map(|others| estimates.first_pause_until_told(others));
    assert_eq!(pauses, [80, 80, 300, 520, 1_500].map(ms));
}

#[test]
fn pauses_are_drawn_from_around_what_was_decided() {
    let environment = SystemEnvironment::shared();
    assert_eq!(about(ms(1) / 2, &*environment), ms(0));
    assert!(about(ms(1), &*environment) >= ms(1) * 8 / 10, "a timer can do that");
    for _ in 0..100 {
        let pause = about(ms(100), &*environment);
        assert!((ms(90)..=ms(110)).contains(&pause), "{pause:?}");
    }
}
