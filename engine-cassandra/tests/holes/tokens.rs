//! Tokens that are never out of sight.

use std::sync::atomic::Ordering;

use ylock_core::engine::{Engine, Holding, Patience, Release, Renewal};
use ylock_core::{ErrorKind, Fairness, Mode, Options, Ylock};
use ylock_engine_cassandra::algorithm::store::State;
use ylock_engine_cassandra::options::{Expiry, Protocol};

use crate::fake::{self, Fate, LEASE, World};
use crate::fixture::{Fixture, bounded};
use crate::own_rows::after_a_fast_clock;

/// In microseconds.
const DAY: i64 = 24 * 60 * 60 * 1_000_000;

/// Tokens grow also when the clock of the next holder is an hour behind.
#[tokio::test(start_paused = true)]
async fn tokens_grow_over_clocks_that_disagree() {
    bounded(async {
        let fixture = Fixture::new();
        let mut last = None;
        for _ in 0..20 {
            let guard = fixture.locks().write("alice").await.unwrap();
            assert!(guard.token() > last, "{:?} after {last:?}", guard.token());
            last = guard.token();
            assert!(guard.unlock().await.unwrap().is_released());
            fixture.world.step(-3_600_000_000);
        }
    })
    .await;
}

/// A name that is forgotten starts anew from the clocks: a token far ahead of them would then be larger than its successors.
#[tokio::test(start_paused = true)]
async fn a_token_far_ahead_of_the_clock_is_an_error() {
    bounded(async {
        let fixture = Fixture::new();
        assert!(fixture.locks().write("alice").await.unwrap().unlock().await.unwrap().is_released());
        // Three and a half days are half of the default.
        fixture.world.step(-3 * DAY);
        assert!(fixture.locks().write("alice").await.unwrap().unlock().await.unwrap().is_released());
        fixture.world.step(-DAY);
        let error = fixture.locks().write("alice").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unexpected);
        assert!(error.to_string().contains("ahead of this machine's clock"), "{error}");
    })
    .await;
}

/// The token of a grant is in the store before another client can need it: in the holder's row, and after the release in the last
/// holder's cell, also when the release had to be sent several times.
#[tokio::test(start_paused = true)]
async fn a_used_token_is_never_out_of_sight() {
    bounded(async {
        let fixture = Fixture::new();
        let mut releases = 0;
        fixture.fake.plan(move |_, write| {
            releases += u32::from(write.row.state == State::Idle);
            if write.row.state == State::Idle && releases < 4 { Fate::ArrivesUnheard } else { Fate::Arrives }
        });
        let guard = fixture.locks().write("alice").await.unwrap();
        let token = guard.token().unwrap();
        let claim = fixture.fake.seen(&fixture.key).rows[0].claim.unwrap();
        assert_eq!(ylock_core::Token::from(claim.token), token);
        assert!(guard.unlock().await.unwrap().is_released());
        assert_eq!(fixture.fake.seen(&fixture.key).last_write, Some(claim.token));
    })
    .await;
}

/// A release that never arrived is superseded by the next acquisition of the same client. Its token goes with that.
#[tokio::test(start_paused = true)]
async fn a_token_whose_release_got_lost_is_saved_by_the_next_write() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        let first = engine.acquire(&request).await.unwrap().unwrap();
        fixture.fake.plan(|_, write| if write.used.is_some() { Fate::IsLate } else { Fate::Arrives });
        engine.release(&fixture.key, request.id, None).await.unwrap_err();
        assert_eq!(fixture.fake.seen(&fixture.key).last_write, None, "the release is late");
        fixture.fake.plan(|_, _| Fate::Arrives);
        engine.acquire(&fixture.again(&request)).await.unwrap().unwrap();
        assert_eq!(fixture.fake.seen(&fixture.key).last_write, first.token);
    })
    .await;
}

/// That there is no token for the next waiter must not keep the lock from clients elsewhere.
#[tokio::test(start_paused = true)]
async fn a_release_needs_no_token_for_the_next_one() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        engine.acquire(&request).await.unwrap().unwrap();
        fixture.world.step(-4 * DAY);
        let next = fixture.again(&request);
        assert_eq!(engine.release(&fixture.key, request.id, Some(&next)).await.unwrap(), Release::Released);
        assert_eq!(fixture.states(), [State::Waiting]);
        // The next waiter is told why it cannot enter.
        assert_eq!(engine.acquire(&next).await.unwrap_err().kind(), ErrorKind::Unexpected);
        assert_eq!(engine.release(&fixture.key, next.id, None).await.unwrap(), Release::Released);
        assert_eq!(fixture.states(), [State::Idle]);
    })
    .await;
}

/// While a token is used it stands in the holder's row. Its own cell lives for `token_ttl` from when it is first written: that is at
/// the end.
#[tokio::test(start_paused = true)]
async fn a_token_is_saved_when_its_grant_is_left_and_not_before() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        let grant = engine.acquire(&request).await.unwrap().unwrap();
        let holdings = [Holding::new(grant.clone(), None)];
        assert!(matches!(engine.renew(&holdings).await[0], Ok(Renewal::Renewed { .. })));
        assert_eq!(fixture.fake.seen(&fixture.key).last_write, None);
        engine.release(&fixture.key, request.id, None).await.unwrap();
        assert_eq!(fixture.fake.seen(&fixture.key).last_write, grant.token);
    })
    .await;
}

/// Of a reader whose row is gone only the last readers' token is left.
#[tokio::test(start_paused = true)]
async fn a_writer_has_a_larger_token_than_the_readers_before_it() {
    bounded(async {
        let fixture = Fixture::new();
        let fast = World::new();
        fast.step(DAY / 24);
        let (writer, request) = fixture.contestant();
        let reader = fake::engine(&fixture.fake, &fast);
        let read = fixture.again(&request).with_mode(Mode::Read);
        let first = reader.acquire(&read).await.unwrap().unwrap().token;
        reader.release(&fixture.key, read.id, None).await.unwrap();
        reader.close().await.unwrap();
        let second = writer.acquire(&request).await.unwrap().unwrap().token;
        assert!(second > first, "{second:?} after {first:?}");
    })
    .await;
}

/// A token must outlive the row that it was given with: a lease that is too long for that is refused, and so is one that leaves no time
/// for a second renewal. Both when the lease is attached, and by an acquisition of a caller that has not asked.
#[tokio::test(start_paused = true)]
async fn a_lease_that_does_not_fit_is_refused_before_it_is_used() {
    bounded(async {
        let fixture = Fixture::new();
        let options = fake::options().with_expiry(Expiry::Ttl).with_token_ttl(LEASE * 3);
        let engine = fake::engine_with(&fixture.fake, &fixture.world, &options);
        let locks = Ylock::new(engine).locks("users");
        for (lease, part) in
            [(LEASE * 2, "token_ttl: at least 44s"), (LEASE / 2, "too short for a request timeout of 2s")]
        {
            let lease = Options::default().with_lease(lease);
            let error = locks.try_with_options(lease.clone()).unwrap_err();
            assert!(error.kind() == ErrorKind::Config && error.to_string().contains(part), "{error}");
            let error = locks.with_options(lease).write("alice").await.unwrap_err();
            assert!(error.kind() == ErrorKind::Config && error.to_string().contains(part), "{error}");
        }
        assert!(locks.try_with_options(Options::default().with_lease(LEASE)).is_ok());
        let options = fake::options().with_expiry(Expiry::Observed).with_token_ttl(LEASE * 15);
        let observing = Ylock::new(fake::engine_with(&fixture.fake, &fixture.world, &options)).locks("users");
        let error = observing.try_with_options(Options::default().with_lease(LEASE * 2)).unwrap_err();
        assert!(
            error.to_string().contains("token_ttl: at least 160s"),
            "rows outlive a minute of skew: {error}"
        );
        // What was not changed is not asked about.
        assert!(locks.try_with_options(Options::default().with_fairness(Fairness::Strict)).is_ok());
    })
    .await;
}

/// Also the old lock's, whose grant has the token of the cell in the main row.
#[tokio::test(start_paused = true)]
async fn tokens_of_the_old_lock_grow_and_are_saved() {
    bounded(async {
        let fixture = Fixture::new();
        let mut last = None;
        for _ in 0..3 {
            let engine = fake::engine_of(&fixture.fake, &fixture.world, Protocol::ShadowRows);
            let (_, request) = fixture.contestant();
            let grant = engine.acquire(&request).await.unwrap().unwrap();
            assert!(grant.token > last, "{:?} after {last:?}", grant.token);
            last = grant.token;
            engine.release(&fixture.key, request.id, None).await.unwrap();
            assert_eq!(fixture.fake.seen(&fixture.key).last_write, last);
            fixture.world.step(-DAY / 24);
        }
    })
    .await;
}

/// The look before the claim has shown which token the claim must exceed.
#[tokio::test(start_paused = true)]
async fn a_try_by_a_slow_clock_claims_once() {
    bounded(async {
        let fixture = Fixture::new();
        after_a_fast_clock(&fixture).await;
        let (engine, request) = fixture.contestant();
        let last = fixture.fake.seen(&fixture.key).last_write;
        let writes = fixture.fake.writes.load(Ordering::Relaxed);
        let grant = engine.acquire(&request.with_patience(Patience::Try)).await.unwrap().unwrap();
        assert!(grant.token > last);
        assert_eq!(fixture.fake.writes.load(Ordering::Relaxed) - writes, 1);
    })
    .await;
}
