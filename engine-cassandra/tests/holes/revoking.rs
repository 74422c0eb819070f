//! A revocation is for holders: a waiter goes on waiting, and keeps what it is given.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ylock_core::engine::{AcquisitionId, Engine, Grant, Holding, Patience, Release, Renewal, Request};
use ylock_core::environment::Environment;
use ylock_core::{ErrorKind, LossReason};
use ylock_engine_cassandra::CassandraEngine;
use ylock_engine_cassandra::algorithm::store::{Slot, State, Write};
use ylock_engine_cassandra::options::Protocol;

use crate::fake::{self, Fate, LEASE};
use crate::fixture::{Fixture, bounded, until};

async fn renew(engine: &CassandraEngine, grant: &Grant) -> Renewal {
    engine.renew(&[Holding::new(grant.clone(), None)]).await.remove(0).unwrap()
}

/// Returns the only holder that a look shows, as a client finds it that wants to revoke it.
async fn holder(engine: &CassandraEngine, fixture: &Fixture) -> AcquisitionId {
    let seen = engine.inspect(&fixture.key).await.unwrap();
    let [holder] = &seen.holders[..] else { panic!("not one holder: {seen:?}") };
    holder.id
}

/// The first in line has claimed while the holder is still inside.
#[tokio::test(start_paused = true)]
async fn a_claim_behind_a_holder_is_no_holder() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, held) = fixture.contestant();
        engine.acquire(&held).await.unwrap().unwrap();
        let (waiting, request) = fixture.contestant();
        let waiter = tokio::spawn({
            let request = request.clone();
            async move { waiting.acquire(&request).await.unwrap().unwrap() }
        });
        fixture.until(State::Claimed, 2).await;
        let seen = engine.inspect(&fixture.key).await.unwrap();
        assert_eq!((seen.holders.len(), seen.queue.len()), (1, 1), "{seen:?}");
        assert_eq!(seen.holders[0].id, held.id);
        assert!(!engine.revoke(&fixture.key, request.id).await.unwrap(), "it holds nothing");
        engine.release(&fixture.key, held.id, None).await.unwrap();
        waiter.await.unwrap();
    })
    .await;
}

/// Asks the first claim that is written to give up, before its client has looked: as a client does that took the claim for a holder's.
fn revoke_the_first_claim(fixture: &Fixture) -> Arc<AtomicBool> {
    let (fake, key, done) =
        (Arc::clone(&fixture.fake), fixture.key.clone(), Arc::new(AtomicBool::new(false)));
    let is_done = Arc::clone(&done);
    fixture.fake.plan(move |slot: Slot, write: &Write| {
        if write.row.state == State::Claimed && !is_done.swap(true, Ordering::Relaxed) {
            let stamp = i64::try_from(write.claim.unwrap().claim.token.get()).unwrap();
            fake.ask_to_give_up(&key, slot, write.row.acquisition, stamp, 600);
        }
        Fate::Arrives
    });
    done
}

/// The claim enters, its renewals do not find the revocation that was not meant for a holder, and a revocation that is meant for it
/// hits.
async fn a_revoked_claim_enters(engine: CassandraEngine, fixture: &Fixture, request: Request) {
    let done = revoke_the_first_claim(fixture);
    let began = fixture.world.now();
    let grant = engine.acquire(&request).await.unwrap().expect("no other client is there");
    assert!(fixture.world.now().since(began) < LEASE, "it does not wait until the revocation is forgotten");
    assert!(done.load(Ordering::Relaxed));
    assert!(matches!(renew(&engine, &grant).await, Renewal::Renewed { .. }));
    let shown = holder(&engine, fixture).await;
    assert!(engine.revoke(&fixture.key, shown).await.unwrap());
    assert_eq!(renew(&engine, &grant).await, Renewal::Lost(LossReason::Revoked));
    engine.release(&fixture.key, request.id, None).await.unwrap();
    assert_eq!(fixture.states(), [State::Idle]);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_revoked_before_it_enters_enters_all_the_same() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        a_revoked_claim_enters(engine, &fixture, request).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_try_that_is_revoked_before_it_enters_enters_all_the_same() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        a_revoked_claim_enters(engine, &fixture, request.with_patience(Patience::Try)).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_of_the_old_lock_that_is_revoked_before_it_enters_enters_all_the_same() {
    bounded(async {
        let fixture = Fixture::new();
        let (_, request) = fixture.contestant();
        let engine = fake::engine_of(&fixture.fake, &fixture.world, Protocol::ShadowRows);
        a_revoked_claim_enters(engine, &fixture, request).await;
    })
    .await;
}

/// A revoked waiter keeps the place that it had.
#[tokio::test(start_paused = true)]
async fn a_waiter_that_is_revoked_keeps_its_place() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, held) = fixture.contestant();
        engine.acquire(&held).await.unwrap().unwrap();
        let (waiting, request) = fixture.contestant();
        let waiter = tokio::spawn(async move { waiting.acquire(&request).await });
        fixture.until(State::Claimed, 2).await;
        let rows = fixture.fake.seen(&fixture.key).rows;
        let claim = rows.iter().find(|seen| seen.row.as_ref().is_some_and(|row| row.acquisition != held.id));
        let (slot, row) = claim.map(|seen| (seen.slot, seen.row.clone().unwrap())).unwrap();
        let stamp = i64::try_from(claim.unwrap().claim.unwrap().token.get()).unwrap();
        fixture.fake.ask_to_give_up(&fixture.key, slot, row.acquisition, stamp, 600);
        let same_place = || {
            fixture.rows().iter().any(|seen| seen.ticket == row.ticket && seen.acquisition != row.acquisition)
        };
        until("it shows itself under another name", same_place).await;
        assert!(!waiter.is_finished(), "it waits");
        engine.release(&fixture.key, held.id, None).await.unwrap();
        waiter.await.unwrap().unwrap().unwrap();
    })
    .await;
}

/// A revocation of what is held tells the holder, and only the holder: waiters go on.
#[tokio::test(start_paused = true)]
async fn those_who_wait_beside_a_revoked_holder_go_on_waiting() {
    bounded(async {
        let fixture = Fixture::new();
        let ylock = fake::client(&fixture.fake, &fixture.world);
        let holder = ylock.locks("users").write("alice").await.unwrap();
        let other = fixture.locks();
        let waiters: Vec<_> = (0..10)
            .map(|_| {
                let other = other.clone();
                tokio::spawn(async move { other.write("alice").await.map(drop) })
            })
            .collect();
        fixture.until(State::Claimed, 1).await;
        for _ in 0..20 {
            ylock.revoke("users", "alice").await.unwrap();
            tokio::time::sleep(LEASE / 10).await;
        }
        assert_eq!(holder.lost().await, LossReason::Revoked);
        drop(holder);
        for waiter in waiters {
            let answer = waiter.await.unwrap();
            assert!(!answer.as_ref().is_err_and(|error| error.kind() == ErrorKind::Lost), "{answer:?}");
            answer.unwrap();
        }
    })
    .await;
}

/// A contender that cannot go on under another name gives back what it has under the old one.
#[tokio::test(start_paused = true)]
async fn a_claim_that_cannot_shed_a_revocation_is_given_back() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        let (fake, world, key) = (Arc::clone(&fixture.fake), Arc::clone(&fixture.world), fixture.key.clone());
        let is_done = AtomicBool::new(false);
        fixture.fake.plan(move |slot, write| {
            if write.row.state == State::Claimed && !is_done.swap(true, Ordering::Relaxed) {
                let stamp = i64::try_from(write.claim.unwrap().claim.token.get()).unwrap();
                fake.ask_to_give_up(&key, slot, write.row.acquisition, stamp, 600);
                // Its own token is now too far ahead of its clock for another one.
                world.step(-4 * 24 * 60 * 60 * 1_000_000);
            }
            Fate::Arrives
        });
        assert_eq!(engine.acquire(&request).await.unwrap_err().kind(), ErrorKind::Unexpected);
        assert_eq!(engine.release(&fixture.key, request.id, None).await.unwrap(), Release::Released);
        assert_eq!(fixture.states(), [State::Idle]);
    })
    .await;
}
