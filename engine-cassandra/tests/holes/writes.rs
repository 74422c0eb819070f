//! Writes that arrive late, twice, or without an answer.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ylock_core::Unlocked;
use ylock_core::engine::{Engine, Holding, Release};
use ylock_engine_cassandra::algorithm::store::{State, Write};

use crate::fake::Fate;
use crate::stage::{Stage, bounded};

/// Holes 1, 11 and 15: a write with a timestamp that is not larger than the last one's is acknowledged and void.
#[tokio::test(start_paused = true)]
async fn a_wall_clock_that_steps_back_voids_no_write() {
    bounded(async {
        let stage = Stage::new();
        let locks = stage.locks();
        for _ in 0..20 {
            let guard = locks.write("alice").await.unwrap();
            stage.world.step(-3_600_000_000);
            assert_eq!(guard.unlock().await.unwrap(), Unlocked::Released);
            assert!(stage.states().iter().all(|state| *state == State::Idle));
        }
    })
    .await;
}

/// Hole 8: a claim that timed out and arrives after the release must not close the lock again.
#[tokio::test(start_paused = true)]
async fn a_late_write_does_not_come_back() {
    bounded(async {
        let stage = Stage::new();
        let mut first = true;
        stage.fake.plan(move |_, _| if std::mem::take(&mut first) { Fate::IsLate } else { Fate::Arrives });
        let guard = stage.locks().write("alice").await.unwrap();
        guard.unlock().await.unwrap();
        assert_eq!(stage.fake.deliver(), 1);
        assert_eq!(stage.states(), [State::Idle]);
        assert!(stage.locks().try_write("alice").await.unwrap().is_some());
    })
    .await;
}

/// Hole 9: a claim whose answer was lost is not taken for a claim until a quorum has said so.
#[tokio::test(start_paused = true)]
async fn an_unheard_claim_is_sent_again_before_anybody_enters() {
    bounded(async {
        let stage = Stage::new();
        let mut unheard = 3;
        stage.fake.plan(move |_, _| {
            unheard -= 1;
            if unheard >= 0 { Fate::ArrivesUnheard } else { Fate::Arrives }
        });
        let guard = stage.locks().write("alice").await.unwrap();
        assert!(guard.is_valid());
        assert!(stage.fake.writes.load(Ordering::Relaxed) >= 4);
    })
    .await;
}

/// A release that names an acquisition of the past writes nothing.
#[tokio::test(start_paused = true)]
async fn a_release_of_the_past_writes_nothing() {
    bounded(async {
        let stage = Stage::new();
        let (engine, request) = stage.contestant();
        engine.acquire(&request).await.unwrap().unwrap();
        assert_eq!(engine.release(&stage.key, request.id, None).await.unwrap(), Release::Released);
        engine.acquire(&stage.again(&request)).await.unwrap().unwrap();
        let writes = stage.fake.writes.load(Ordering::Relaxed);
        assert_eq!(engine.release(&stage.key, request.id, None).await.unwrap(), Release::WasGone);
        assert_eq!(stage.fake.writes.load(Ordering::Relaxed), writes);
        assert_eq!(stage.states(), [State::Claimed]);
    })
    .await;
}

/// Two copies of one timestamp would end at different times, and at equal timestamps what has ended beats what lives.
#[tokio::test(start_paused = true)]
async fn a_write_in_doubt_is_sent_again_under_a_new_timestamp_and_with_the_same_token() {
    bounded(async {
        let stage = Stage::new();
        let sent = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&sent);
        let mut unheard = 5;
        stage.fake.plan(move |_, write| {
            log.lock().unwrap().push(write.clone());
            unheard -= 1;
            if unheard >= 0 { Fate::ArrivesUnheard } else { Fate::Arrives }
        });
        let (engine, request) = stage.contestant();
        let grant = engine.acquire(&request).await.unwrap().unwrap();
        let claims = std::mem::take(&mut *sent.lock().unwrap());
        assert_eq!(claims.len(), 6);
        for pair in claims.windows(2) {
            assert!(pair[0].stamp < pair[1].stamp);
            assert_eq!(pair[0], Write { stamp: pair[0].stamp, ..pair[1].clone() });
        }
        assert_eq!(claims[0].claim.map(|timed| timed.claim.token), grant.token);
    })
    .await;
}

/// The holder's row that says `Held` is heard of when the release after it is in doubt: that says nothing of the release.
#[tokio::test(start_paused = true)]
async fn the_acknowledgement_of_an_older_write_says_nothing_of_the_last_one() {
    bounded(async {
        let stage = Stage::new();
        let (engine, request) = stage.contestant();
        let grant = engine.acquire(&request).await.unwrap().unwrap();
        stage.fake.plan(|_, write| match write.row.state {
            State::Held => Fate::IsHeardAfter(Duration::from_secs(1)),
            _ => Fate::IsLate,
        });
        let holdings = [Holding { grant, next: None }];
        let renewing = engine.renew(&holdings);
        let releasing = async {
            stage.until(State::Held, 1).await;
            engine.release(&stage.key, request.id, None).await.unwrap_err()
        };
        tokio::join!(renewing, releasing);
        assert_eq!(stage.states(), [State::Held]);
        stage.fake.plan(|_, _| Fate::Arrives);
        assert_eq!(engine.release(&stage.key, request.id, None).await.unwrap(), Release::Released);
        assert_eq!(stage.states(), [State::Idle]);
    })
    .await;
}

/// Whoever leaves is answered when a quorum has it, and tries until then.
#[tokio::test(start_paused = true)]
async fn a_release_in_doubt_is_sent_again_until_a_quorum_has_it() {
    bounded(async {
        let stage = Stage::new();
        let (engine, request) = stage.contestant();
        engine.acquire(&request).await.unwrap().unwrap();
        stage.fake.plan(|_, _| Fate::IsLate);
        for _ in 0..3 {
            engine.release(&stage.key, request.id, None).await.unwrap_err();
            assert_eq!(stage.states(), [State::Claimed]);
        }
        stage.fake.plan(|_, _| Fate::Arrives);
        assert_eq!(engine.release(&stage.key, request.id, None).await.unwrap(), Release::Released);
        assert_eq!(stage.states(), [State::Idle]);
        assert_eq!(engine.release(&stage.key, request.id, None).await.unwrap(), Release::WasGone);
    })
    .await;
}
