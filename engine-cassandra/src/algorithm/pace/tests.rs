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

/// Writes take half as long as looks.
fn learnt(hold: Duration, look: Duration) -> Pace {
    Pace::new(Estimates { hold, look, write: look / 2 })
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
    pace.pause(0, &claimed(1), at(0));
    // It has begun between the two looks.
    assert_eq!(pace.pause(0, &held(1), at(4)), ms(136));
    assert_eq!(pace.pause(0, &held(1), at(104)), ms(36));
    assert_eq!(pace.pause(0, &held(1), at(139)), ms(135) / 12);
    // Nothing is known of when a client will enter, or leave, that has only claimed.
    assert_eq!(learnt(ms(160), ms(4)).pause(0, &claimed(1), at(0)), ms(0));
}

#[test]
fn one_who_comes_in_the_middle_of_a_hold_does_not_wait_for_a_whole_one() {
    let mut pace = learnt(ms(160), ms(4));
    assert_eq!([0, 100].map(|now| pace.pause(0, &held(1), at(now))), [ms(10), ms(10)]);
    // A sixteenth, and the second one a sixth more.
    assert_eq!(learnt(ms(240), ms(4)).pause(1, &held(1), at(0)), ms(15 + 40));
    // It learns little from what it has seen of one.
    pace.pause(0, &held(2), at(101));
    assert_eq!(pace.estimates.hold, ms(160) * 7 / 8 + ms(100) / 8);
}

/// Each comes back while the other one is inside.
#[test]
fn two_that_take_turns_learn_that_holds_have_become_shorter() {
    let mut estimates = learnt(ms(8_000), ms(4)).estimates;
    for _ in 0..40 {
        let mut wait = Pace::new(estimates);
        for now in [0, 5] {
            wait.pause(0, &held(1), at(now));
        }
        wait.enters();
        estimates = wait.estimates;
    }
    assert!(estimates.hold < ms(50), "{estimates:?}");
}

/// What was inside at the last look is so still, as the last tokens say.
#[test]
fn while_nothing_changes_a_hold_grows_longer() {
    let mut pace = pace();
    pace.pause(0, &held(1), at(0));
    assert_eq!(pace.pause_after_no_change(0, at(120)), ms(10));
    assert_eq!(pace.pause(0, &held(1), at(240)), ms(20));
}

#[test]
fn the_second_does_not_look_before_the_first_can_have_claimed_and_left() {
    let [nothing, claims] = [look([]), claimed(1)].map(|inside| {
        let mut pace = learnt(ms(0), ms(4));
        [0, 3].map(|now| pace.pause(1, &inside, at(now)))
    });
    // That none was inside at two looks does not say that none was in between.
    assert_eq!(nothing, [8, 8].map(ms));
    assert_eq!(claims, [4, 1].map(ms));
    // Unless the first is there for long, and may have died.
    let mut pace = learnt(ms(0), ms(4));
    assert_eq!([0, 240].map(|now| pace.pause(1, &look([]), at(now))), [8, 20].map(ms));
}

/// The tokens do not show that the first has entered, nor that one has given up.
#[test]
fn a_look_is_due_although_no_token_has_changed() {
    let due = |hold, (before, reads), looks: &[u64]| {
        let mut pace = learnt(hold, ms(4));
        for look in looks {
            pace.pause(before, &claimed(1), at(*look));
        }
        let looked = at(*looks.last().unwrap());
        pace.look_is_due(before, reads, looked).since(looked)
    };
    let (first, reader, second) = ((0, false), (0, true), (1, false));
    assert_eq!(due(ms(0), first, &[0]), LONGEST);
    // A writer may go on as a reader.
    assert_eq!([due(ms(0), reader, &[0]), due(ms(0), reader, &[0, 240])], [16, 20].map(ms));
    // Where holders stay the row says so soon; and it is asked the more rarely the longer it does not.
    assert_eq!([due(ms(0), second, &[0]), due(ms(100), second, &[0])], [16, 4].map(ms));
    assert_eq!([due(ms(0), second, &[0, 90]), due(ms(0), second, &[0, 9_000])], [ms(90), LONGEST]);
}

#[test]
fn longer_holds_are_learnt_slowly_and_shorter_ones_fast() {
    let mut pace = pace();
    pace.pause(0, &held(1), at(0));
    pace.pause(0, &held(1), at(800));
    pace.pause(0, &held(2), at(900));
    assert_eq!(pace.estimates.hold, ms(200));
    // From 800 on at the earliest: 150 at most.
    pace.pause(1, &held(2), at(950));
    pace.pause(1, &held(3), at(951));
    assert_eq!(pace.estimates.hold, ms(175));
    pace.pause(0, &held(3), at(975));
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
    assert_eq!([2, 3].map(|before| pause(before, 50, &held(1))), [84, 168].map(ms));
    // A hold that has lasted longer than others makes each turn longer, and a claim does not.
    assert_eq!(pause(2, 175, &held(1)), ms(160));
    assert_eq!(pause(2, 175, &claimed(1)), ms(84));
    // Nothing has moved yet.
    assert_eq!(
        [8, 16, 1_000].map(|before| pause(before, 0, &held(1))),
        [LONGEST, LONGEST * 2, LONGEST_UNREAD]
    );
    assert_eq!(pace().pause(2, &held(1), at(0)), SHORTEST);
}

/// What the queue has needed counts up to twice what a turn takes at least, since it contains the pauses of waiters.
#[test]
fn what_was_seen_of_the_queue_counts_where_it_has_moved() {
    let pauses = |looks: &[(usize, u64)]| {
        let mut pace = learnt(ms(80), ms(10));
        let pauses = looks.iter().map(|&(before, now)| pace.pause(before, &claimed(1), at(now)));
        pauses.fold(ms(0), |_, last| last)
    };
    assert_eq!(pauses(&[(21, 0), (11, 500)]), ms(10 * 50 * 4 / 5));
    assert_eq!(pauses(&[(21, 0), (11, 1_200)]), ms(10 * 120 * 4 / 5));
    assert_eq!(pauses(&[(21, 0), (11, 9_000)]), LONGEST * 3, "the longest with eleven before it");
    assert_eq!(pauses(&[(521, 0), (511, 9_000)]), LONGEST * 128, "which grows with the queue");
    assert_eq!(pauses(&[(21, 0), (2, 9_000)]), ms(210 * 4 / 5));
    // A turn that goes on counts as well, and one who was overtaken has seen nothing.
    assert_eq!(pauses(&[(4, 0), (3, 10), (3, 100)]), ms(2 * 90 * 4 / 5));
    assert_eq!(pauses(&[(3, 0), (4, 10)]), ms(3 * 105 * 4 / 5));
}

/// The queue moves as long as they change; where turns take longer than that, each change may be the last one before the own turn.
#[test]
fn those_far_behind_read_the_last_tokens_the_more_rarely_the_more_go_before_them() {
    let unread = |hold, before| {
        let mut pace = learnt(ms(hold), ms(10));
        pace.pause(before, &held(1), at(0));
        (pace.longest_unread(), pace.changes_are_rare())
    };
    let of_short_turns = [2, 8, 9, 40, 41, 1_000].map(|before| unread(80, before));
    assert_eq!(of_short_turns, [500, 500, 1_000, 2_500, 2_500, 2_500].map(|millis| (ms(millis), false)));
    assert_eq!([2, 1_000].map(|before| unread(3_000, before)), [(ms(500), true), (ms(2_500), false)]);
    assert_eq!(unread(5_000, 1_000), (ms(2_500), true));
}

#[test]
fn a_newcomer_looks_at_once_unless_its_client_saw_several_others() {
    let Pace { estimates, .. } = learnt(ms(80), ms(10));
    let pauses = [0, 1, 2, 3, 4, 100].map(|others| estimates.first_pause(others));
    assert_eq!(pauses, [0, 0, 0, 84, 168, 500].map(ms));
}

#[test]
fn the_time_of_a_request_is_learnt_fast_where_it_becomes_less() {
    let mut pace = pace();
    for (took, learnt) in [(800, 100), (10, 55), (15, 35), (115, 45)] {
        pace.looked_for(ms(took));
        pace.wrote_for(ms(took));
        assert_eq!((pace.estimates.look, pace.estimates.write), (ms(learnt), ms(learnt)));
    }
}

/// Its turn to claim comes when all but the last of those before it have been inside and given back.
#[test]
fn a_newcomer_that_is_told_looks_when_the_last_of_the_others_enters() {
    let Pace { estimates, .. } = learnt(ms(80), ms(10));
    let pauses = [0, 1, 2, 3, 100].map(|others| estimates.first_pause_until_told(others));
    assert_eq!(pauses, [120, 120, 330, 540, 1_500].map(ms));
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
