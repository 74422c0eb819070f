//! Nothing stays: what a client keeps of a lock that it has left goes by itself, and not before it may.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::task::JoinHandle;
use ylock_core::engine::{Engine, Grant, Holding, Patience, Release, Request};
use ylock_core::{ErrorKind, Key, Result, StoreToken};
use ylock_engine_cassandra::CassandraEngine;
use ylock_engine_cassandra::algorithm::store::State;

use crate::fake::{self, Fate, LEASE, World};
use crate::fixture::{Fixture, bounded, until};

/// In microseconds.
const HOUR: i64 = 60 * 60 * 1_000_000;

pub(crate) fn is_empty(engine: &CassandraEngine) -> bool {
    engine.in_memory().iter().all(|(_, count)| *count == 0)
}

async fn token_of(engine: &CassandraEngine, request: &Request) -> StoreToken {
    engine.acquire(request).await.unwrap().unwrap().token.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_try_that_is_refused_leaves_no_own_row() {
    bounded(async {
        let fixture = Fixture::new();
        let (holder, held) = fixture.contestant();
        let (engine, tried) = fixture.contestant();
        for number in 0..200 {
            let key = Key::new("users", format!("name-{number}")).unwrap();
            holder.acquire(&fixture.again(&held).with_key(key.clone())).await.unwrap().unwrap();
            let tried = fixture.again(&tried).with_key(key).with_patience(Patience::Try);
            assert!(engine.acquire(&tried).await.unwrap().is_none());
        }
        until("every row is forgotten", || is_empty(&engine)).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_row_is_kept_while_closing_can_remove_its_row_and_not_for_ever() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        engine.acquire(&request).await.unwrap().unwrap();
        engine.release(&fixture.key, request.id, None).await.unwrap();
        while !fixture.rows().is_empty() {
            assert!(!is_empty(&engine), "closing must still remove the row");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        until("the row is forgotten", || is_empty(&engine)).await;
    })
    .await;
}

/// Were the object made anew for the next caller, two would write one row.
#[tokio::test(start_paused = true)]
async fn a_row_is_not_forgotten_while_a_caller_tries_at_a_slow_store() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        engine.acquire(&request).await.unwrap().unwrap();
        engine.release(&fixture.key, request.id, None).await.unwrap();
        // Its time is over while this caller has looked and not yet written.
        tokio::time::sleep(Duration::from_secs(19)).await;
        fixture.fake.slow_read(Duration::from_secs(5));
        let again = fixture.again(&request).with_patience(Patience::Try);
        engine.acquire(&again).await.unwrap().unwrap();
        assert_eq!(engine.release(&fixture.key, again.id, None).await.unwrap(), Release::Released);
        assert_eq!(fixture.states(), [State::Idle]);
    })
    .await;
}

/// The own row is on the list since it was left before, and is looked at while the store takes its time for the second release.
#[tokio::test(start_paused = true)]
async fn a_release_that_is_on_its_way_is_not_sent_by_another_task_as_well() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        engine.acquire(&request).await.unwrap().unwrap();
        engine.release(&fixture.key, request.id, None).await.unwrap();
        tokio::time::sleep(Duration::from_secs(19)).await;
        let again = fixture.again(&request);
        engine.acquire(&again).await.unwrap().unwrap();
        fixture.fake.plan(|_, _| Fate::IsHeardAfter(Duration::from_secs(5)));
        let writes = fixture.fake.writes.load(Ordering::Relaxed);
        assert_eq!(engine.release(&fixture.key, again.id, None).await.unwrap(), Release::Released);
        assert_eq!(fixture.fake.writes.load(Ordering::Relaxed), writes + 1);
    })
    .await;
}

/// The keeper gives a release up after a lease. What it had decided is still to arrive.
#[tokio::test(start_paused = true)]
async fn a_release_that_was_given_up_is_finished_when_the_store_answers_again() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        engine.acquire(&request.clone().with_lease(LEASE * 2)).await.unwrap().unwrap();
        fixture.fake.is_away(true);
        engine.release(&fixture.key, request.id, None).await.unwrap_err();
        tokio::time::sleep(LEASE).await;
        assert_eq!(fixture.states(), [State::Claimed]);
        fixture.fake.is_away(false);
        fixture.until(State::Idle, 1).await;
        until("the row is forgotten", || is_empty(&engine)).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_release_that_is_dropped_is_finished() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        engine.acquire(&request).await.unwrap().unwrap();
        // While its write is on its way, which never arrives.
        tokio::select! {
            biased;
            answer = engine.release(&fixture.key, request.id, None) => panic!("{answer:?}"),
            () = std::future::ready(()) => {}
        }
        fixture.until(State::Idle, 1).await;
    })
    .await;
}

/// The next object for the row would know neither the token nor that it is to be saved.
#[tokio::test(start_paused = true)]
async fn a_row_with_an_unsaved_token_is_not_forgotten() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        after_a_fast_clock(&fixture).await;
        let first = token_of(&engine, &request).await;
        fixture.fake.plan(|_, write| if write.used.is_some() { Fate::IsLate } else { Fate::Arrives });
        engine.release(&fixture.key, request.id, None).await.unwrap_err();
        tokio::time::sleep(LEASE * 10).await;
        fixture.fake.plan(|_, _| Fate::Arrives);
        let second = token_of(&engine, &fixture.again(&request)).await;
        assert!(second > first, "{second:?} after {first:?}");
    })
    .await;
}

/// Only the row has the token then: the row goes by itself, and the token later.
#[tokio::test(start_paused = true)]
async fn closing_does_not_erase_the_only_place_of_a_token() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        let first = token_of(&engine, &request).await;
        fixture.fake.plan(|_, write| if write.used.is_some() { Fate::IsLate } else { Fate::Arrives });
        engine.release(&fixture.key, request.id, None).await.unwrap_err();
        engine.close().await.unwrap_err();
        tokio::time::sleep(LEASE * 2).await;
        fixture.world.step(-HOUR);
        let (next, request) = fixture.contestant();
        let second = token_of(&next, &request).await;
        assert!(second > first, "{second:?} after {first:?}");
    })
    .await;
}

/// A client whose clock is half an hour ahead comes and goes: tokens do not follow the other clocks from then on.
pub(crate) async fn after_a_fast_clock(fixture: &Fixture) {
    let fast = World::new();
    fast.step(HOUR / 2);
    let (_, request) = fixture.contestant();
    let engine = fake::engine(&fixture.fake, &fast);
    engine.acquire(&request).await.unwrap().unwrap();
    assert_eq!(engine.release(&fixture.key, request.id, None).await.unwrap(), Release::Released);
}

/// A client that only tries sees by one look that the name is taken, and disturbs no other client.
#[tokio::test(start_paused = true)]
async fn a_try_at_a_held_name_writes_nothing() {
    bounded(async {
        let fixture = Fixture::new();
        let (holder, held) = fixture.contestant();
        holder.acquire(&held).await.unwrap().unwrap();
        let writes = fixture.fake.writes.load(Ordering::Relaxed);
        let (engine, request) = fixture.contestant();
        assert!(engine.acquire(&request.with_patience(Patience::Try)).await.unwrap().is_none());
        assert_eq!(fixture.fake.writes.load(Ordering::Relaxed), writes);
    })
    .await;
}

/// Returns a client whose try was dropped with its runtime when it had claimed, and the wait of another one, which has come first since.
async fn dropped_behind_another(
    fixture: &Fixture,
) -> (CassandraEngine, Request, JoinHandle<Result<Option<Grant>>>) {
    let (other, theirs) = fixture.contestant();
    let theirs = theirs.with_ticket(other.ticket());
    let (engine, request) = fixture.contestant();
    let request = request.with_patience(Patience::Try);
    fixture.fake.plan(|_, _| Fate::IsHeardAfter(LEASE / 10));
    assert!(tokio::time::timeout(LEASE / 50, engine.acquire(&request)).await.is_err());
    assert_eq!(fixture.states(), [State::Claimed]);
    fixture.fake.plan(|_, _| Fate::Arrives);
    let waiting = tokio::spawn(async move { other.acquire(&theirs).await });
    fixture.until(State::Claimed, 2).await;
    (engine, request, waiting)
}

#[tokio::test(start_paused = true)]
async fn a_try_that_goes_on_and_is_refused_leaves_no_claim() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request, waiting) = dropped_behind_another(&fixture).await;
        assert!(engine.acquire(&request).await.unwrap().is_none(), "the other one was first");
        let entered = tokio::time::timeout(LEASE / 10, waiting).await.expect("nothing is in its way");
        assert!(entered.unwrap().unwrap().is_some());
    })
    .await;
}

/// Each has claimed when it looks again. The one that came first was dropped with its runtime meanwhile, and goes on.
#[tokio::test(start_paused = true)]
async fn of_two_tries_that_cross_the_first_gets_in_also_if_it_was_dropped_and_goes_on() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        let request = request.with_ticket(engine.ticket()).with_patience(Patience::Try);
        let (other, theirs) = fixture.contestant();
        let theirs = theirs.with_patience(Patience::Try);
        fixture.fake.plan(|_, _| Fate::IsHeardAfter(LEASE / 10));
        let tries = tokio::spawn(async move { other.acquire(&theirs).await });
        assert!(tokio::time::timeout(LEASE / 50, engine.acquire(&request)).await.is_err());
        assert_eq!(fixture.states(), [State::Claimed; 2]);
        fixture.fake.plan(|_, _| Fate::Arrives);
        assert!(engine.acquire(&request).await.unwrap().is_some(), "the other one gives way");
        assert!(tries.await.unwrap().unwrap().is_none());
    })
    .await;
}

/// The look after the claim takes so long that the row has expired.
#[tokio::test(start_paused = true)]
async fn a_try_whose_row_has_expired_shows_it_again() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        let (fake, mut is_first) = (Arc::downgrade(&fixture.fake), true);
        fixture.fake.plan(move |_, _| {
            if std::mem::take(&mut is_first) {
                fake.upgrade().unwrap().slow_read(LEASE * 10);
            }
            Fate::Arrives
        });
        let granted = engine.acquire(&request.with_patience(Patience::Try)).await.unwrap();
        assert!(granted.is_some(), "the lock is free");
    })
    .await;
}

/// It must not go on for ever, nor say that the lock is held.
#[tokio::test(start_paused = true)]
async fn a_try_whose_row_expires_before_each_look_ends_with_an_error() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        let fake = Arc::downgrade(&fixture.fake);
        fixture.fake.plan(move |_, _| {
            fake.upgrade().unwrap().slow_read(LEASE * 10);
            Fate::Arrives
        });
        let error = engine.acquire(&request.with_patience(Patience::Try)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    })
    .await;
}

/// The call before has ended while it left, because another client has come first.
#[tokio::test(start_paused = true)]
async fn a_try_that_was_leaving_leaves_when_it_goes_on() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request, waiting) = dropped_behind_another(&fixture).await;
        fixture.fake.plan(|_, write| match write.row.state {
            State::Idle => Fate::IsLate,
            _ => Fate::Arrives,
        });
        engine.acquire(&request).await.expect_err("its release is lost");
        fixture.fake.plan(|_, _| Fate::Arrives);
        assert!(engine.acquire(&request).await.unwrap().is_none(), "the other one was first");
        assert_eq!(fixture.states().iter().filter(|state| **state == State::Idle).count(), 1);
        assert!(waiting.await.unwrap().unwrap().is_some());
    })
    .await;
}

/// What was never acknowledged may be there all the same.
#[tokio::test(start_paused = true)]
async fn closing_removes_a_row_of_which_nobody_has_heard() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        tokio::time::sleep(LEASE * 10).await;
        fixture.fake.plan(|_, _| Fate::ArrivesUnheard);
        let acquiring = tokio::time::timeout(LEASE / 10, engine.acquire(&request)).await;
        assert!(acquiring.is_err(), "its claim is not acknowledged");
        fixture.fake.plan(|_, _| Fate::IsLate);
        engine.release(&fixture.key, request.id, None).await.unwrap_err();
        assert_eq!(fixture.states(), [State::Claimed]);
        engine.close().await.unwrap();
        assert!(fixture.rows().is_empty(), "{:?}", fixture.rows());
    })
    .await;
}

/// Ten minutes: what is seen of such a row is worth remembering for twenty.
const LONG: Duration = Duration::from_secs(600);

/// Acquires names for long, and tries them by way of another client, which so remembers what it has seen of each.
pub(crate) async fn seen_by_another(
    fixture: &Fixture,
    names: usize,
) -> (CassandraEngine, CassandraEngine, Vec<Request>) {
    let ((holder, held), (other, tried)) = (fixture.contestant(), fixture.contestant());
    let mut holds = Vec::new();
    for number in 0..names {
        let key = Key::new("users", format!("name-{number}")).unwrap();
        let request = fixture.again(&held).with_key(key.clone()).with_lease(LONG);
        holder.acquire(&request).await.unwrap().unwrap();
        holds.push(request);
        let tried = fixture.again(&tried).with_key(key).with_patience(Patience::Try);
        assert!(other.acquire(&tried).await.unwrap().is_none());
    }
    (holder, other, holds)
}

pub(crate) fn rows(engine: &CassandraEngine) -> usize {
    engine.in_memory()[0].1
}

/// With leases of a day a client that looks at many names would remember each of them for two.
#[tokio::test(start_paused = true)]
async fn what_is_kept_of_others_has_a_limit() {
    bounded(async {
        let fixture = Fixture::new();
        let (_holder, other, _) = seen_by_another(&fixture, 5_000).await;
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(rows(&other), 4_096);
        tokio::time::sleep(LONG).await;
        assert_eq!(rows(&other), 4_096);
        tokio::time::sleep(LONG).await;
        assert!(is_empty(&other));
    })
    .await;
}

/// However long their leases were: a client that has left needs no watching.
#[tokio::test(start_paused = true)]
async fn a_row_is_not_kept_for_what_others_have_given_back() {
    bounded(async {
        let fixture = Fixture::new();
        let (holder, other, holds) = seen_by_another(&fixture, 1).await;
        holder.release(&holds[0].key, holds[0].id, None).await.unwrap();
        let next = fixture.again(&holds[0]).with_patience(Patience::Try);
        other.acquire(&next).await.unwrap().expect("it is free");
        other.release(&next.key, next.id, None).await.unwrap();
        tokio::time::sleep(Duration::from_secs(21)).await;
        assert!(is_empty(&other));
    })
    .await;
}

/// An inspection, a revocation, and a hold with waiters behind it: of a lease that is over in ten minutes nothing is kept for twenty.
#[tokio::test(start_paused = true)]
async fn a_row_is_not_kept_for_what_stood_in_no_way() {
    bounded(async {
        let fixture = Fixture::new();
        let ((waiting, request), (holder, held)) = (fixture.contestant(), fixture.contestant());
        let grant = holder.acquire(&held).await.unwrap().unwrap();
        tokio::spawn(async move { drop(waiting.acquire(&request.with_lease(LONG)).await) });
        fixture.until(State::Claimed, 1).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        holder.renew(&[Holding::new(grant, None)]).await.remove(0).unwrap();
        holder.release(&fixture.key, held.id, None).await.unwrap();
        let (other, _) = fixture.contestant();
        let seen = other.inspect(&fixture.key).await.unwrap();
        assert!(!seen.holders.is_empty() || !seen.queue.is_empty());
        assert!(!other.revoke(&fixture.key, held.id).await.unwrap());
        tokio::time::sleep(Duration::from_secs(22)).await;
        assert!(is_empty(&holder) && is_empty(&other));
    })
    .await;
}
