//! Writes that arrive late, twice, or without an answer.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use ylock_core::engine::{Engine, Holding, Patience, Release};
use ylock_core::{ErrorKind, Unlocked};
use ylock_engine_cassandra::CassandraOptions;
use ylock_engine_cassandra::algorithm::store::{State, Write};
use ylock_engine_cassandra::options::Protocol;

use crate::fake::{self, Fate, LEASE};
use crate::fixture::{Fixture, bounded};

/// Holes 1, 11 and 15: a write with a timestamp that is not larger than the last one's is acknowledged and void.
#[tokio::test(start_paused = true)]
async fn a_wall_clock_that_steps_back_voids_no_write() {
    bounded(async {
        let fixture = Fixture::new();
        let locks = fixture.locks();
        for _ in 0..20 {
            let guard = locks.write("alice").await.unwrap();
            fixture.world.step(-3_600_000_000);
            assert_eq!(guard.unlock().await.unwrap(), Unlocked::Released);
            assert!(fixture.states().iter().all(|state| *state == State::Idle));
        }
    })
    .await;
}

/// Hole 8: a claim that timed out and arrives after the release must not close the lock again.
#[tokio::test(start_paused = true)]
async fn a_late_write_does_not_come_back() {
    bounded(async {
        let fixture = Fixture::new();
        let mut first = true;
        fixture.fake.plan(move |_, _| if std::mem::take(&mut first) { Fate::IsLate } else { Fate::Arrives });
        let guard = fixture.locks().write("alice").await.unwrap();
        assert!(guard.unlock().await.unwrap().is_released());
        assert_eq!(fixture.fake.deliver(), 1);
        assert_eq!(fixture.states(), [State::Idle]);
        assert!(fixture.locks().write("alice").now().await.unwrap().is_some());
    })
    .await;
}

/// Hole 9: a claim whose answer was lost is not taken for a claim until a quorum has said so.
#[tokio::test(start_paused = true)]
async fn an_unheard_claim_is_sent_again_before_anybody_enters() {
    bounded(async {
        let fixture = Fixture::new();
        let mut unheard = 3;
        fixture.fake.plan(move |_, _| {
            unheard -= 1;
            if unheard >= 0 { Fate::ArrivesUnheard } else { Fate::Arrives }
        });
        let guard = fixture.locks().write("alice").await.unwrap();
        assert!(guard.is_valid());
        assert!(fixture.fake.writes.load(Ordering::Relaxed) >= 4);
    })
    .await;
}

/// A release that names an acquisition of the past writes nothing.
#[tokio::test(start_paused = true)]
async fn a_release_of_the_past_writes_nothing() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        engine.acquire(&request).await.unwrap().unwrap();
        assert_eq!(engine.release(&fixture.key, request.id, None).await.unwrap(), Release::Released);
        engine.acquire(&fixture.again(&request)).await.unwrap().unwrap();
        let writes = fixture.fake.writes.load(Ordering::Relaxed);
        assert_eq!(engine.release(&fixture.key, request.id, None).await.unwrap(), Release::WasGone);
        assert_eq!(fixture.fake.writes.load(Ordering::Relaxed), writes);
        assert_eq!(fixture.states(), [State::Claimed]);
    })
    .await;
}

/// Two copies of one timestamp would end at different times, and at equal timestamps what has ended beats what lives.
#[tokio::test(start_paused = true)]
async fn a_write_in_doubt_is_sent_again_under_a_new_timestamp_and_with_the_same_token() {
    bounded(async {
        let fixture = Fixture::new();
        let sent = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&sent);
        let mut unheard = 5;
        fixture.fake.plan(move |_, write| {
            log.lock().push(write.clone());
            unheard -= 1;
            if unheard >= 0 { Fate::ArrivesUnheard } else { Fate::Arrives }
        });
        let (engine, request) = fixture.contestant();
        let grant = engine.acquire(&request).await.unwrap().unwrap();
        let claims = std::mem::take(&mut *sent.lock());
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
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        let grant = engine.acquire(&request).await.unwrap().unwrap();
        fixture.fake.plan(|_, write| match write.row.state {
            State::Held => Fate::IsHeardAfter(Duration::from_secs(1)),
            _ => Fate::IsLate,
        });
        let holdings = [Holding::new(grant, None)];
        let renewing = engine.renew(&holdings);
        let releasing = async {
            fixture.until(State::Held, 1).await;
            engine.release(&fixture.key, request.id, None).await.unwrap_err()
        };
        tokio::join!(renewing, releasing);
        assert_eq!(fixture.states(), [State::Held]);
        fixture.fake.plan(|_, _| Fate::Arrives);
        assert_eq!(engine.release(&fixture.key, request.id, None).await.unwrap(), Release::Released);
        assert_eq!(fixture.states(), [State::Idle]);
    })
    .await;
}

/// A release is answered when a quorum has it, and is tried until then.
#[tokio::test(start_paused = true)]
async fn a_release_in_doubt_is_sent_again_until_a_quorum_has_it() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        engine.acquire(&request).await.unwrap().unwrap();
        fixture.fake.plan(|_, _| Fate::IsLate);
        for _ in 0..3 {
            engine.release(&fixture.key, request.id, None).await.unwrap_err();
            assert_eq!(fixture.states(), [State::Claimed]);
        }
        fixture.fake.plan(|_, _| Fate::Arrives);
        assert_eq!(engine.release(&fixture.key, request.id, None).await.unwrap(), Release::Released);
        assert_eq!(fixture.states(), [State::Idle]);
        assert_eq!(engine.release(&fixture.key, request.id, None).await.unwrap(), Release::WasGone);
    })
    .await;
}

/// A server counts whole seconds of its own clock: of the last one it may have counted nothing.
#[tokio::test(start_paused = true)]
async fn a_row_outlives_its_lease_by_a_whole_second_and_by_the_skew_of_the_servers_clocks() {
    bounded(async {
        let fixture = Fixture::new();
        let ttl = Arc::new(Mutex::new(None));
        let written = Arc::clone(&ttl);
        fixture.fake.plan(move |_, write| {
            *written.lock() = Some(Duration::from_secs(write.row_ttl.into()));
            Fate::Arrives
        });
        let (engine, request) = fixture.contestant();
        engine.acquire(&request).await.unwrap().unwrap();
        let skew = CassandraOptions::new("fake").max_clock_skew();
        let lived = ttl.lock().take().unwrap();
        assert!(lived >= LEASE + skew + Duration::from_secs(1), "{lived:?}");
    })
    .await;
}

/// A row that is held while its claim has ended shows no token: a holder's renewal would miss a successor. And the next claim would not be above
/// that of a holder whose row has just ended. The second lease is so short that its row, in whole seconds, outlives the shortest `token_ttl`.
#[tokio::test(start_paused = true)]
async fn a_claim_does_not_end_before_its_row() {
    bounded(async {
        let (second, half) = (Duration::from_secs(1), Duration::from_millis(500));
        let usual = fake::options();
        let short =
            fake::options().with_lease(half).with_max_clock_skew(Duration::ZERO).with_token_ttl(second);
        for (options, lease) in [(usual, LEASE), (short, half)] {
            let fixture = Fixture::new();
            let writes = Arc::new(Mutex::new(Vec::new()));
            let written = Arc::clone(&writes);
            fixture.fake.plan(move |_, write| {
                let claim = write.claim.map(|claim| claim.ttl);
                written.lock().push((write.row.state, write.row_ttl, claim));
                Fate::Arrives
            });
            let engine = || Arc::new(fake::engine_with(&fixture.fake, &fixture.world, &options));
            let request = fixture.contestant().1.with_lease(lease);
            let first = engine();
            let grant = first.acquire(&request).await.unwrap().unwrap();
            first.renew(&[Holding::new(grant, None)]).await.remove(0).unwrap();
            first.release(&fixture.key, request.id, None).await.unwrap();
            // It waits behind another one, with the token cell that it has left.
            engine().acquire(&fixture.again(&request)).await.unwrap().unwrap();
            let again = fixture.again(&request);
            let waiting = tokio::spawn(async move { first.acquire(&again).await });
            fixture.until(State::Waiting, 1).await;
            waiting.abort();
            let claims: Vec<_> = writes
                .lock()
                .iter()
                .filter_map(|(state, row_ttl, claim)| Some((*state, *row_ttl, (*claim)?)))
                .collect();
            for state in [State::Waiting, State::Claimed, State::Held, State::Idle] {
                assert!(claims.iter().any(|claim| claim.0 == state), "no claim of a row that is {state:?}");
            }
            let token_ttl = u32::try_from(options.token_ttl().as_secs()).unwrap();
            for (state, row_ttl, ttl) in claims {
                assert!(ttl >= row_ttl, "{state:?}: {ttl} s, and the row {row_ttl} s");
                if matches!(state, State::Claimed | State::Held) {
                    assert_eq!(ttl, token_ttl.max(row_ttl), "{state:?}");
                }
            }
        }
    })
    .await;
}

/// The row that kept others out may have expired before the main row had its cell, and another client may have entered in between.
#[tokio::test(start_paused = true)]
async fn the_old_lock_does_not_enter_when_its_main_row_has_its_cell_only_after_its_claim_was_over() {
    bounded(async {
        let fixture = Fixture::new();
        let (_, request) = fixture.contestant();
        let engine = fake::engine_of(&fixture.fake, &fixture.world, Protocol::ShadowRows);
        // The second look, and what it lets the caller write: each for itself is short enough.
        fixture.fake.slow_read(LEASE * 6 / 10);
        fixture.fake.slow_read(Duration::from_millis(1));
        fixture.fake.plan(|_, write| match write.row.state {
            State::Held => Fate::IsHeardAfter(LEASE * 6 / 10),
            _ => Fate::Arrives,
        });
        let tried = engine.acquire(&request.with_patience(Patience::Try)).await.unwrap();
        assert!(tried.is_none(), "{tried:?}");
        assert_eq!(fixture.states(), [State::Idle]);
    })
    .await;
}

/// A user without the right to write: there is nothing to remove, and the attempt to do so would be
/// refused for a lease.
#[tokio::test(start_paused = true)]
async fn an_acquisition_whose_writes_were_refused_is_given_back_without_a_write() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        for was_there in [Vec::new(), vec![State::Idle]] {
            fixture.fake.plan(|_, _| Fate::IsRefused);
            let tried = fixture.again(&request);
            for patience in [Patience::Try, Patience::Queue] {
                let tried = tried.clone().with_patience(patience);
                assert_eq!(engine.acquire(&tried).await.unwrap_err().kind(), ErrorKind::Config);
            }
            let writes = fixture.fake.writes.load(Ordering::Relaxed);
            assert_eq!(engine.release(&fixture.key, tried.id, None).await.unwrap(), Release::WasGone);
            assert_eq!(fixture.fake.writes.load(Ordering::Relaxed), writes);
            assert_eq!(fixture.states(), was_there);
            // The right was granted.
            fixture.fake.plan(|_, _| Fate::Arrives);
            let allowed = fixture.again(&request);
            engine.acquire(&allowed).await.unwrap().unwrap();
            assert_eq!(engine.release(&fixture.key, allowed.id, None).await.unwrap(), Release::Released);
        }
    })
    .await;
}

/// The copy before is on its way, and may still let the acquisition in.
#[tokio::test(start_paused = true)]
async fn an_acquisition_of_which_a_write_is_in_doubt_is_given_back_whatever_was_refused_later() {
    bounded(async {
        let fixture = Fixture::new();
        let mut fates = [Fate::IsLate, Fate::IsRefused].into_iter();
        fixture.fake.plan(move |_, _| fates.next().unwrap_or(Fate::Arrives));
        let (engine, request) = fixture.contestant();
        assert_eq!(engine.acquire(&request).await.unwrap_err().kind(), ErrorKind::Config);
        assert_eq!(engine.release(&fixture.key, request.id, None).await.unwrap(), Release::Released);
        assert_eq!(fixture.fake.deliver(), 1);
        assert_eq!(fixture.states(), [State::Idle]);
    })
    .await;
}

/// The write that was refused was to leave as well. What was held must go, also where the next
/// acquisition is not wanted any more.
#[tokio::test(start_paused = true)]
async fn what_is_held_is_given_back_after_a_release_that_was_refused_with_its_next_acquisition() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, held) = fixture.contestant();
        engine.acquire(&held).await.unwrap().unwrap();
        let next = fixture.again(&held);
        fixture.fake.plan(|_, _| Fate::IsRefused);
        let refused = engine.release(&fixture.key, held.id, Some(&next)).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Config);
        fixture.fake.plan(|_, _| Fate::Arrives);
        assert_eq!(engine.release(&fixture.key, next.id, None).await.unwrap(), Release::Released);
        assert_eq!(fixture.states(), [State::Idle]);
    })
    .await;
}
