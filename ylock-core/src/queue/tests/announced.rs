//! A waiter that stands behind the grant of its own client.

use super::{LEASE, ask, at, holding, last, leave, renewed, request};
use crate::engine::{Release, Request};
use crate::mode::Mode::{Read, Write};
use crate::queue::{Contender, Queue};

/// Returns a queue with a reader inside, a writer of the same client announced behind it, and a reader that waits for that writer.
fn announced() -> (Queue, [Request; 3]) {
    let mut queue = Queue::default();
    let all = [request(1, Read), request(2, Write), request(3, Read)];
    let [grant, next, other] = &all;
    assert!(ask(&mut queue, grant, at(0)));
    assert_eq!(queue.renew(&holding(grant, Some(next)), last, at(0)), renewed(false, at(0)));
    assert!(!ask(&mut queue, other, at(0)));
    assert_eq!(queue.find(next.id).and_then(Contender::behind), Some(grant.id));
    (queue, all)
}

#[test]
fn an_announced_waiter_keeps_its_place_and_goes_when_it_is_not_named_any_more() {
    let (mut queue, [grant, next, other]) = announced();
    queue.renew(&holding(&grant, Some(&next)), last, at(5));
    queue.join(&other, last, at(5));
    queue.expire(at(14).moment);
    assert!(queue.find(next.id).is_some() && !queue.may_enter(other.id));
    queue.take_freed();
    queue.renew(&holding(&grant, None), last, at(14));
    assert!(queue.find(next.id).is_none() && queue.take_freed() && queue.may_enter(other.id));
}

#[test]
fn an_announced_waiter_goes_with_its_grant_unless_it_is_named_as_next() {
    let (mut queue, [grant, next, other]) = announced();
    assert_eq!(queue.release(grant.id, None, last, at(0)), Release::Released);
    assert!(queue.find(next.id).is_none() && queue.may_enter(other.id));

    let (mut queue, [grant, next, other]) = announced();
    assert_eq!(queue.release(grant.id, Some(&next), last, at(0)), Release::Released);
    assert!(queue.may_enter(next.id) && !queue.may_enter(other.id));
}

#[test]
fn an_announced_waiter_that_asks_by_itself_stays_when_the_grant_goes_and_is_not_put_back() {
    let (mut queue, [grant, next, _]) = announced();
    assert!(!ask(&mut queue, &next, at(0)));
    queue.renew(&holding(&grant, Some(&next)), last, at(1));
    assert_eq!(leave(&mut queue, 1), Release::Released);
    assert!(queue.may_enter(next.id));
}

#[test]
fn an_announced_waiter_lives_as_long_as_the_grant_and_then_has_the_lease_that_it_asked_for() {
    let mut queue = Queue::default();
    let [grant, next] = [request(1, Read), Request { lease: LEASE * 9, ..request(2, Write) }];
    assert!(ask(&mut queue, &grant, at(0)));
    queue.renew(&holding(&grant, Some(&next)), last, at(0));
    assert_eq!(queue.next_expiry(grant.id), Some(at(10).moment));
    queue.release(grant.id, Some(&next), last, at(5));
    assert!(ask(&mut queue, &next, at(5)));
    assert_eq!(queue.next_expiry(grant.id), Some(at(95).moment));
}
