//! Writes that arrive late, twice, or without an answer.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ylock_core::engine::{Engine, Holding, Patience, Release, Request, Ticket};
use ylock_core::{ClientName, Fairness, Mode, StoreToken, Unlocked};
use ylock_engine_cassandra::CassandraOptions;
use ylock_engine_cassandra::algorithm::judge::{Contender, Verdict};
use ylock_engine_cassandra::algorithm::store::{Claim, Partition, Row, SeenRow, Slot, State, Write};
use ylock_engine_cassandra::options::Protocol;

use crate::fake::{self, Fate, LEASE};
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
        assert!(guard.unlock().await.unwrap().is_released());
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

/// A release is answered when a quorum has it, and is tried until then.
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

/// A server counts whole seconds of its own clock: of the last one it may have counted nothing.
#[tokio::test(start_paused = true)]
async fn a_row_outlives_its_lease_by_a_whole_second_and_by_the_skew_of_the_servers_clocks() {
    bounded(async {
        let stage = Stage::new();
        let ttl = Arc::new(Mutex::new(None));
        let written = Arc::clone(&ttl);
        stage.fake.plan(move |_, write| {
            *written.lock().unwrap() = Some(Duration::from_secs(write.row_ttl.into()));
            Fate::Arrives
        });
        let (engine, request) = stage.contestant();
        engine.acquire(&request).await.unwrap().unwrap();
        let skew = CassandraOptions::new("fake").max_clock_skew();
        let lived = ttl.lock().unwrap().take().unwrap();
        assert!(lived >= LEASE + skew + Duration::from_secs(1), "{lived:?}");
    })
    .await;
}

/// The row that kept others out may have expired before the main row had its cell, and another client may have entered in between.
#[tokio::test(start_paused = true)]
async fn the_old_lock_does_not_enter_when_its_main_row_has_its_cell_only_after_its_claim_was_over() {
    bounded(async {
        let stage = Stage::new();
        let (_, request) = stage.contestant();
        let engine = fake::engine_of(&stage.fake, &stage.world, Protocol::ShadowRows);
        // The second look, and what it lets the caller write: each for itself is short enough.
        stage.fake.slow_read(LEASE * 6 / 10);
        stage.fake.slow_read(Duration::from_millis(1));
        stage.fake.plan(|_, write| match write.row.state {
            State::Held => Fate::IsHeardAfter(LEASE * 6 / 10),
            _ => Fate::Arrives,
        });
        let tried = engine.acquire(&Request { patience: Patience::Try, ..request }).await.unwrap();
        assert!(tried.is_none(), "{tried:?}");
        assert_eq!(stage.states(), [State::Idle]);
    })
    .await;
}

/// A look may show the row of this very attempt as it was before the last claim. An entry by that look would rest on the claim that is
/// shown, and that claim has a token which another client may have passed.
#[test]
fn a_look_that_shows_an_older_claim_lets_the_contender_enter_nothing() {
    let (stage, older, newer) = (Stage::new(), StoreToken::new(7).unwrap(), StoreToken::new(8).unwrap());
    let (_, request) = stage.contestant();
    let (slot, ticket) = (Slot::from_u128(1), Ticket::from_number(1));
    let me = Contender {
        slot,
        acquisition: request.id,
        mode: Mode::Write,
        ticket,
        fairness: Fairness::Fair,
        claimed: Some(newer),
    };
    let row = Row {
        acquisition: request.id,
        mode: Mode::Write,
        state: State::Claimed,
        ticket,
        owner: request.owner,
        client: ClientName::default(),
        since: 0,
        lease: LEASE,
        next: None,
    };
    let shown = |token| {
        let claim = Claim { token, mode: Mode::Write };
        let seen = SeenRow { slot, row: Some(row.clone()), claim: Some(claim), revoked: None };
        Partition { rows: vec![seen], ..Partition::default() }
    };
    assert_eq!(me.judge(&shown(newer)), Verdict::Enter);
    assert_eq!(me.judge(&shown(older)), Verdict::Gone);
}
