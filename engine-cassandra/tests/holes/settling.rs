//! The task that looks after the rows that were left: what it does soon, what it leaves alone, and that it ends.

use std::sync::atomic::Ordering;
use std::time::Duration;

use ylock_core::engine::{Engine, Holding, Patience};
use ylock_core::{Key, Mode};
use ylock_engine_cassandra::algorithm::store::State;

use crate::fake::{Fate, LEASE};
use crate::fixture::{Fixture, bounded, until};
use crate::own_rows::{is_empty, rows, seen_by_another};

/// The row is on the list since it was left before. A renewal in doubt is tried again by the holder, which looks first; the task would write the
/// row back without a look, perhaps beside that of another holder.
#[tokio::test(start_paused = true)]
async fn a_row_that_is_in_use_again_is_not_written_by_the_task() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        engine.acquire(&request).await.unwrap().unwrap();
        engine.release(&fixture.key, request.id, None).await.unwrap();
        tokio::time::sleep(Duration::from_secs(19)).await;
        let grant = engine.acquire(&fixture.again(&request)).await.unwrap().unwrap();
        fixture.fake.plan(|_, _| Fate::IsLate);
        engine.renew(&[Holding::new(grant, None)]).await.remove(0).unwrap_err();
        fixture.fake.plan(|_, _| Fate::Arrives);
        fixture.fake.expire(&fixture.key);
        tokio::time::sleep(LEASE).await;
        assert!(fixture.rows().is_empty(), "{:?}", fixture.rows());
    })
    .await;
}

/// It stands in the way of others for as long as its TTL, although its client has given it up. No token of it is to be saved.
#[tokio::test(start_paused = true)]
async fn a_claim_that_never_entered_and_was_given_up_in_doubt_is_taken_back() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        fixture.fake.slow_read(LEASE / 2);
        let acquiring = tokio::time::timeout(LEASE / 10, engine.acquire(&request)).await;
        assert!(acquiring.is_err(), "it has claimed, and looks");
        fixture.fake.is_away(true);
        engine.release(&fixture.key, request.id, None).await.unwrap_err();
        assert_eq!(fixture.states(), [State::Claimed]);
        fixture.fake.is_away(false);
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(fixture.states(), [State::Idle]);
    })
    .await;
}

/// The task sleeps until the row that was left first may be forgotten, and is woken for what is due earlier.
#[tokio::test(start_paused = true)]
async fn a_release_in_doubt_is_sent_again_within_seconds_whatever_was_left_before() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        engine.acquire(&request).await.unwrap().unwrap();
        engine.release(&fixture.key, request.id, None).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let bob = Key::new("users", "bob").unwrap();
        let request = fixture.again(&request).with_key(bob.clone());
        engine.acquire(&request).await.unwrap().unwrap();
        fixture.fake.plan(|_, _| Fate::IsLate);
        engine.release(&bob, request.id, None).await.unwrap_err();
        fixture.fake.plan(|_, _| Fate::Arrives);
        tokio::time::sleep(Duration::from_secs(5)).await;
        let seen = fixture.fake.seen(&bob);
        let states: Vec<_> = seen.rows.iter().filter_map(|seen| Some(seen.row.as_ref()?.state)).collect();
        assert_eq!(states, [State::Idle]);
    })
    .await;
}

/// A store that does not answer is asked again, and not more than once in five seconds.
#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_answer_is_asked_once_in_five_seconds() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        engine.acquire(&request).await.unwrap().unwrap();
        fixture.fake.plan(|_, _| Fate::IsLate);
        engine.release(&fixture.key, request.id, None).await.unwrap_err();
        let writes = fixture.fake.writes.load(Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(50)).await;
        let writes = fixture.fake.writes.load(Ordering::Relaxed) - writes;
        assert!((9..=11).contains(&writes), "{writes} in fifty seconds");
    })
    .await;
}

/// However many rows a client has left: a settled one is looked at when it may be forgotten.
#[tokio::test(start_paused = true)]
async fn a_settled_row_is_not_looked_at_before_it_may_be_forgotten() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        engine.acquire(&request).await.unwrap().unwrap();
        engine.release(&fixture.key, request.id, None).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let sleeps = fixture.world.sleeps();
        tokio::time::sleep(Duration::from_secs(18)).await;
        assert_eq!(fixture.world.sleeps(), sleeps, "nothing is due");
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(is_empty(&engine));
    })
    .await;
}

/// What was seen of the others' rows is worth remembering for twenty minutes.
#[tokio::test(start_paused = true)]
async fn a_row_that_is_kept_for_what_it_has_seen_is_looked_at_once_in_twenty_seconds() {
    bounded(async {
        let fixture = Fixture::new();
        let (_holder, other, _) = seen_by_another(&fixture, 1).await;
        tokio::time::sleep(Duration::from_secs(30)).await;
        let sleeps = fixture.world.sleeps();
        tokio::time::sleep(Duration::from_secs(200)).await;
        assert_eq!(fixture.world.sleeps() - sleeps, 10);
        assert_eq!(rows(&other), 1);
    })
    .await;
}

/// The limit is for what is kept beyond the twenty seconds in which each row is kept in any case.
#[tokio::test(start_paused = true)]
async fn what_is_kept_in_any_case_takes_no_room_of_what_was_left_before() {
    bounded(async {
        let fixture = Fixture::new();
        // One after the other, in fifteen seconds. The first half is tried again before the first of them may be forgotten.
        let (_holder, other, holds) = seen_by_another(&fixture, 5_000).await;
        let (_, tried) = fixture.contestant();
        for held in &holds[..2_500] {
            let again = fixture.again(&tried).with_key(held.key.clone()).with_patience(Patience::Try);
            assert!(other.acquire(&again).await.unwrap().is_none());
        }
        tokio::time::sleep(Duration::from_secs(17)).await;
        assert_eq!(rows(&other), 5_000, "half of them are kept for what they have seen");
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(rows(&other), 4_096);
    })
    .await;
}

/// Of one lock three readers may have been seen.
#[tokio::test(start_paused = true)]
async fn the_limit_is_for_the_rows_of_others_and_not_for_locks() {
    bounded(async {
        let fixture = Fixture::new();
        let readers: Vec<_> = (0..3).map(|_| fixture.contestant()).collect();
        let (other, tried) = fixture.contestant();
        for number in 0..1_500 {
            let key = Key::new("users", format!("name-{number}")).unwrap();
            for (reader, request) in &readers {
                let request = fixture.again(request).with_key(key.clone()).with_mode(Mode::Read);
                reader.acquire(&request.with_lease(LEASE * 60)).await.unwrap().unwrap();
            }
            let tried = fixture.again(&tried).with_key(key).with_patience(Patience::Try);
            assert!(other.acquire(&tried).await.unwrap().is_none());
        }
        assert_eq!(rows(&other), 1_500, "as yet they are kept in any case");
        tokio::time::sleep(Duration::from_secs(21)).await;
        assert_eq!(rows(&other), 4_096 / 3);
    })
    .await;
}

/// With nothing left to do it waits for the next row that is left, of which there is none when the client has gone.
#[tokio::test(start_paused = true)]
async fn the_task_ends_with_its_client() {
    bounded(async {
        let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        engine.acquire(&request).await.unwrap().unwrap();
        engine.release(&fixture.key, request.id, None).await.unwrap();
        until("the row is forgotten", || is_empty(&engine)).await;
        let before = tasks();
        drop(engine);
        until("the task ends", || tasks() < before).await;
    })
    .await;
}
