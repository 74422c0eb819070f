//! What must hold between tasks that look at a claim, change it and give it up on different threads.

use std::future::{pending, poll_fn};
use std::task::Poll;
use std::time::Duration;

use ylock_core::{ClientName, Key, Mode, Owner};

use super::*;
use crate::algorithm::claim::Removal;
use crate::algorithm::node::Tag;
use crate::algorithm::watch::Watch;

/// Soon, as the clock of these tests goes.
fn later() -> Moment {
    Moment::from_nanos(1_000_000)
}

fn id(number: u128) -> AcquisitionId {
    AcquisitionId::from_u128(number)
}

/// Claims of which nothing is known yet, each with its number.
fn claimed(all: &[(AcquisitionId, u64)]) -> Claims {
    let claims = Claims::default();
    for (id, number) in all {
        claims.inner.lock().claims.insert(*id, claim(*id, *number));
    }
    claims
}

fn claim(id: AcquisitionId, number: u64) -> Claim {
    let key = Key::new("group", "name").unwrap();
    Claim {
        number,
        tag: Tag { mode: Mode::Write, id, session: 1, ticket: None },
        place: Place::of("/ylock", &key),
        key,
        content: Content {
            owner: Owner::new(),
            client: ClientName::default(),
            since: 0,
            token: None,
            revoked: false,
        },
        version: 0,
        node: Node::Unknown,
        removal: None,
        lease: Duration::from_secs(1),
        shown: Moment::ZERO,
        alone: true,
        next: None,
        own: Watch::default(),
        others: Watch::default(),
        contended: false,
    }
}

fn name(id: AcquisitionId) -> Name {
    Name { tag: claim(id, 1).tag, place: 3 }
}

fn made(id: AcquisitionId) -> NewNode {
    NewNode { name: name(id), token: StoreToken::new(9) }
}

fn node(claims: &Claims, id: AcquisitionId) -> Option<Node> {
    claims.with(id, |claim| claim.node)
}

/// See [`Claims::send`]. Were it otherwise a node would be left that no task knows of, and keep its lock as long as the session lives.
#[test]
fn a_claim_is_not_given_up_while_a_request_for_it_is_sent_and_nothing_is_sent_afterwards() {
    let (id, claims) = (id(7), claimed(&[(id(7), 1)]));
    let mut was_sent = false;
    let request = poll_fn(|_| {
        was_sent = true;
        assert!(claims.order.try_lock().is_none(), "it could be given up now");
        Poll::Ready(())
    });
    assert!(claims.send(id, 1, request).is_some() && was_sent);
    assert!(claims.send(id, 2, pending::<()>()).is_none(), "it is another claim");
    assert_eq!(claims.give_up(id, None, later()).unwrap().node, Node::Unknown);
    assert!(claims.send(id, 1, pending::<()>()).is_none());
    claims.end(id, 1);
    assert!(claims.send(id, 1, pending::<()>()).is_none() && claims.give_up(id, None, later()).is_none());
}

/// The answer to a request of the first claim comes when the same acquisition has begun another one.
#[test]
fn an_answer_for_an_earlier_claim_is_not_taken_for_this_one() {
    let (id, claims) = (id(7), claimed(&[(id(7), 2)]));
    assert!(!claims.made(1, &made(id), true));
    claims.replaced(1, name(id));
    claims.stays(1, name(id), 4);
    assert_eq!(node(&claims, id), Some(Node::Unknown));
    claims.end_unknown(id, 1);
    claims.end(id, 1);
    assert!(claims.has(id), "it has ended with the earlier one");
    assert!(claims.made(2, &made(id), true));
    assert_eq!(node(&claims, id), Some(Node::At(name(id))));
}

/// The task that removes the claim would not know of the node that the next task makes.
#[test]
fn a_claim_that_is_being_removed_is_left_to_whoever_removes_it() {
    let (id, claims) = (id(7), claimed(&[(id(7), 1)]));
    let removal = claims.give_up(id, None, later()).unwrap();
    assert!(!claims.made(1, &made(id), true), "the answer comes too late to get in");
    claims.end_unknown(id, 1);
    assert!(claims.has(id), "the same acquisition could make another node");
    assert!(!claims.enter(name(id), made(id).token.unwrap(), later(), false));
    assert!(claims.depart(name(id), |_| {}).is_none());
    claims.end(id, removal.number);
    assert!(!claims.has(id));
}

/// Other tasks see that the lease has ended, and remove the claim: in the same step, or the claim gets in and is removed all the same.
#[test]
fn a_claim_whose_lease_has_ended_does_not_get_in() {
    let (id, claims) = (id(7), claimed(&[(id(7), 1)]));
    assert!(claims.made(1, &made(id), true));
    claims.give_up_lapsed(Moment::ZERO.plus(Duration::from_millis(999)));
    assert!(claims.enter(name(id), made(id).token.unwrap(), Moment::ZERO, false));
    claims.give_up_lapsed(Moment::ZERO.plus(Duration::from_secs(1)));
    assert!(!claims.enter(name(id), made(id).token.unwrap(), later(), false));
    assert_eq!(claims.due(Moment::ZERO, 9, later()).len(), 1, "the cleaner removes it");
}

/// The task that removes the claim was dropped in the middle, or does not run. Both that task and the cleaner may remove it: that does no
/// harm.
#[test]
fn a_removal_that_was_dropped_is_due_for_the_cleaner_at_once_and_one_that_does_not_run_later() {
    let (id, claims) = (id(7), claimed(&[(id(7), 1)]));
    let removal = claims.give_up(id, None, later()).unwrap();
    assert!(claims.due(Moment::ZERO, 9, later()).is_empty());
    claims.postpone(id, removal.number, Moment::ZERO);
    let again = claims.due(Moment::ZERO, 9, later());
    assert_eq!((again.len(), again[0].attempts), (1, 1));
    assert!(claims.due(Moment::ZERO, 9, later()).is_empty(), "one at a time");
    assert_eq!(claims.due(later(), 9, later()).len(), 1);
}

/// A reader with a writer behind it.
fn announced() -> (AcquisitionId, AcquisitionId, Claims) {
    let (grant, next) = (id(7), id(8));
    let claims = claimed(&[(grant, 1), (next, 2)]);
    claims.with(grant, |claim| claim.next = Some(next));
    claims.inner.lock().announced.insert(next);
    (grant, next, claims)
}

fn is_being_removed(claims: &Claims, id: AcquisitionId) -> bool {
    claims.with(id, |claim| claim.removal) == Some(Some(Removal { due: Moment::ZERO, attempts: 0 }))
}

#[test]
fn a_place_behind_a_grant_goes_with_it_however_that_goes() {
    let (grant, next, claims) = announced();
    claims.give_up(grant, None, later());
    assert!(is_being_removed(&claims, next));
    let (grant, next, claims) = announced();
    claims.end_unknown(grant, 1);
    assert!(is_being_removed(&claims, next));
    let (_, next, claims) = announced();
    claims.give_up_lapsed(Moment::ZERO.plus(Duration::from_secs(1)));
    assert!(is_being_removed(&claims, next));
    let (grant, next, claims) = announced();
    assert_eq!(claims.announced(), 1);
    claims.withdraw(grant, None);
    assert!(is_being_removed(&claims, next) && claims.announced() == 0);
    let (grant, next, claims) = announced();
    claims.give_up(grant, Some((id(9), later())), later());
    assert!(is_being_removed(&claims, next), "another acquisition is next");
}

#[test]
fn a_place_behind_a_grant_stays_when_its_caller_comes_or_is_named() {
    let (grant, next, claims) = announced();
    claims.withdraw(grant, Some(next));
    let released = Moment::ZERO.plus(Duration::from_millis(999));
    claims.give_up(grant, Some((next, released)), released);
    assert!(!is_being_removed(&claims, next) && claims.announced() == 0);
    claims.give_up_lapsed(Moment::ZERO.plus(Duration::from_secs(1)));
    assert!(!is_being_removed(&claims, next), "its own lease begins when the grant's has ended");
    claims.give_up_lapsed(released.plus(Duration::from_secs(1)));
    assert!(is_being_removed(&claims, next));
    let (grant, next, claims) = announced();
    claims.with(grant, |claim| claim.shown = later());
    claims.give_up_lapsed(Moment::ZERO.plus(Duration::from_secs(1)));
    assert!(!is_being_removed(&claims, next), "its lease is the grant's");
}

/// Two tasks may remove one claim. The later one must not take the node of the claim after it for a node of this one.
#[test]
fn a_claim_whose_removal_another_task_has_finished_is_not_being_removed_any_more() {
    let (one, claims) = (id(7), claimed(&[(id(7), 1)]));
    assert!(!claims.is_being_removed(one, 1), "it is wanted");
    claims.give_up(one, None, later()).unwrap();
    assert!(claims.is_being_removed(one, 1));
    claims.end(one, 1);
    assert!(!claims.is_being_removed(one, 1), "it has ended");
    claims.inner.lock().claims.insert(one, claim(one, 2));
    assert!(!claims.is_being_removed(one, 1), "another one has begun");
    claims.give_up(one, None, later()).unwrap();
    assert!(!claims.is_being_removed(one, 1) && claims.is_being_removed(one, 2));
}

/// The server writes each path into the record of the session's end, with its length in four bytes before it.
#[test]
fn a_claim_counts_for_what_the_servers_record_of_it_takes() {
    let one = claim(id(7), 1);
    assert_eq!(one.bytes(), 4 + one.place.child(&name(id(7)).to_string()).len());
    let claims = claimed(&[(id(7), 1), (id(8), 2)]);
    claims.inner.lock().bytes = 2 * one.bytes();
    assert_eq!(claims.bytes(), 2 * one.bytes());
    claims.end(id(7), 1);
    assert_eq!(claims.bytes(), one.bytes());
    // What is left is for those that join a queue behind a grant.
    assert_eq!(ENOUGH_BYTES, 7 << 17);
}

#[test]
fn claims_are_counted_and_those_that_are_being_removed_among_them() {
    let claims = claimed(&[(id(7), 1), (id(8), 2)]);
    assert_eq!((claims.count(), claims.is_empty()), ((2, 0), false));
    drop(claims.give_up(id(7), None, later()));
    assert_eq!(claims.count(), (2, 1));
    claims.end(id(7), 1);
    claims.end(id(8), 2);
    assert_eq!((claims.count(), claims.is_empty()), ((0, 0), true));
}

#[test]
fn a_node_that_was_replaced_is_known_at_once_and_one_that_was_not_stays_with_its_version() {
    let (id, claims) = (id(7), claimed(&[(id(7), 1)]));
    let next = Name { place: 4, ..name(id) };
    for number in [2, 1] {
        let is_own = number == 1;
        claims.stays(number, name(id), 5);
        assert_eq!(node(&claims, id) == Some(Node::At(name(id))), is_own);
        let departs = claims.depart(name(id), |content| content.revoked = true);
        let version = departs.map(|(of, content, version)| {
            assert_eq!((of, Content::read(&content).unwrap().revoked), (1, true));
            version
        });
        assert_eq!(version, is_own.then_some(5));
        claims.replaced(number, next);
        assert_eq!(node(&claims, id) == Some(Node::At(next)), is_own);
    }
    assert_eq!(claims.depart(next, |_| {}).map(|(_, _, version)| version), Some(0));
}

/// The tasks that look after a session sleep until then. Told of a moment that is too late they give places up too late, and told of one that
/// has passed they do not sleep at all.
#[test]
fn the_next_thing_to_do_is_the_first_lease_that_ends_by_itself_and_the_first_removal() {
    let (grant, next, claims) = announced();
    let end = |claim: &mut Claim, seconds| claim.lease = Duration::from_secs(seconds);
    claims.with(next, |claim| end(claim, 1));
    claims.with(grant, |claim| end(claim, 2));
    claims.inner.lock().claims.insert(id(9), Claim { lease: Duration::from_secs(3), ..claim(id(9), 3) });
    assert_eq!(
        claims.next_end(),
        Some(Moment::ZERO.plus(Duration::from_secs(2))),
        "not that of a grant's place"
    );
    assert_eq!(claims.next_due(), None);
    claims.give_up(id(9), None, later().plus(Duration::from_secs(1)));
    assert_eq!(claims.next_due(), Some(later().plus(Duration::from_secs(1))));
    claims.give_up(grant, Some((next, later())), later());
    assert_eq!(claims.next_due(), Some(later()));
    claims.with(next, |claim| end(claim, 4));
    assert_eq!(claims.next_end(), Some(later().plus(Duration::from_secs(4))));
    claims.give_up(next, None, later());
    assert_eq!(claims.next_end(), None);
}

/// An answer to a request of an earlier one would be taken for its own otherwise.
#[test]
fn no_two_claims_have_one_number() {
    let mut inner = Inner::default();
    assert_eq!([inner.next_number(), inner.next_number(), inner.next_number()], [1, 2, 3]);
}

#[test]
fn a_session_takes_up_what_the_server_can_write_when_it_ends_and_no_byte_more() {
    let one = claim(id(7), 1).bytes();
    for (left, fits) in [(one, true), (one - 1, false), (0, false), (2 * one, true)] {
        let mut inner = Inner::default();
        inner.bytes = MOST_BYTES - left;
        let begun = inner.insert(id(7), claim(id(7), 5)).ok();
        assert_eq!(begun, fits.then_some(Begun::New(5)), "{left} bytes are left");
        assert_eq!(inner.bytes, MOST_BYTES - left + if fits { one } else { 0 });
        assert_eq!(inner.claims.len(), usize::from(fits));
    }
}
