//! How long a waiter pauses: by what its client has learnt, before its first look, and until a row is dead.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ylock_core::engine::{Engine, Holding, Patience, Request};
use ylock_core::environment::Environment;
use ylock_engine_cassandra::CassandraEngine;
use ylock_engine_cassandra::algorithm::store::State;

use crate::fake::LEASE;
use crate::fixture::{Fixture, bounded, until};
use crate::observing::observer;
use crate::told::Told;

const HOLD: Duration = Duration::from_millis(400);

/// Lets `waiter` wait for a holder that stays for [`HOLD`]. Returns how often it looked, and how often it read the last tokens alone.
async fn looks_behind(
    fixture: &Fixture,
    holder: &CassandraEngine,
    waiter: &Arc<CassandraEngine>,
) -> (u64, u64) {
    let (_, held) = fixture.contestant();
    let grant = holder.acquire(&held).await.unwrap().unwrap();
    let request = fixture.again(&held);
    let reads = || {
        let fake = &fixture.fake;
        (fake.reads.load(Ordering::Relaxed), fake.token_reads.load(Ordering::Relaxed))
    };
    let (looks_before, tokens_before) = reads();
    let (waiting, asked) = (Arc::clone(waiter), request.clone());
    let waiting = tokio::spawn(async move { waiting.acquire(&asked).await.unwrap().unwrap() });
    until("it waits", || fixture.rows().iter().any(|row| row.acquisition == request.id)).await;
    holder.renew(&[Holding::new(grant, None)]).await.remove(0).unwrap();
    tokio::time::sleep(HOLD).await;
    holder.release(&fixture.key, held.id, None).await.unwrap();
    waiting.await.unwrap();
    let (looks, tokens) = reads();
    waiter.release(&fixture.key, request.id, None).await.unwrap();
    (looks - looks_before, tokens - tokens_before)
}

#[tokio::test(start_paused = true)]
async fn a_client_that_knows_how_long_holders_stay_looks_less_often() {
    bounded(async {
        let fixture = Fixture::new();
        let (holder, waiter) = (fixture.contestant().0, Arc::new(fixture.contestant().0));
        let mut looks = Vec::new();
        for _ in 0..12 {
            let (looked, read_tokens) = looks_behind(&fixture, &holder, &waiter).await;
            looks.push(looked + read_tokens);
        }
        assert!(looks[11] * 2 < looks[0], "{looks:?}");
    })
    .await;
}

/// While nothing changes a look would show what the last one has shown, and take the longer the more clients wait.
#[tokio::test(start_paused = true)]
async fn a_waiter_that_has_claimed_reads_the_last_tokens_until_they_change() {
    bounded(async {
        let fixture = Fixture::new();
        let (holder, waiter) = (fixture.contestant().0, Arc::new(fixture.contestant().0));
        let (looks, tokens) = looks_behind(&fixture, &holder, &waiter).await;
        // To find the holder, to find that it is inside, behind the own claim, and to enter; and one that was on its way.
        assert!(looks <= 6 && tokens > 10, "{looks} looks, {tokens} others");
    })
    .await;
}

/// It has seen who was the only one before it, and with which token: the look before the claim would say nothing more.
#[tokio::test(start_paused = true)]
async fn the_second_claims_as_soon_as_the_first_has_given_its_token_back() {
    bounded(async {
        let fixture = Fixture::new();
        let ((first, held), (second, request)) = (fixture.contestant(), fixture.contestant());
        // It has seen no other client, so its row does not say that it is inside.
        first.acquire(&held).await.unwrap().unwrap();
        let waiting = tokio::spawn(async move { second.acquire(&request).await.unwrap().unwrap() });
        fixture.until(State::Waiting, 1).await;
        tokio::time::sleep(HOLD / 4).await;
        let reads = || fixture.fake.reads.load(Ordering::Relaxed);
        let before = reads();
        first.release(&fixture.key, held.id, None).await.unwrap();
        waiting.await.unwrap();
        assert_eq!(reads() - before, 1, "the look by which it enters");
    })
    .await;
}

/// However long its pauses have become meanwhile, and between two moments at which it shows itself again.
#[tokio::test(start_paused = true)]
async fn a_waiter_buries_a_dead_holder_in_the_moment_in_which_that_is_dead() {
    bounded(async {
        for _ in 0..5 {
            let fixture = Fixture::new();
            let (holder, held) = observer(&fixture);
            let grant = holder.acquire(&held).await.unwrap().unwrap();
            let (waiter, request) = observer(&fixture);
            let waiting = tokio::spawn(async move { waiter.acquire(&request).await.unwrap().unwrap() });
            // The waiter claims when the first of them says that the holder is inside. The second one is the last heartbeat.
            let mut sent = fixture.world.now();
            for part in [20, 25] {
                tokio::time::sleep(LEASE * part / 100).await;
                sent = fixture.world.now();
                holder.renew(&[Holding::new(grant.clone(), None)]).await.remove(0).unwrap();
            }
            let reads = fixture.fake.reads.load(Ordering::Relaxed);
            until("a look shows it", || fixture.fake.reads.load(Ordering::Relaxed) > reads).await;
            let seen = fixture.world.now();
            waiting.await.unwrap();
            let now = fixture.world.now();
            // A look may have shown it before the renewal was answered, and then the one that was waited for here is the next.
            assert!(now.since(sent) >= LEASE, "{:?}", now.since(sent));
            assert!(now.since(seen) <= LEASE + Duration::from_millis(15), "{:?}", now.since(seen));
        }
    })
    .await;
}

/// A holder and a waiter, both of which can be told; and another client, which has waited there and knows how long a look takes. It knows too
/// that it is told, if it has been.
async fn one_behind(told: &Told, knows: bool) -> (Arc<CassandraEngine>, Request) {
    told.post.loses(true);
    let (engine, request, waiting) = if knows { told.told_waiter().await } else { told.waiter().await };
    waiting.abort();
    engine.release(&told.fixture.key, request.id, None).await.unwrap();
    // It goes on to stand in the way, and does not look any more.
    told.waiter().await.2.abort();
    (engine, request)
}

/// Returns when a client that queues up looks for the first time, counted from then. It has seen the queue just before.
async fn first_look(told: &Told, engine: &Arc<CassandraEngine>, request: &Request) -> Duration {
    let tried = told.fixture.again(request).with_patience(Patience::Try);
    assert!(engine.acquire(&tried).await.unwrap().is_none());
    let (before, began) = (told.reads(), told.now());
    let (waiting, asked) = (Arc::clone(engine), told.fixture.again(request));
    let waiting = tokio::spawn(async move { drop(waiting.acquire(&asked).await) });
    until("it looks", || told.reads() > before).await;
    waiting.abort();
    told.now().since(began)
}

/// A look before those before it have entered would show nothing that it could act on.
#[tokio::test(start_paused = true)]
async fn a_newcomer_that_is_told_looks_when_its_turn_may_have_come() {
    bounded(async {
        let told = Told::new().await;
        let (engine, request) = one_behind(&told, true).await;
        let first = first_look(&told, &engine, &request).await;
        assert!(first >= Duration::from_millis(4) && first <= Duration::from_millis(30), "{first:?}");
    })
    .await;
}

/// As long as no hint has come it relies on none, although those before it could tell.
#[tokio::test(start_paused = true)]
async fn a_newcomer_that_was_never_told_looks_at_once() {
    bounded(async {
        let told = Told::new().await;
        let (engine, request) = one_behind(&told, false).await;
        let first = first_look(&told, &engine, &request).await;
        assert!(first <= Duration::from_millis(3), "{first:?}");
    })
    .await;
}
