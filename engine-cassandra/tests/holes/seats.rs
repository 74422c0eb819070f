//! Nothing stays: what a client keeps of a lock that it has left goes by itself, and not before it may.

use std::sync::atomic::Ordering;
use std::time::Duration;

use ylock_core::engine::{Engine, Patience, Release, Request};
use ylock_core::{Key, StoreToken};
use ylock_engine_cassandra::CassandraEngine;
use ylock_engine_cassandra::algorithm::store::State;

use crate::fake::{self, Fate, LEASE, World};
use crate::stage::{Stage, bounded, until};

/// In microseconds.
const HOUR: i64 = 60 * 60 * 1_000_000;

fn is_empty(engine: &CassandraEngine) -> bool {
    engine.in_memory().iter().all(|(_, count)| *count == 0)
}

async fn token_of(engine: &CassandraEngine, request: &Request) -> StoreToken {
    engine.acquire(request).await.unwrap().unwrap().token.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_try_that_is_refused_leaves_no_seat() {
    bounded(async {
        let stage = Stage::new();
        let (holder, held) = stage.contestant();
        let (engine, tried) = stage.contestant();
        for number in 0..200 {
            let key = Key::new("users", format!("name-{number}")).unwrap();
            holder.acquire(&Request { key: key.clone(), ..stage.again(&held) }).await.unwrap().unwrap();
            let tried = Request { key, patience: Patience::Try, ..stage.again(&tried) };
            assert!(engine.acquire(&tried).await.unwrap().is_none());
        }
        until("every seat is forgotten", || is_empty(&engine)).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_seat_is_kept_while_closing_can_remove_its_row_and_not_for_ever() {
    bounded(async {
        let stage = Stage::new();
        let (engine, request) = stage.contestant();
        engine.acquire(&request).await.unwrap().unwrap();
        engine.release(&stage.key, request.id, None).await.unwrap();
        while !stage.rows().is_empty() {
            assert!(!is_empty(&engine), "closing must still remove the row");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        until("the seat is forgotten", || is_empty(&engine)).await;
    })
    .await;
}

/// Were the seat made anew for the next caller, two seats would write one row.
#[tokio::test(start_paused = true)]
async fn a_seat_is_not_forgotten_while_a_caller_tries_at_a_slow_store() {
    bounded(async {
        let stage = Stage::new();
        let (engine, request) = stage.contestant();
        engine.acquire(&request).await.unwrap().unwrap();
        engine.release(&stage.key, request.id, None).await.unwrap();
        // Its time is over while this caller has looked and not yet written.
        tokio::time::sleep(Duration::from_secs(19)).await;
        stage.fake.slow_read(Duration::from_secs(5));
        let again = Request { patience: Patience::Try, ..stage.again(&request) };
        engine.acquire(&again).await.unwrap().unwrap();
        assert_eq!(engine.release(&stage.key, again.id, None).await.unwrap(), Release::Released);
        assert_eq!(stage.states(), [State::Idle]);
    })
    .await;
}

/// The keeper gives a release up after a lease. What it had decided is still to arrive.
#[tokio::test(start_paused = true)]
async fn a_release_that_was_given_up_is_finished_when_the_store_answers_again() {
    bounded(async {
        let stage = Stage::new();
        let (engine, request) = stage.contestant();
        engine.acquire(&Request { lease: LEASE * 2, ..request.clone() }).await.unwrap().unwrap();
        stage.fake.is_away(true);
        engine.release(&stage.key, request.id, None).await.unwrap_err();
        tokio::time::sleep(LEASE).await;
        assert_eq!(stage.states(), [State::Claimed]);
        stage.fake.is_away(false);
        stage.until(State::Idle, 1).await;
        until("the seat is forgotten", || is_empty(&engine)).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_release_that_is_dropped_is_finished() {
    bounded(async {
        let stage = Stage::new();
        let (engine, request) = stage.contestant();
        engine.acquire(&request).await.unwrap().unwrap();
        // While its write is on its way, which never arrives.
        tokio::select! {
            biased;
            answer = engine.release(&stage.key, request.id, None) => panic!("{answer:?}"),
            () = std::future::ready(()) => {}
        }
        stage.until(State::Idle, 1).await;
    })
    .await;
}

/// The next seat at the name would know neither the token nor that it is to be saved.
#[tokio::test(start_paused = true)]
async fn a_seat_with_an_unsaved_token_is_not_forgotten() {
    bounded(async {
        let stage = Stage::new();
        let (engine, request) = stage.contestant();
        after_a_fast_clock(&stage).await;
        let first = token_of(&engine, &request).await;
        stage.fake.plan(|_, write| if write.used.is_some() { Fate::IsLate } else { Fate::Arrives });
        engine.release(&stage.key, request.id, None).await.unwrap_err();
        tokio::time::sleep(LEASE * 10).await;
        stage.fake.plan(|_, _| Fate::Arrives);
        let second = token_of(&engine, &stage.again(&request)).await;
        assert!(second > first, "{second:?} after {first:?}");
    })
    .await;
}

/// Only the row has the token then: the row goes by itself, and the token later.
#[tokio::test(start_paused = true)]
async fn closing_does_not_erase_the_only_place_of_a_token() {
    bounded(async {
        let stage = Stage::new();
        let (engine, request) = stage.contestant();
        let first = token_of(&engine, &request).await;
        stage.fake.plan(|_, write| if write.used.is_some() { Fate::IsLate } else { Fate::Arrives });
        engine.release(&stage.key, request.id, None).await.unwrap_err();
        engine.close().await.unwrap();
        tokio::time::sleep(LEASE * 2).await;
        stage.world.step(-HOUR);
        let (next, request) = stage.contestant();
        let second = token_of(&next, &request).await;
        assert!(second > first, "{second:?} after {first:?}");
    })
    .await;
}

/// A client whose clock is half an hour ahead comes and goes: tokens do not follow the other clocks from then on.
async fn after_a_fast_clock(stage: &Stage) {
    let fast = World::new();
    fast.step(HOUR / 2);
    let (_, request) = stage.contestant();
    let engine = fake::engine(&stage.fake, &fast);
    engine.acquire(&request).await.unwrap().unwrap();
    assert_eq!(engine.release(&stage.key, request.id, None).await.unwrap(), Release::Released);
}

/// A client that only tries sees by one look that the name is taken, and disturbs no other client.
#[tokio::test(start_paused = true)]
async fn a_try_at_a_held_name_writes_nothing() {
    bounded(async {
        let stage = Stage::new();
        let (holder, held) = stage.contestant();
        holder.acquire(&held).await.unwrap().unwrap();
        let writes = stage.fake.writes.load(Ordering::Relaxed);
        let (engine, request) = stage.contestant();
        assert!(engine.acquire(&Request { patience: Patience::Try, ..request }).await.unwrap().is_none());
        assert_eq!(stage.fake.writes.load(Ordering::Relaxed), writes);
    })
    .await;
}

/// What was never acknowledged may be there all the same.
#[tokio::test(start_paused = true)]
async fn closing_removes_a_row_of_which_nobody_has_heard() {
    bounded(async {
        let stage = Stage::new();
        let (engine, request) = stage.contestant();
        tokio::time::sleep(LEASE * 10).await;
        stage.fake.plan(|_, _| Fate::ArrivesUnheard);
        let acquiring = tokio::time::timeout(LEASE / 10, engine.acquire(&request)).await;
        assert!(acquiring.is_err(), "its claim is not acknowledged");
        stage.fake.plan(|_, _| Fate::IsLate);
        engine.release(&stage.key, request.id, None).await.unwrap_err();
        assert_eq!(stage.states(), [State::Claimed]);
        engine.close().await.unwrap();
        assert!(stage.rows().is_empty(), "{:?}", stage.rows());
    })
    .await;
}
