//! Rows of clients that left or died, shown again by a replica that has missed what came after.

use std::sync::Arc;

use parking_lot::Mutex;
use ylock_core::engine::{Engine, Grant, Holding, Renewal};
use ylock_engine_cassandra::CassandraEngine;
use ylock_engine_cassandra::algorithm::store::{Slot, State, Store, Write};

use crate::fake::Fate;
use crate::fixture::{Fixture, bounded};
use crate::observing::observer;

async fn renew(engine: &CassandraEngine, grant: &Grant) -> Renewal {
    engine.renew(&[Holding::new(grant.clone(), None)]).await.remove(0).unwrap()
}

/// Returns what a client wrote last that said that it was inside. It left, waited again behind another client, which is returned with its grant,
/// and died; the waiter was buried, and its token stays.
async fn buried_behind_a_holder(fixture: &Fixture) -> ((Slot, Write), (Arc<CassandraEngine>, Grant)) {
    let held = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&held);
    fixture.fake.plan(move |slot, write| {
        if write.row.state == State::Held && kept.lock().is_none() {
            *kept.lock() = Some((slot, write.clone()));
        }
        Fate::Arrives
    });
    let (victim, request) = observer(fixture);
    let first = victim.acquire(&request).await.unwrap().unwrap();
    assert!(matches!(renew(&victim, &first).await, Renewal::Renewed { .. }));
    victim.release(&fixture.key, request.id, None).await.unwrap();
    let (holder, theirs) = observer(fixture);
    let grant = holder.acquire(&theirs).await.unwrap().unwrap();
    let again = fixture.again(&request);
    let waiting = tokio::spawn(async move { drop(victim.acquire(&again).await) });
    // The first in line has claimed: with a token that is larger than the holder's.
    fixture.until(State::Claimed, 2).await;
    waiting.abort();
    let (slot, write) = held.lock().clone().unwrap();
    let waiter = fixture.fake.seen(&fixture.key).rows.into_iter().find(|seen| seen.slot == slot).unwrap();
    assert!(waiter.claim.unwrap().token > grant.token.unwrap());
    fixture.fake.bury(&fixture.key, slot, waiter.heartbeat.unwrap()).await.unwrap();
    ((slot, write), (holder, grant))
}

/// The token is a later one, but not of the row that is shown: no client has succeeded the holder.
#[tokio::test(start_paused = true)]
async fn a_row_with_the_token_of_a_later_one_is_no_successor() {
    bounded(async {
        let fixture = Fixture::new();
        let ((slot, write), (holder, grant)) = buried_behind_a_holder(&fixture).await;
        fixture.fake.show_again(&fixture.key, slot, &write);
        let shown = fixture.fake.seen(&fixture.key).rows.into_iter().find(|seen| seen.slot == slot).unwrap();
        assert_eq!(shown.row.map(|row| row.state), Some(State::Held));
        assert!(shown.claim.unwrap().token > grant.token.unwrap());
        let renewed = renew(&holder, &grant).await;
        assert!(matches!(renewed, Renewal::Renewed { .. }), "{renewed:?}");
    })
    .await;
}

/// Whatever the row beside it: the next token must be larger.
#[tokio::test(start_paused = true)]
async fn the_token_of_a_row_that_was_buried_is_exceeded_all_the_same() {
    bounded(async {
        let fixture = Fixture::new();
        let ((slot, write), (holder, grant)) = buried_behind_a_holder(&fixture).await;
        fixture.fake.show_again(&fixture.key, slot, &write);
        let left = fixture.fake.seen(&fixture.key).rows.into_iter().find(|seen| seen.slot == slot).unwrap();
        let id = fixture.rows().iter().find(|row| row.state == State::Claimed).unwrap().acquisition;
        holder.release(&fixture.key, id, None).await.unwrap();
        let (next, request) = observer(&fixture);
        let later = next.acquire(&request).await.unwrap().unwrap();
        assert!(later.token > Some(left.claim.unwrap().token) && later.token > grant.token);
    })
    .await;
}

/// The client is not asked to give up what it has left long ago: with a token of what came after, that would stand in the way of a revocation of
/// this.
#[tokio::test(start_paused = true)]
async fn a_row_with_the_token_of_a_later_one_shows_none_and_is_not_revoked() {
    bounded(async {
        let fixture = Fixture::new();
        let ((slot, write), (holder, _)) = buried_behind_a_holder(&fixture).await;
        fixture.fake.show_again(&fixture.key, slot, &write);
        let seen = holder.inspect(&fixture.key).await.unwrap();
        let shown = seen.holders.iter().find(|shown| shown.id == write.row.acquisition).unwrap();
        assert_eq!(shown.token, None);
        assert!(!holder.revoke(&fixture.key, write.row.acquisition).await.unwrap());
    })
    .await;
}
