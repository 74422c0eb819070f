use std::time::Duration;

use super::*;
use crate::algorithm::rows_for_tests::{self as rows, row};
use crate::algorithm::store::{Claim, Next};

const ME: u128 = 5;

fn token(number: u64) -> StoreToken {
    StoreToken::new(number).unwrap()
}

fn slot(number: u128) -> Slot {
    Slot::from_u128(number)
}

/// The contender of the slot [`ME`], with ticket 10.
fn me(mode: Mode) -> Contender {
    Contender {
        slot: slot(ME),
        acquisition: AcquisitionId::from_u128(ME),
        mode,
        ticket: Ticket::from_number(10),
        fairness: Fairness::Fair,
        claimed: None,
    }
}

fn claiming(mode: Mode, number: u64) -> Contender {
    Contender { claimed: Some(token(number)), ..me(mode) }
}

fn seen(number: u128, row: Option<Row>, claim: Option<Claim>) -> SeenRow {
    let heartbeat = row.as_ref().map(|_| 1);
    let claim_stamp = claim.map(|_| 1);
    SeenRow { slot: slot(number), row, heartbeat, claim, claim_stamp, revoked: None }
}

fn other(number: u128, mode: Mode, state: State, ticket: i64) -> SeenRow {
    rows::seen(number, row(number, mode, state, ticket))
}

/// What is left of a client whose row is gone.
fn left(number: u128, mode: Mode, claimed: u64) -> SeenRow {
    seen(number, None, Some(Claim { token: token(claimed), mode }))
}

/// A look that shows the contender as it last wrote itself, and others.
fn look(me: &Contender, others: impl IntoIterator<Item = SeenRow>) -> Partition {
    let state = if me.claimed.is_some() { State::Claimed } else { State::Waiting };
    let claim = me.claimed.map(|token| Claim { token, mode: me.mode });
    let own = seen(ME, Some(row(ME, me.mode, state, me.ticket.get())), claim);
    Partition { rows: others.into_iter().chain([own]).collect(), ..Partition::default() }
}

fn judged(me: &Contender, others: impl IntoIterator<Item = SeenRow>) -> Verdict {
    me.judge(&look(me, others))
}

/// A client that has claimed with this token, or has entered with it.
fn with_token(number: u128, mode: Mode, state: State, claimed: u64) -> SeenRow {
    let claim = Claim { token: token(claimed), mode };
    seen(number, Some(row(number, mode, state, number as i64)), Some(claim))
}

fn with_last(look: Partition, write: u64, read: u64) -> Partition {
    Partition { last_write: Some(token(write)), last_read: Some(token(read)), ..look }
}

#[test]
fn readers_that_follow_each_other_are_one_turn() {
    let place = |number, mode| other(number, mode, State::Waiting, number as i64);
    let [read, write] = [Mode::Read, Mode::Write];
    let others = [place(1, read), place(3, write), place(2, read), place(4, read), place(11, write)];
    let turns = |me: Contender| me.turns_before(&look(&me, others.clone()));
    assert_eq!((turns(me(write)), turns(me(read))), (3, 1));
    assert_eq!(me(write).before(&look(&me(write), others.clone())), 4);
}

#[test]
fn the_last_tokens_show_that_a_holder_leaves_unless_another_one_has_left_with_a_larger_one() {
    let first = claiming(Mode::Write, 9);
    let shows =
        |others: &[SeenRow]| first.is_shown_by_tokens(&with_last(look(&first, others.iter().cloned()), 5, 6));
    let holder = |mode, claimed| with_token(1, mode, State::Held, claimed);
    assert!(shows(&[holder(Mode::Write, 6)]) && shows(&[holder(Mode::Read, 7)]));
    assert!(!shows(&[holder(Mode::Write, 5)]) && !shows(&[holder(Mode::Read, 6)]));
    // Of two readers the one with the smaller token leaves no trace, once the other one has left.
    assert!(shows(&[holder(Mode::Read, 7), with_token(2, Mode::Read, State::Held, 8)]));
    assert!(!shows(&[holder(Mode::Read, 6), with_token(2, Mode::Read, State::Held, 8)]));
    // One who came later takes its claim back; and a token that comes from another write than the row says nothing of it.
    assert!(!shows(&[holder(Mode::Write, 6), with_token(11, Mode::Write, State::Claimed, 8)]));
    assert!(!shows(&[SeenRow { claim_stamp: Some(2), ..holder(Mode::Write, 6) }]));
    // Those that do not conflict, or only wait, are not waited for.
    assert!(shows(&[holder(Mode::Write, 6), other(11, Mode::Write, State::Waiting, 11)]));
}

#[test]
fn the_second_is_shown_that_the_first_leaves_once_that_may_have_entered() {
    let shows = |me: Contender, others: &[SeenRow]| {
        me.is_shown_by_tokens(&with_last(look(&me, others.iter().cloned()), 5, 6))
    };
    let claimed = with_token(1, Mode::Write, State::Claimed, 7);
    assert!(shows(me(Mode::Write), std::slice::from_ref(&claimed)));
    // As long as the holder before it is inside, the second waits for the first to enter.
    assert!(!shows(me(Mode::Write), &[claimed.clone(), with_token(2, Mode::Write, State::Held, 8)]));
    assert!(
        !shows(me(Mode::Write), &[claimed.clone(), other(3, Mode::Write, State::Waiting, 3)]),
        "the third"
    );
    assert!(!shows(claiming(Mode::Write, 9), &[claimed]), "it is to withdraw");
}

#[test]
fn the_second_is_first_when_the_first_has_given_back_just_the_token_that_it_had_claimed_with() {
    let me = me(Mode::Write);
    let is_first = |others: &[SeenRow], write| {
        let last = LastTokens { write: Some(token(write)), read: Some(token(7)) };
        me.is_first_after(&look(&me, others.iter().cloned()), last)
    };
    let claimed = |number| with_token(number, Mode::Write, State::Claimed, 7);
    assert!(is_first(&[claimed(1)], 7));
    // Another one has left, with a smaller token or a larger one.
    assert!(!is_first(&[claimed(1)], 6) && !is_first(&[claimed(1)], 8));
    assert!(!is_first(&[claimed(1), claimed(2)], 7), "there are two");
    assert!(!is_first(&[], 7), "a look has said so");
    assert!(!is_first(&[with_token(1, Mode::Write, State::Waiting, 7)], 7), "the token is from before");
    // One who waits behind what its own client holds goes on.
    let mut behind = with_token(1, Mode::Write, State::Held, 7);
    let next = Next {
        acquisition: AcquisitionId::from_u128(8),
        owner: rows::row(1, Mode::Write, State::Held, 1).owner,
        mode: Mode::Write,
        ticket: Ticket::from_number(9),
    };
    behind.row.as_mut().unwrap().next = Some(next);
    assert!(!is_first(&[behind], 7));
}

/// Readers that wait side by side do not conflict; yet only the first of them bury what is in the way of all.
#[test]
fn all_that_wait_earlier_bury_first_whether_they_conflict_or_not() {
    let others = [
        other(1, Mode::Write, State::Held, 1),
        other(2, Mode::Write, State::Waiting, 2),
        other(3, Mode::Read, State::Waiting, 3),
        other(4, Mode::Write, State::Claimed, 4),
        other(6, Mode::Read, State::Waiting, 11),
    ];
    for mode in [Mode::Read, Mode::Write] {
        let me = me(mode);
        let look = look(&me, others.clone());
        assert_eq!(me.buriers_before(&look, &[]), 3, "{mode:?}");
        let dead = Dead { slot: slot(3), heartbeat: 1, lease: Duration::ZERO, since: Duration::ZERO };
        assert_eq!(me.buriers_before(&look, &[dead]), 2, "{mode:?}");
    }
    let unfair = Contender { fairness: Fairness::Unfair, ..me(Mode::Write) };
    assert_eq!(unfair.buriers_before(&look(&unfair, others), &[]), 3);
}

/// A look may show the row of this very attempt as it was before the last claim. An entry by that look would rest on the claim that is
/// shown, and that claim has a token which another client may have passed.
#[test]
fn a_look_that_shows_an_older_claim_lets_the_contender_enter_nothing() {
    let (older, newer) = (claiming(Mode::Write, 7), claiming(Mode::Write, 8));
    assert_eq!(newer.judge(&look(&newer, [])), Verdict::Enter);
    assert_eq!(newer.judge(&look(&older, [])), Verdict::Gone);
}

#[test]
fn a_row_that_is_not_there_or_of_another_attempt_or_state_is_gone() {
    let waits = me(Mode::Write);
    assert_eq!(waits.judge(&Partition::default()), Verdict::Gone);
    assert_eq!(waits.judge(&look(&claiming(Mode::Write, 7), [])), Verdict::Gone);
    let again = Contender { acquisition: AcquisitionId::from_u128(6), ..waits };
    assert_eq!(again.judge(&look(&waits, [])), Verdict::Gone);
    let mut revoked = look(&waits, []);
    revoked.rows[0].revoked = Some(waits.acquisition);
    assert_eq!(waits.judge(&revoked), Verdict::Revoked);
}

#[test]
fn contenders_go_by_tickets_and_then_by_slots() {
    let me = me(Mode::Write);
    let before = |number, ticket| judged(&me, [other(number, Mode::Write, State::Waiting, ticket)]);
    let waits = Verdict::Wait { before: 1, held: false };
    assert_eq!([before(9, 9), before(9, 10), before(9, 11)], [waits, Verdict::Claim, Verdict::Claim]);
    assert_eq!([before(1, 9), before(1, 10), before(1, 11)], [waits, waits, Verdict::Claim]);
}

#[test]
fn readers_wait_for_writers_and_not_for_readers() {
    let reads = me(Mode::Read);
    assert_eq!(judged(&reads, [other(1, Mode::Read, State::Waiting, 1)]), Verdict::Claim);
    assert_eq!(judged(&reads, [other(1, Mode::Write, State::Idle, 1)]), Verdict::Claim);
    let writer = other(1, Mode::Write, State::Waiting, 1);
    // A reader that is inside conflicts with no reader, whatever else this one waits for.
    let beside = other(2, Mode::Read, State::Held, 2);
    assert_eq!(judged(&reads, [writer.clone(), beside]), Verdict::Wait { before: 1, held: false });
    let inside = other(2, Mode::Write, State::Held, 2);
    assert_eq!(judged(&reads, [writer, inside]), Verdict::Wait { before: 1, held: true });
}

#[test]
fn a_claim_enters_only_beside_none_that_conflicts() {
    let (writes, reads) = (claiming(Mode::Write, 7), claiming(Mode::Read, 7));
    let holder = |mode| [other(1, mode, State::Held, 1)];
    assert_eq!(judged(&writes, holder(Mode::Read)), Verdict::Wait { before: 0, held: true });
    assert_eq!(judged(&reads, holder(Mode::Write)), Verdict::Wait { before: 0, held: true });
    assert_eq!(judged(&reads, holder(Mode::Read)), Verdict::Enter);
    let claimed = |ticket| [other(1, Mode::Write, State::Claimed, ticket)];
    assert_eq!(judged(&writes, claimed(9)), Verdict::Withdraw);
    assert_eq!(judged(&writes, claimed(11)), Verdict::Wait { before: 0, held: false });
}

#[test]
fn an_unfair_contender_gives_way_to_claims_alone() {
    let unfair = Contender { fairness: Fairness::Unfair, ..me(Mode::Write) };
    assert_eq!(judged(&unfair, [other(1, Mode::Write, State::Waiting, 1)]), Verdict::Claim);
    let wait = Verdict::Wait { before: 1, held: false };
    assert_eq!(judged(&unfair, [other(1, Mode::Write, State::Claimed, 1)]), wait);
}

#[test]
fn a_token_is_above_those_of_all_that_conflict() {
    let enters = |mode, others: Vec<SeenRow>| judged(&claiming(mode, 7), others);
    assert_eq!(enters(Mode::Write, vec![left(1, Mode::Read, 6)]), Verdict::Enter);
    for above in [7, 8] {
        let again = Verdict::ClaimAbove(token(above));
        assert_eq!(enters(Mode::Write, vec![left(1, Mode::Read, above), left(2, Mode::Read, 3)]), again);
        assert_eq!(enters(Mode::Read, vec![left(1, Mode::Write, above)]), again);
        assert_eq!(enters(Mode::Read, vec![left(1, Mode::Read, above)]), Verdict::Enter);
    }
}

#[test]
fn a_token_is_above_those_of_the_last_holders_that_conflict() {
    let after = |mode, last_write, last_read| {
        let me = claiming(mode, 7);
        me.judge(&Partition { last_write, last_read, ..look(&me, []) })
    };
    let (old, new) = (Some(token(6)), Some(token(9)));
    assert_eq!(after(Mode::Write, old, old), Verdict::Enter);
    assert_eq!(after(Mode::Read, old, new), Verdict::Enter);
    for (mode, last_write, last_read) in
        [(Mode::Write, old, new), (Mode::Write, new, old), (Mode::Read, new, old)]
    {
        assert_eq!(after(mode, last_write, last_read), Verdict::ClaimAbove(token(9)));
    }
}

/// A holder of slot 1 with a writer behind it, a reader that waits, and a client that does nothing.
fn crowd() -> Partition {
    let mut holder = row(1, Mode::Read, State::Held, 3);
    holder.next = Some(Next {
        acquisition: AcquisitionId::from_u128(11),
        owner: holder.owner,
        mode: Mode::Write,
        ticket: Ticket::from_number(4),
    });
    let mut waits = row(2, Mode::Read, State::Waiting, 5);
    // Announced behind a grant that it does not have: it counts only behind a holder.
    waits.next = holder.next;
    let rows =
        vec![seen(1, Some(holder), None), seen(2, Some(waits), None), other(3, Mode::Write, State::Idle, 6)];
    Partition { rows, ..Partition::default() }
}

#[test]
fn the_waiter_behind_a_holder_is_a_place_of_its_own() {
    let places = |without| -> Vec<_> {
        let places = places_of_others(&crowd(), slot(without)).collect::<Vec<_>>();
        places.iter().map(|place| (place.ticket.get(), place.is_held(), place.is_in_main())).collect()
    };
    assert_eq!(places(ME), [(3, true, true), (4, false, false), (5, false, false)]);
    assert_eq!(places(1), [(5, false, false)]);
    let waiting = |without| waiting(&crowd(), slot(without)).map(Ticket::get).collect::<Vec<_>>();
    assert_eq!((waiting(ME), waiting(2)), (vec![4, 5], vec![4]));
}

#[test]
fn clients_that_take_part_are_counted() {
    let others = |without| others(&crowd(), slot(without));
    assert_eq!([others(ME), others(1), others(3)], [2, 1, 2]);
}

#[test]
fn a_lock_is_contended_by_waiters_of_others_that_conflict() {
    let contended = |without, mode| is_contended(&crowd(), slot(without), mode);
    assert!(contended(ME, Mode::Write) && contended(ME, Mode::Read));
    // Without the holder there is only a reader that waits.
    assert!(contended(1, Mode::Write) && !contended(1, Mode::Read));
    let held = Partition { rows: vec![other(1, Mode::Write, State::Held, 1)], ..Partition::default() };
    assert!(!is_contended(&held, slot(ME), Mode::Write));
}

#[test]
fn the_largest_token_is_that_of_any_client_or_of_the_last_holders() {
    let largest = |claimed, last_write, last_read| {
        let (last_write, last_read) = (StoreToken::new(last_write), StoreToken::new(last_read));
        largest_token(&Partition { rows: vec![left(1, Mode::Read, claimed)], last_write, last_read })
    };
    assert_eq!([largest(3, 1, 2), largest(1, 3, 2), largest(1, 2, 3)], [Some(token(3)); 3]);
    assert_eq!(largest_token(&Partition::default()), None);
}

#[test]
fn each_client_shows_its_largest_ticket() {
    let tickets: Vec<_> = tickets(&crowd(), slot(ME)).collect();
    assert_eq!(tickets, [4, 5, 6]);
}
