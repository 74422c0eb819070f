//! How a client takes its place in the queue.

use std::sync::Arc;

use parking_lot::Mutex;
use ylock_core::engine::{AcquisitionId, Engine, Patience, Ticket};
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
