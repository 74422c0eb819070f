//! The request that another request carries along: behind a release, and behind a grant that is renewed.

use std::sync::Arc;

use ylock_core::Mode;
use ylock_core::engine::{
    AcquisitionId, Engine, Grant, Holding, Patience, Release, Renewal, Request, valid_until,
};
use ylock_core::environment::Moment;

use crate::contestant::{Contestant, pair};
use crate::{Fixture, eventually, poll_times, within};

/// A request that follows a holder of the same client.
fn following(one: &Contestant, mode: Mode) -> Request {
    let id = AcquisitionId::new(&*one.engine.environment());
    one.request.clone().with_id(id).with_mode(mode).with_patience(Patience::Queue)
}

/// The time for which a client holds: from the moment at which it learns of its grant until it does not believe in it any more.
type Stay = (Moment, Moment);

fn stay(engine: &dyn Engine, grant: &Grant) -> Stay {
    (engine.environment().now(), valid_until(grant.sent, grant.lease))
}

fn overlap(one: Stay, other: Stay) -> bool {
    one.0.max(other.0) < one.1.min(other.1)
}

/// Starts another client that waits from now on, and neither renews nor gives back. The task returns when that client holds.
async fn next_of_another_client(fixture: &Fixture) -> (tokio::task::JoinHandle<Stay>, Contestant) {
    let late = Contestant::new(fixture, Mode::Write, Patience::Queue).await;
    let (engine, request) = (Arc::clone(&late.engine), late.request.clone());
    let waits = tokio::spawn(async move {
        let grant = engine.acquire(&request).await.unwrap().expect("it waits");
        stay(&*engine, &grant)
    });
    let queued = || async {
        let seen = late.engine.inspect(&late.request.key).await.unwrap();
        seen.queue.iter().any(|waiter| waiter.id == late.request.id)
    };
    eventually(fixture.soon(), "it is in the queue", queued).await;
    (waits, late)
}

/// A release lets the next contender of its client in, which asks only much later: its grant is never believed for longer than the store
/// keeps it.
pub async fn a_grant_that_a_release_handed_on_counts_from_when_the_store_counts(fixture: Fixture) {
    for pause in [0.3, 0.6, 0.8] {
        let (mut one, _) = pair(&fixture, Mode::Write).await;
        let grant = one.tries().await.expect("it is free");
        let next = following(&one, Mode::Write);
        one.engine.release(&grant.key, grant.id, Some(&next)).await.unwrap();
        let (waits, late) = next_of_another_client(&fixture).await;
        fixture.leases(pause).await;
        let granted = within(fixture.lapse(), "the engine answers", one.engine.acquire(&next)).await;
        let granted = granted.unwrap().expect("it waits for it");
        assert_eq!(granted.id, next.id);
        let mine = stay(&*one.engine, &granted);
        // It neither renews nor gives back, as a process that is paused or gone.
        let other = within(fixture.lapse() * 2, "the other client gets in", waits).await.unwrap();
        assert!(!overlap(mine, other), "after {pause} of a lease: two holders, {mine:?} and {other:?}");
        one.releases(next.id).await;
        late.releases(late.request.id).await;
    }
}

/// A release lets the next contender of its client in, which never asks: the lock is free after one lease.
pub async fn what_a_release_handed_on_is_over_after_its_lease(fixture: Fixture) {
    let (mut one, _) = pair(&fixture, Mode::Write).await;
    let grant = one.tries().await.expect("it is free");
    let next = following(&one, Mode::Write);
    one.engine.release(&grant.key, grant.id, Some(&next)).await.unwrap();
    let other = Contestant::new(&fixture, Mode::Write, Patience::Queue).await;
    let held = other.acquires().await.expect("a waiter that never comes does not keep it");
    other.releases(held.id).await;
    one.releases(next.id).await;
}

/// The request that a release took along is undone by a release of its own, whichever other contender was let in meanwhile.
pub async fn what_a_release_took_along_is_undone_by_its_own_release(fixture: Fixture) {
    let (mut one, mut other) = pair(&fixture, Mode::Write).await;
    for _ in 0..10 {
        let grant = one.tries().await.expect("it is free");
        let next = following(&one, Mode::Write);
        one.engine.release(&grant.key, grant.id, Some(&next)).await.unwrap();
        one.releases(next.id).await;
        let held = other.tries().await.expect("it was undone");
        assert!(one.tries().await.is_none());
        other.releases(held.id).await;
    }
}

/// A release that takes a request along is dropped after any poll. Released one by one, nothing is left of the two.
pub async fn a_release_dropped_after_any_poll_leaves_nothing_of_what_it_took_along(fixture: Fixture) {
    let (mut one, mut other) = pair(&fixture, Mode::Write).await;
    for polls in 1.. {
        let grant = one.tries().await.expect("it is free");
        let next = following(&one, Mode::Write);
        let cut = poll_times(polls, one.engine.release(&grant.key, grant.id, Some(&next)));
        let cut = within(fixture.lapse(), "the engine goes on", cut).await;
        one.releases(grant.id).await;
        one.releases(next.id).await;
        let held = other.tries().await.expect("nothing is left");
        other.releases(held.id).await;
        let seen = other.engine.inspect(&grant.key).await.unwrap();
        assert!(seen.holders.is_empty() && seen.queue.is_empty(), "after {polls} polls: {seen:?}");
        if cut.is_some() {
            break;
        }
    }
}

/// A reader whose client announces a writer behind it.
async fn announcing(fixture: &Fixture) -> (Contestant, Grant, Request) {
    let mut one = Contestant::long_lived(fixture, Mode::Read, Patience::Try).await;
    let grant = one.tries().await.expect("it is free");
    let next = following(&one, Mode::Write);
    shows(&one, &grant, Some(&next)).await;
    (one, grant, next)
}

async fn shows(one: &Contestant, grant: &Grant, next: Option<&Request>) {
    let holding = Holding::new(grant.clone(), next.cloned());
    let answer = one.engine.renew(&[holding]).await.remove(0).unwrap();
    assert!(matches!(answer, Renewal::Renewed { .. }));
}

/// A writer is announced behind readers, and gives up: readers of other clients get in again.
pub async fn an_announced_waiter_that_gave_up_keeps_no_reader_out(fixture: Fixture) {
    for is_released in [false, true] {
        let (one, grant, next) = announcing(&fixture).await;
        if is_released {
            one.releases(next.id).await;
        } else {
            shows(&one, &grant, None).await;
        }
        let reader = Contestant::new(&fixture, Mode::Read, Patience::Queue).await;
        let held = within(fixture.soon(), "a reader gets in", reader.engine.acquire(&reader.request)).await;
        assert!(held.unwrap().is_some());
        reader.releases(reader.request.id).await;
        one.releases(grant.id).await;
        one.releases(next.id).await;
    }
}

/// A writer is announced behind a grant that is given back without it: no other contender waits for that writer.
pub async fn an_announced_waiter_goes_with_its_grant(fixture: Fixture) {
    let (one, grant, next) = announcing(&fixture).await;
    assert_eq!(one.releases(grant.id).await, Release::Released);
    let mut writer = Contestant::new(&fixture, Mode::Write, Patience::Queue).await;
    writer.request.id = AcquisitionId::new(&*writer.engine.environment());
    let held = within(fixture.soon(), "a writer gets in", writer.engine.acquire(&writer.request)).await;
    assert!(held.unwrap().is_some());
    writer.releases(writer.request.id).await;
    one.releases(next.id).await;
}

/// A writer is announced behind a grant that is not renewed any more: both are gone after its lease.
pub async fn an_announced_waiter_goes_with_a_grant_that_lapses(fixture: Fixture) {
    let mut one = Contestant::new(&fixture, Mode::Read, Patience::Try).await;
    let grant = one.tries().await.expect("it is free");
    let next = following(&one, Mode::Write);
    shows(&one, &grant, Some(&next)).await;
    let writer = Contestant::new(&fixture, Mode::Write, Patience::Queue).await;
    let held = within(fixture.lapse(), "a writer gets in", writer.engine.acquire(&writer.request)).await;
    assert!(held.unwrap().is_some());
    writer.releases(writer.request.id).await;
    one.releases(grant.id).await;
    one.releases(next.id).await;
}

/// A writer with a long lease is announced behind a reader with a short one, follows its release, and is let in by the release of a reader
/// elsewhere: it believes in its own lease, and so must the store.
pub async fn an_announced_waiter_is_let_in_for_its_own_lease(fixture: Fixture) {
    let (mut one, mut two) = pair(&fixture, Mode::Read).await;
    let long = fixture.lease() * 3;
    two.request.lease = long;
    let (grant, other) =
        (one.tries().await.expect("it is free"), two.tries().await.expect("readers share it"));
    let next = following(&one, Mode::Write).with_lease(long);
    shows(&one, &grant, Some(&next)).await;
    one.engine.release(&grant.key, grant.id, Some(&next)).await.unwrap();
    let (engine, request) = (Arc::clone(&one.engine), next.clone());
    let waits = tokio::spawn(async move { engine.acquire(&request).await.unwrap().expect("it waits") });
    let queued = || async {
        let seen = two.engine.inspect(&grant.key).await.unwrap();
        seen.queue.iter().any(|waiter| waiter.id == next.id)
    };
    eventually(fixture.soon(), "it is in the queue", queued).await;
    two.releases(other.id).await;
    let granted = within(fixture.lapse(), "it gets in", waits).await.unwrap();
    let mine = stay(&*one.engine, &granted);
    let (waits, late) = next_of_another_client(&fixture).await;
    // It neither renews nor gives back, as a process that is paused or gone.
    let theirs = within(long * 2 + fixture.lapse(), "the next client gets in", waits).await.unwrap();
    assert!(!overlap(mine, theirs), "two holders, {mine:?} and {theirs:?}");
    one.releases(next.id).await;
    late.releases(late.request.id).await;
}
