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
use crate::stage::{Stage, bounded, until};

async fn renew(engine: &CassandraEngine, grant: &Grant) -> Renewal {
    engine.renew(&[Holding { grant: grant.clone(), next: None }]).await.remove(0).unwrap()
}

/// Returns the only holder that a look shows, as a client finds it that wants to revoke it.
async fn holder(engine: &CassandraEngine, stage: &Stage) -> AcquisitionId {
    let seen = engine.inspect(&stage.key).await.unwrap();
    let [holder] = &seen.holders[..] else { panic!("not one holder: {seen:?}") };
    holder.id
}

/// The first in line has claimed while the holder is still inside.
#[tokio::test(start_paused = true)]
async fn a_claim_behind_a_holder_is_no_holder() {
    bounded(async {
        let stage = Stage::new();
        let (engine, held) = stage.contestant();
        engine.acquire(&held).await.unwrap().unwrap();
        let (waiting, request) = stage.contestant();
        let waiter = tokio::spawn({
            let request = request.clone();
            async move { waiting.acquire(&request).await.unwrap().unwrap() }
        });
        stage.until(State::Claimed, 2).await;
        let seen = engine.inspect(&stage.key).await.unwrap();
        assert_eq!((seen.holders.len(), seen.queue.len()), (1, 1), "{seen:?}");
        assert_eq!(seen.holders[0].id, held.id);
        assert!(!engine.revoke(&stage.key, request.id).await.unwrap(), "it holds nothing");
        engine.release(&stage.key, held.id, None).await.unwrap();
        waiter.await.unwrap();
    })
    .await;
}

/// Asks the first claim that is written to give up, before its client has looked: as a client does that took the claim for a holder's.
fn revoke_the_first_claim(stage: &Stage) -> Arc<AtomicBool> {
    let (fake, key, done) = (Arc::clone(&stage.fake), stage.key.clone(), Arc::new(AtomicBool::new(false)));
    let is_done = Arc::clone(&done);
    stage.fake.plan(move |slot: Slot, write: &Write| {
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
async fn a_revoked_claim_enters(engine: CassandraEngine, stage: &Stage, request: Request) {
    let done = revoke_the_first_claim(stage);
    let began = stage.world.now();
    let grant = engine.acquire(&request).await.unwrap().expect("no other client is there");
    assert!(stage.world.now().since(began) < LEASE, "it does not wait until the revocation is forgotten");
    assert!(done.load(Ordering::Relaxed));
    assert!(matches!(renew(&engine, &grant).await, Renewal::Renewed { .. }));
    let shown = holder(&engine, stage).await;
    assert!(engine.revoke(&stage.key, shown).await.unwrap());
    assert_eq!(renew(&engine, &grant).await, Renewal::Lost(LossReason::Revoked));
    engine.release(&stage.key, request.id, None).await.unwrap();
    assert_eq!(stage.states(), [State::Idle]);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_revoked_before_it_enters_enters_all_the_same() {
    bounded(async {
        let stage = Stage::new();
        let (engine, request) = stage.contestant();
        a_revoked_claim_enters(engine, &stage, request).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_try_that_is_revoked_before_it_enters_enters_all_the_same() {
    bounded(async {
        let stage = Stage::new();
        let (engine, request) = stage.contestant();
        a_revoked_claim_enters(engine, &stage, Request { patience: Patience::Try, ..request }).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_of_the_old_lock_that_is_revoked_before_it_enters_enters_all_the_same() {
    bounded(async {
        let stage = Stage::new();
        let (_, request) = stage.contestant();
        let engine = fake::engine_of(&stage.fake, &stage.world, Protocol::ShadowRows);
        a_revoked_claim_enters(engine, &stage, request).await;
    })
    .await;
}

/// A revoked waiter keeps the place that it had.
#[tokio::test(start_paused = true)]
async fn a_waiter_that_is_revoked_keeps_its_place() {
    bounded(async {
        let stage = Stage::new();
        let (engine, held) = stage.contestant();
        engine.acquire(&held).await.unwrap().unwrap();
        let (waiting, request) = stage.contestant();
        let waiter = tokio::spawn(async move { waiting.acquire(&request).await });
        stage.until(State::Claimed, 2).await;
        let rows = stage.fake.seen(&stage.key).rows;
        let claim = rows.iter().find(|seen| seen.row.as_ref().is_some_and(|row| row.acquisition != held.id));
        let (slot, row) = claim.map(|seen| (seen.slot, seen.row.clone().unwrap())).unwrap();
        let stamp = i64::try_from(claim.unwrap().claim.unwrap().token.get()).unwrap();
        stage.fake.ask_to_give_up(&stage.key, slot, row.acquisition, stamp, 600);
        let same_place = || {
            stage.rows().iter().any(|seen| seen.ticket == row.ticket && seen.acquisition != row.acquisition)
        };
        until("it shows itself under another name", same_place).await;
        assert!(!waiter.is_finished(), "it waits");
        engine.release(&stage.key, held.id, None).await.unwrap();
        waiter.await.unwrap().unwrap().unwrap();
    })
    .await;
}

/// A revocation of what is held tells the holder, and only the holder: waiters go on.
#[tokio::test(start_paused = true)]
async fn those_who_wait_beside_a_revoked_holder_go_on_waiting() {
    bounded(async {
        let stage = Stage::new();
        let ylock = fake::client(&stage.fake, &stage.world);
        let holder = ylock.locks("users").write("alice").await.unwrap();
        let other = stage.locks();
        let waiters: Vec<_> = (0..10)
            .map(|_| {
                let other = other.clone();
                tokio::spawn(async move { other.write("alice").await.map(drop) })
            })
            .collect();
        stage.until(State::Claimed, 1).await;
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
        let stage = Stage::new();
        let (engine, request) = stage.contestant();
        let (fake, world, key) = (Arc::clone(&stage.fake), Arc::clone(&stage.world), stage.key.clone());
        let is_done = AtomicBool::new(false);
        stage.fake.plan(move |slot, write| {
            if write.row.state == State::Claimed && !is_done.swap(true, Ordering::Relaxed) {
                let stamp = i64::try_from(write.claim.unwrap().claim.token.get()).unwrap();
                fake.ask_to_give_up(&key, slot, write.row.acquisition, stamp, 600);
                // Its own token is now too far ahead of its clock for another one.
                world.step(-4 * 24 * 60 * 60 * 1_000_000);
            }
            Fate::Arrives
        });
        assert_eq!(engine.acquire(&request).await.unwrap_err().kind(), ErrorKind::Unexpected);
        assert_eq!(engine.release(&stage.key, request.id, None).await.unwrap(), Release::Released);
        assert_eq!(stage.states(), [State::Idle]);
    })
    .await;
}
