//! How a client takes its place in the queue.

use std::sync::Arc;

use parking_lot::Mutex;
use ylock_core::engine::{AcquisitionId, Engine, Patience, Ticket};
use ylock_core::environment::Environment;
use ylock_engine_cassandra::algorithm::store::State;

use crate::fake::{self, Fate, World};
use crate::fixture::{Fixture, bounded, until};

/// The states and tickets that the row of this acquisition is written with from now on.
fn written_by(fixture: &Fixture, id: AcquisitionId) -> Arc<Mutex<Vec<(State, Ticket)>>> {
    let written = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&written);
    fixture.fake.plan(move |_, write| {
        if write.row.acquisition == id {
            log.lock().push((write.row.state, write.row.ticket));
        }
        Fate::Arrives
    });
    written
}

/// A claim would disturb those that wait, and be taken back.
#[tokio::test(start_paused = true)]
async fn a_client_that_has_just_seen_others_queues_up_without_a_claim() {
    bounded(async {
        let fixture = Fixture::new();
        let (holder, held) = fixture.contestant();
        holder.acquire(&held).await.unwrap().unwrap();
        let (engine, request) = fixture.contestant();
        let tried = fixture.again(&request).with_patience(Patience::Try);
        assert!(engine.acquire(&tried).await.unwrap().is_none());
        let written = written_by(&fixture, request.id);
        let waiting = tokio::spawn(async move { drop(engine.acquire(&request).await) });
        until("it has queued up", || !written.lock().is_empty()).await;
        assert_eq!(written.lock()[0].0, State::Waiting);
        waiting.abort();
    })
    .await;
}

/// The place that it gives up goes with the claim: another client that waits would see that claim until the next round.
#[tokio::test(start_paused = true)]
async fn a_slow_clock_gives_its_claim_up_with_its_place() {
    bounded(async {
        let fixture = Fixture::new();
        let (holder, held) = fixture.contestant();
        holder.acquire(&held).await.unwrap().unwrap();
        let fast = World::new();
        fast.step(10_000_000);
        let (ahead, theirs) = (fake::engine(&fixture.fake, &fast), fixture.again(&held));
        let first = tokio::spawn(async move { drop(ahead.acquire(&theirs).await) });
        fixture.until(State::Waiting, 1).await;
        let (engine, request) = fixture.contestant();
        let written = written_by(&fixture, request.id);
        let second = tokio::spawn(async move { drop(engine.acquire(&request).await) });
        until("it has taken another place", || written.lock().len() == 2).await;
        let written = written.lock().clone();
        assert_eq!([written[0].0, written[1].0], [State::Claimed, State::Waiting]);
        assert!(written[1].1 > written[0].1, "{written:?}");
        first.abort();
        second.abort();
    })
    .await;
}

const HALF_AN_HOUR: i64 = 1_800 * 1_000_000;

/// All clients whose clocks are right would go first until they show what this one has shown.
#[tokio::test(start_paused = true)]
async fn a_clock_that_was_ahead_once_takes_no_place_in_the_future() {
    bounded(async {
        let fixture = Fixture::new();
        let jumped = World::new();
        let (engine, request) = (fake::engine(&fixture.fake, &jumped), fixture.contestant().1);
        jumped.step(HALF_AN_HOUR);
        let grant = engine.acquire(&request).await.unwrap().unwrap();
        assert!(grant.id == request.id);
        engine.release(&fixture.key, request.id, None).await.unwrap();
        jumped.step(-HALF_AN_HOUR);
        let (holder, held) = fixture.contestant();
        holder.acquire(&held).await.unwrap().unwrap();
        let again = fixture.again(&request);
        let written = written_by(&fixture, again.id);
        let waiting = tokio::spawn(async move { drop(engine.acquire(&again).await) });
        until("it has queued up", || !written.lock().is_empty()).await;
        let ahead = written.lock()[0].1.get() - fixture.world.wall_micros();
        assert!(ahead < 60_000_000, "{ahead} microseconds");
        waiting.abort();
    })
    .await;
}

/// It took its place while the clock was wrong.
#[tokio::test(start_paused = true)]
async fn a_waiter_whose_clock_is_set_back_does_not_wait_for_all_that_come_later() {
    bounded(async {
        let fixture = Fixture::new();
        let (holder, held) = fixture.contestant();
        holder.acquire(&held).await.unwrap().unwrap();
        let jumped = World::new();
        jumped.step(HALF_AN_HOUR);
        let (engine, request) = (fake::engine(&fixture.fake, &jumped), fixture.again(&held));
        let written = written_by(&fixture, request.id);
        let waiting = tokio::spawn(async move { engine.acquire(&request).await.unwrap().unwrap() });
        fixture.until(State::Waiting, 1).await;
        jumped.step(-HALF_AN_HOUR);
        let now = fixture.world.wall_micros();
        until("it has taken another place", || written.lock().last().unwrap().1.get() < now + 60_000_000)
            .await;
        let (other, later) = fixture.contestant();
        let other = tokio::spawn(async move { drop(other.acquire(&later).await) });
        fixture.until(State::Waiting, 2).await;
        holder.release(&fixture.key, held.id, None).await.unwrap();
        waiting.await.unwrap();
        other.abort();
    })
    .await;
}
