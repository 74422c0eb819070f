//! One situation after the other; `properties` has what holds in all of them.

mod announced;
mod properties;
mod stored;

use std::time::Duration;

use super::{Contender, Now, Queue};
use crate::client_name::ClientName;
use crate::engine::{AcquisitionId, Grant, Holding, LossReason, Patience, Release, Renewal, Request, Ticket};
use crate::environment::Moment;
use crate::key::Key;
use crate::mode::Mode::{self, Read, Write};
use crate::options::Fairness;
use crate::owner::Owner;
use crate::token::StoreToken;

const LEASE: Duration = Duration::from_secs(10);

/// Returns the time this many seconds after the first moment.
fn at(seconds: u64) -> Now {
    let moment = Moment::ZERO.plus(Duration::from_secs(seconds));
    Now { moment, wall_micros: i64::try_from(seconds * 1_000_000).unwrap() }
}

fn id(number: u128) -> AcquisitionId {
    AcquisitionId::from_u128(number)
}

fn request(number: u128, mode: Mode) -> Request {
    Request {
        key: Key::new("users", "alice").unwrap(),
        id: id(number),
        mode,
        owner: Owner::new(),
        client: ClientName::stored("a client"),
        lease: LEASE,
        patience: Patience::Queue,
        fairness: Fairness::Fair,
        ticket: None,
    }
}

fn with_ticket(number: u128, mode: Mode, ticket: i64) -> Request {
    Request { ticket: Some(Ticket::from_number(ticket)), ..request(number, mode) }
}

/// Takes a place behind all that have come by themselves.
fn last() -> Ticket {
    Ticket::from_number(1000)
}

fn token(number: u64) -> StoreToken {
    StoreToken::new(number).unwrap()
}

/// Returns the holding of a grant that was asked for with this request.
fn holding(request: &Request, next: Option<&Request>) -> Holding {
    Holding { grant: Grant::of(request, None, Moment::ZERO, false), next: next.cloned() }
}

/// Does what an engine does when a contender asks. Returns whether it is inside.
fn ask(queue: &mut Queue, request: &Request, now: Now) -> bool {
    queue.expire(now.moment);
    let may_enter = queue.join(request, last, now).is_some() && queue.may_enter(request.id);
    may_enter && queue.enter(request.id, token(1), now)
}

fn leave(queue: &mut Queue, number: u128) -> Release {
    queue.release(id(number), None, last, at(0))
}

fn renewed(contended: bool, now: Now) -> Renewal {
    Renewal::Renewed { sent: now.moment, contended }
}

const GONE: Renewal = Renewal::Lost(LossReason::Gone);

#[test]
fn readers_enter_together_up_to_the_first_writer() {
    let mut queue = Queue::default();
    let inside: Vec<_> = [Read, Read, Write, Read]
        .into_iter()
        .zip(1..)
        .map(|(mode, number)| ask(&mut queue, &request(number, mode), at(0)))
        .collect();
    assert_eq!(inside, [true, true, false, false]);
    leave(&mut queue, 1);
    assert!(!queue.may_enter(id(3)));
    leave(&mut queue, 2);
    assert!(queue.may_enter(id(3)) && !queue.may_enter(id(4)));
}

#[test]
fn tickets_are_the_order_and_of_equal_tickets_the_first_that_came() {
    let mut queue = Queue::default();
    assert!(ask(&mut queue, &with_ticket(1, Write, 50), at(0)));
    for (number, ticket) in [(2, 40), (3, 30), (4, 40)] {
        assert!(!ask(&mut queue, &with_ticket(number, Write, ticket), at(0)));
    }
    let order: Vec<_> = queue.waiters().map(Contender::id).collect();
    assert_eq!(order, [id(3), id(2), id(4)]);
}

#[test]
fn one_that_is_inside_and_asks_again_stays_inside_whatever_comes_before_it() {
    let mut queue = Queue::default();
    let holder = with_ticket(1, Write, 50);
    assert!(ask(&mut queue, &holder, at(0)) && !ask(&mut queue, &with_ticket(2, Write, 40), at(0)));
    assert!(ask(&mut queue, &holder, at(9)));
    queue.expire(at(18).moment);
    assert_eq!((queue.holders().count(), queue.waiters().count()), (1, 0));
}

#[test]
fn one_that_asks_again_keeps_its_place_and_its_lease_begins_again() {
    let mut queue = Queue::default();
    assert!(ask(&mut queue, &Request { lease: LEASE * 9, ..request(1, Write) }, at(0)));
    let [first, second] = [request(2, Write), request(3, Write)];
    assert!(!ask(&mut queue, &first, at(0)) && !ask(&mut queue, &second, at(0)));
    assert!(!ask(&mut queue, &first, at(9)));
    queue.expire(at(18).moment);
    assert!(queue.find(first.id).is_some());
    assert!(queue.find(second.id).is_none(), "one that does not ask loses its place");
}

#[test]
fn an_unfair_one_goes_before_waiters_and_never_beside_a_holder() {
    let mut queue = Queue::default();
    let unfair = Request { fairness: Fairness::Unfair, ..request(3, Write) };
    assert!(ask(&mut queue, &request(1, Read), at(0)));
    assert!(!ask(&mut queue, &request(2, Write), at(0)));
    assert!(!ask(&mut queue, &unfair, at(0)));
    leave(&mut queue, 1);
    assert!(ask(&mut queue, &unfair, at(0)) && !queue.may_enter(id(2)));
}

#[test]
fn an_engine_that_errs_lets_no_two_in_that_conflict() {
    let mut queue = Queue::<()>::default();
    for (number, mode) in [(1, Read), (2, Read), (3, Write)] {
        queue.join(&request(number, mode), last, at(0));
    }
    assert!(queue.enter(id(2), token(1), at(0)) && queue.enter(id(1), token(2), at(0)));
    assert!(!queue.enter(id(3), token(3), at(0)) && !queue.enter(id(4), token(3), at(0)));
    assert_eq!((queue.holders().count(), queue.waiters().count()), (2, 1));
}

#[test]
fn a_grant_that_is_not_renewed_lapses_and_the_next_may_enter() {
    let mut queue = Queue::default();
    let [holder, waiter] = [request(1, Write), Request { lease: LEASE * 9, ..request(2, Write) }];
    assert!(ask(&mut queue, &holder, at(0)) && !ask(&mut queue, &waiter, at(0)));
    assert_eq!(queue.next_expiry(waiter.id), Some(at(10).moment));
    assert_eq!(queue.renew(&holding(&holder, None), last, at(5)), renewed(true, at(5)));
    queue.expire(at(14).moment);
    assert!(!queue.may_enter(waiter.id));
    queue.take_freed();
    queue.expire(at(15).moment);
    assert!(queue.take_freed() && queue.may_enter(waiter.id));
    assert_eq!(queue.renew(&holding(&holder, None), last, at(15)), GONE);
    assert_eq!(queue.renew(&holding(&waiter, None), last, at(15)), GONE, "it does not hold yet");
}

#[test]
fn a_revoked_grant_keeps_others_out_until_its_holder_lets_go() {
    let mut queue = Queue::default();
    let [holder, waiter] = [request(1, Write), request(2, Read)];
    assert!(ask(&mut queue, &holder, at(0)) && !ask(&mut queue, &waiter, at(0)));
    assert!(queue.revoke(holder.id) && !queue.revoke(waiter.id) && !queue.revoke(id(3)));
    let answer = queue.renew(&holding(&holder, None), last, at(5));
    assert_eq!(answer, Renewal::Lost(LossReason::Revoked));
    assert!(!queue.may_enter(waiter.id));
    assert_eq!(leave(&mut queue, 1), Release::Released);
    assert!(queue.may_enter(waiter.id));
}

#[test]
fn a_writer_becomes_a_reader_and_a_reader_no_writer() {
    let mut queue = Queue::default();
    let [holder, reader, writer] = [request(1, Write), request(2, Read), request(3, Write)];
    assert!(ask(&mut queue, &holder, at(0)) && !ask(&mut queue, &reader, at(0)));
    queue.take_freed();
    let reading = request(1, Read);
    assert_eq!(queue.renew(&holding(&reading, None), last, at(0)), renewed(false, at(0)));
    assert!(queue.take_freed() && ask(&mut queue, &reader, at(0)) && !ask(&mut queue, &writer, at(0)));
    assert_eq!(queue.renew(&holding(&holder, None), last, at(0)), renewed(true, at(0)));
    assert_eq!(queue.find(holder.id).map(Contender::mode), Some(Read));
}

#[test]
fn a_copy_of_a_release_does_not_prolong_the_grant_of_next() {
    let mut queue = Queue::default();
    let [grant, next] = [request(1, Write), request(2, Write)];
    assert!(ask(&mut queue, &grant, at(0)));
    assert_eq!(queue.release(grant.id, Some(&next), last, at(0)), Release::Released);
    assert!(ask(&mut queue, &next, at(0)));
    assert_eq!(queue.release(grant.id, Some(&next), last, at(5)), Release::WasGone);
    queue.expire(at(10).moment);
    assert!(queue.is_empty());
}

#[test]
fn what_was_undone_does_not_come_back_while_requests_may_be_on_their_way() {
    let mut queue = Queue::default();
    let [late, other] = [request(1, Write), request(2, Read)];
    assert!(ask(&mut queue, &late, at(0)));
    queue.undo(late.id, at(60).moment);
    assert!(!ask(&mut queue, &late, at(1)) && queue.find(late.id).is_none());
    assert!(ask(&mut queue, &other, at(50)));
    queue.renew(&holding(&other, Some(&late)), last, at(51));
    assert_eq!(queue.release(other.id, Some(&late), last, at(52)), Release::Released);
    assert!(queue.find(late.id).is_none() && !queue.is_empty());
    queue.expire(at(60).moment);
    assert!(queue.is_empty(), "what is remembered of it is forgotten in the end");
}

#[test]
fn holders_and_waiters_are_shown_in_order_and_since_when() {
    let mut queue = Queue::default();
    assert!(ask(&mut queue, &request(1, Read), at(1)) && ask(&mut queue, &request(2, Read), at(2)));
    assert!(!ask(&mut queue, &request(3, Write), at(3)) && !ask(&mut queue, &request(4, Read), at(4)));
    let seen = queue.inspect();
    let since = |time: std::time::SystemTime| time.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let holders: Vec<_> = seen.holders.iter().map(|one| (one.id, one.mode, since(one.since))).collect();
    let waiters: Vec<_> = seen.queue.iter().map(|one| (one.id, one.mode, since(one.since))).collect();
    assert_eq!(holders, [(id(1), Read, 1), (id(2), Read, 2)]);
    assert_eq!(waiters, [(id(3), Write, 3), (id(4), Read, 4)]);
    assert!(seen.holders.iter().all(|holder| holder.token.is_some()));
}

#[test]
fn a_lock_is_free_for_those_that_conflict_with_no_holder() {
    let free = |queue: &Queue<()>| [Read, Write].map(|mode| queue.is_free(mode));
    let mut queue = Queue::<()>::default();
    assert_eq!(free(&queue), [true, true]);
    queue.join(&request(1, Read), last, at(0));
    assert_eq!(free(&queue), [true, true], "a waiter is no holder");
    assert!(queue.enter(id(1), token(1), at(0)));
    assert_eq!(free(&queue), [true, false]);
    queue.release(id(1), None, last, at(0));
    queue.join(&request(2, Write), last, at(0));
    assert!(queue.enter(id(2), token(2), at(0)));
    assert_eq!(free(&queue), [false, false]);
}

#[test]
fn a_waiter_that_is_withdrawn_is_gone_and_frees_nothing() {
    let mut queue: Queue = Queue::default();
    queue.join(&request(1, Write), last, at(0));
    assert!(queue.enter(id(1), token(1), at(0)));
    queue.join(&request(2, Write), last, at(0));
    queue.take_freed();
    queue.withdraw(id(2));
    assert!(queue.find(id(2)).is_none() && !queue.take_freed());
    queue.withdraw(id(1));
    assert!(queue.find(id(1)).is_some(), "a holder gives back");
}
