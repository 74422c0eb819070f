//! The holes of the thesis's algorithm, and of ours before it was right: each test fails without the line that closes it.
//! On a store of one replica and paused time; the three replicas are the simulation's.
#![allow(clippy::disallowed_methods, reason = "tests start tasks of their own")]

mod fake;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fake::{Fake, Fate, LEASE, World, client};
use ylock_core::engine::{AcquisitionId, Engine, Holding, Patience, Release, Renewal, Request};
use ylock_core::environment::Environment;
use ylock_core::{ErrorKind, Fairness, Key, LossReason, Mode, Owner, Unlocked};
use ylock_engine_cassandra::CassandraEngine;
use ylock_engine_cassandra::algorithm::store::State;

/// In microseconds.
const DAY: i64 = 24 * 60 * 60 * 1_000_000;

struct Stage {
    world: Arc<World>,
    fake: Arc<Fake>,
    key: Key,
}

impl Stage {
    fn new() -> Self {
        let world = World::new();
        Self { fake: Fake::new(world.clone()), world, key: Key::new("users", "alice").unwrap() }
    }

    fn locks(&self) -> ylock_core::Locks {
        client(&self.fake, &self.world).locks("users")
    }

    /// A client without a keeper, and a request of it.
    fn contestant(&self) -> (CassandraEngine, Request) {
        let request = Request {
            key: self.key.clone(),
            id: AcquisitionId::new(&*self.world),
            mode: Mode::Write,
            owner: Owner::new(),
            lease: LEASE,
            patience: Patience::Queue,
            fairness: Fairness::Fair,
            ticket: None,
        };
        (fake::engine(&self.fake, &self.world), request)
    }

    fn again(&self, request: &Request) -> Request {
        Request { id: AcquisitionId::new(&*self.world), ..request.clone() }
    }

    fn states(&self) -> Vec<State> {
        self.fake
            .seen(&self.key)
            .rows
            .iter()
            .filter_map(|seen| seen.row.as_ref())
            .map(|row| row.state)
            .collect()
    }

    /// Until so many rows are in this state.
    async fn until(&self, state: State, count: usize) {
        until("so many rows are in this state", || {
            self.states().iter().filter(|seen| **seen == state).count() == count
        })
        .await;
    }
}

/// A test that is stuck fails: in an hour of the paused time, which passes in seconds.
async fn bounded(test: impl Future<Output = ()>) {
    tokio::time::timeout(Duration::from_secs(3_600), test).await.expect("stuck");
}

/// Until the condition holds; time is paused, so the bound costs nothing.
async fn until(what: &str, condition: impl Fn() -> bool) {
    let bound = tokio::time::Instant::now() + LEASE * 6;
    while !condition() {
        assert!(tokio::time::Instant::now() < bound, "{what}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Hole 2: the thesis renews only after success, so whoever waits for longer than the TTL falls out of the queue.
#[tokio::test(start_paused = true)]
async fn a_waiter_outlives_many_leases() {
    bounded(async {
        let stage = Stage::new();
        let holder = stage.locks().write("alice").await.unwrap();
        let waiter = tokio::spawn({
            let locks = stage.locks();
            async move { locks.write("alice").await.unwrap() }
        });
        // More often than a waiter looks, so that no gap in its presence is missed.
        for _ in 0..2_000 {
            tokio::time::sleep(LEASE / 200).await;
            assert_eq!(stage.states().iter().filter(|state| **state != State::Idle).count(), 2);
        }
        drop(holder);
        assert!(waiter.await.unwrap().is_valid());
    })
    .await;
}

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

/// The first look shows somebody who waits and whose clock is ahead: the own place is given up for one behind it.
#[tokio::test(start_paused = true)]
async fn a_slow_clock_does_not_overtake() {
    bounded(async {
        let stage = Stage::new();
        let fast = World::new();
        fast.step(10_000_000);
        let holder = stage.locks().write("alice").await.unwrap();
        let queue_up =
            |locks: ylock_core::Locks| tokio::spawn(async move { locks.write("alice").await.unwrap() });
        let first = queue_up(client(&stage.fake, &fast).locks("users"));
        until("the first one waits", || stage.states().len() == 2).await;
        let second = queue_up(stage.locks());
        until("the second one waits", || stage.states().contains(&State::Waiting)).await;
        holder.unlock().await.unwrap();
        let inside = first.await.unwrap();
        assert!(!second.is_finished());
        drop(inside);
        assert!(second.await.unwrap().is_valid());
    })
    .await;
}

/// Tokens grow also when the clock of the next holder is an hour behind.
#[tokio::test(start_paused = true)]
async fn tokens_grow_over_clocks_that_disagree() {
    bounded(async {
        let stage = Stage::new();
        let mut last = None;
        for _ in 0..20 {
            let guard = stage.locks().write("alice").await.unwrap();
            assert!(guard.token() > last, "{:?} after {last:?}", guard.token());
            last = guard.token();
            guard.unlock().await.unwrap();
            stage.world.step(-3_600_000_000);
        }
    })
    .await;
}

/// A name that is forgotten starts anew from the clocks: a token far ahead of them would then be larger than its successors.
#[tokio::test(start_paused = true)]
async fn a_token_far_ahead_of_the_clock_is_an_error() {
    bounded(async {
        let stage = Stage::new();
        stage.locks().write("alice").await.unwrap().unlock().await.unwrap();
        // Three and a half days are half of the default.
        stage.world.step(-3 * DAY);
        stage.locks().write("alice").await.unwrap().unlock().await.unwrap();
        stage.world.step(-DAY);
        let error = stage.locks().write("alice").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unexpected);
        assert!(error.to_string().contains("ahead of this machine's clock"), "{error}");
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

/// A withdrawal that is still on its way would take the claim away from under a holder that entered meanwhile.
#[tokio::test(start_paused = true)]
async fn nobody_enters_over_its_own_late_withdrawal() {
    bounded(async {
        let stage = Stage::new();
        let late = Arc::new(AtomicBool::new(true));
        // From the first waiting row on that follows a claim, withdrawals of the second client are late.
        let mut claimed = std::collections::HashSet::new();
        let is_late = late.clone();
        stage.fake.plan(move |slot, write| match write.row.state {
            State::Claimed => {
                claimed.insert(slot);
                Fate::Arrives
            }
            State::Waiting if claimed.contains(&slot) && is_late.load(Ordering::Relaxed) => Fate::IsLate,
            _ => Fate::Arrives,
        });
        let first = stage.locks().write("alice").await.unwrap();
        let second = tokio::spawn({
            let locks = stage.locks();
            async move { locks.write("alice").await.unwrap() }
        });
        // The second one claims, sees the first one's claim, and withdraws; then the first one leaves.
        stage.until(State::Claimed, 2).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        first.unlock().await.unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
        let entered_early = second.is_finished();
        late.store(false, Ordering::Relaxed);
        let guard = second.await.unwrap();
        stage.fake.deliver();
        assert!(!entered_early, "entered while its withdrawal was on its way");
        assert!(
            stage.states().contains(&State::Claimed) || stage.states().contains(&State::Held),
            "{:?}",
            stage.states()
        );
        assert!(stage.locks().try_write("alice").await.unwrap().is_none());
        drop(guard);
    })
    .await;
}

/// Hole 13: a holder that could not renew in time is told, and does not write itself back.
#[tokio::test(start_paused = true)]
async fn a_holder_without_renewals_is_lost_before_its_row_is() {
    bounded(async {
        let stage = Stage::new();
        let guard = stage.locks().write("alice").await.unwrap();
        stage.fake.plan(|_, write| if write.row.state == State::Held { Fate::IsLate } else { Fate::Arrives });
        assert_eq!(guard.lost().await, LossReason::Lapsed);
        assert!(!guard.is_valid());
        let other = stage.locks().write("alice").await.unwrap();
        assert!(stage.fake.deliver() > 0);
        assert!(!stage.states().contains(&State::Held) || other.is_valid());
        assert_eq!(guard.unlock().await.unwrap(), Unlocked::WasLost);
        assert!(other.is_valid());
    })
    .await;
}

/// Hole 21 and the release that names the key only: an old guard's release does not touch the new grant.
#[tokio::test(start_paused = true)]
async fn the_release_of_a_lost_lock_leaves_the_next_one_alone() {
    bounded(async {
        let stage = Stage::new();
        let ylock = client(&stage.fake, &stage.world);
        let locks = ylock.locks("users");
        let old = locks.write("alice").await.unwrap();
        assert_eq!(ylock.revoke("users", "alice").await.unwrap(), 1);
        assert_eq!(old.lost().await, LossReason::Revoked);
        let new = locks.write("alice").await.unwrap();
        assert!(new.token() > old.token());
        assert_eq!(old.unlock().await.unwrap(), Unlocked::WasLost);
        assert!(new.is_valid());
        assert!(stage.locks().try_write("alice").await.unwrap().is_none());
    })
    .await;
}

/// A reader elsewhere that comes after a writer waiting behind its own client's readers stays behind it.
#[tokio::test(start_paused = true)]
async fn a_writer_behind_its_own_readers_is_seen_elsewhere() {
    bounded(async {
        let stage = Stage::new();
        let (here, there) = (stage.locks(), stage.locks());
        let reader = here.read("alice").await.unwrap();
        let writer = tokio::spawn({
            let here = here.clone();
            async move { here.write("alice").await.unwrap() }
        });
        until("the row shows who waits behind it", || {
            let seen = stage.fake.seen(&stage.key);
            seen.rows.iter().any(|seen| seen.row.as_ref().is_some_and(|row| row.next.is_some()))
        })
        .await;
        assert!(there.try_read("alice").await.unwrap().is_none());
        assert!(!writer.is_finished());
        drop(reader);
        assert_eq!(writer.await.unwrap().mode(), Mode::Write);
    })
    .await;
}

/// The token of a grant is in the store before anybody can need it: in the holder's row, and after the release in the
/// last holder's cell, also when the release had to be sent several times.
#[tokio::test(start_paused = true)]
async fn a_used_token_is_never_out_of_sight() {
    bounded(async {
        let stage = Stage::new();
        let mut releases = 0;
        stage.fake.plan(move |_, write| {
            releases += u32::from(write.row.state == State::Idle);
            if write.row.state == State::Idle && releases < 4 { Fate::ArrivesUnheard } else { Fate::Arrives }
        });
        let guard = stage.locks().write("alice").await.unwrap();
        let token = guard.token().unwrap();
        let claim = stage.fake.seen(&stage.key).rows[0].claim.unwrap();
        assert_eq!(ylock_core::Token::from(claim.token), token);
        guard.unlock().await.unwrap();
        assert_eq!(stage.fake.seen(&stage.key).last_write, Some(claim.token));
    })
    .await;
}

/// A release that never arrived is superseded by the next acquisition of the same client. Its token goes with that.
#[tokio::test(start_paused = true)]
async fn a_token_whose_release_got_lost_is_saved_by_the_next_write() {
    bounded(async {
        let stage = Stage::new();
        let (engine, request) = stage.contestant();
        let first = engine.acquire(&request).await.unwrap().unwrap();
        stage.fake.plan(|_, write| if write.used.is_some() { Fate::IsLate } else { Fate::Arrives });
        engine.release(&stage.key, request.id, None).await.unwrap_err();
        assert_eq!(stage.fake.seen(&stage.key).last_write, None, "the release is late");
        stage.fake.plan(|_, _| Fate::Arrives);
        engine.acquire(&stage.again(&request)).await.unwrap().unwrap();
        assert_eq!(stage.fake.seen(&stage.key).last_write, first.token);
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

/// Hole 13, the other half: a renewal that was sent in time and heard too late. The row may have been gone in between, and
/// somebody else inside.
#[tokio::test(start_paused = true)]
async fn a_renewal_that_is_heard_too_late_is_a_loss() {
    bounded(async {
        let stage = Stage::new();
        let (engine, request) = stage.contestant();
        let grant = engine.acquire(&request).await.unwrap().unwrap();
        stage.fake.plan(|_, write| match write.row.state {
            State::Held => Fate::IsHeardAfter(LEASE),
            _ => Fate::Arrives,
        });
        let renewed = engine.renew(&[Holding { grant, next: None }]).await.remove(0).unwrap();
        assert!(matches!(renewed, Renewal::Lost(LossReason::Lapsed)), "{renewed:?}");
        engine.release(&stage.key, request.id, None).await.unwrap();
        assert_eq!(stage.states(), [State::Idle], "it does not stand in the way");
    })
    .await;
}

/// Whoever loses a lock is told before anybody else can get in: a renewal that finds out writes nothing.
#[tokio::test(start_paused = true)]
async fn a_lost_lock_is_not_given_away_before_its_holder_knows() {
    bounded(async {
        let stage = Stage::new();
        let (engine, request) = stage.contestant();
        let grant = engine.acquire(&request).await.unwrap().unwrap();
        assert!(engine.revoke(&stage.key, request.id).await.unwrap());
        let renewed = engine.renew(&[Holding { grant, next: None }]).await.remove(0).unwrap();
        assert!(matches!(renewed, Renewal::Lost(LossReason::Revoked)), "{renewed:?}");
        assert_eq!(stage.states(), [State::Claimed]);
    })
    .await;
}

/// A look that took so long that the claim may have expired since lets nobody in: the claim is shown again first.
#[tokio::test(start_paused = true)]
async fn nobody_enters_with_a_look_that_is_too_old() {
    bounded(async {
        let stage = Stage::new();
        let (engine, request) = stage.contestant();
        stage.fake.slow_read(LEASE);
        let grant = engine.acquire(&request).await.unwrap().unwrap();
        assert!(stage.world.now().since(grant.sent) < LEASE / 2, "valid when it is granted");
    })
    .await;
}

/// "Exactly one" was not enough: nobody else in the main row does not mean that I am.
#[tokio::test(start_paused = true)]
async fn nobody_enters_whose_claim_is_not_there() {
    bounded(async {
        let stage = Stage::new();
        let (engine, request) = stage.contestant();
        stage.fake.slow_read(Duration::from_secs(1));
        let acquiring = tokio::spawn(async move { engine.acquire(&request).await.unwrap().unwrap() });
        stage.until(State::Claimed, 1).await;
        stage.fake.expire(&stage.key);
        acquiring.await.unwrap();
        assert_eq!(stage.states(), [State::Claimed], "the claim was shown again before it was relied on");
        assert!(stage.locks().try_write("alice").await.unwrap().is_none());
    })
    .await;
}

/// A newcomer that claims and withdraws leaves no token behind that the first waiter would have to exceed.
#[tokio::test(start_paused = true)]
async fn a_withdrawn_token_pushes_nobody_into_another_round() {
    bounded(async {
        let stage = Stage::new();
        let (holder, held) = stage.contestant();
        let last = holder.acquire(&held).await.unwrap().unwrap().token;
        for _ in 0..3 {
            let (engine, request) = stage.contestant();
            let waiting = tokio::spawn(async move { engine.acquire(&request).await });
            let waits = stage.states().len();
            until("it has claimed or withdrawn, and waits", || stage.states().len() > waits).await;
            tokio::time::sleep(LEASE / 10).await;
            waiting.abort();
        }
        let seen = stage.fake.seen(&stage.key);
        let waiting =
            seen.rows.iter().filter(|seen| seen.row.as_ref().is_some_and(|row| row.state == State::Waiting));
        let tokens: Vec<_> = waiting.filter_map(|seen| seen.claim).map(|claim| Some(claim.token)).collect();
        assert_eq!(tokens.len(), 3, "all have claimed and withdrawn: {seen:?}");
        assert!(tokens.iter().all(|token| *token < last), "{seen:?}");
    })
    .await;
}

/// A lease that leaves no time for a second request is refused, not granted and lost.
#[tokio::test(start_paused = true)]
async fn a_lease_shorter_than_three_requests_is_refused() {
    bounded(async {
        let stage = Stage::new();
        let options = ylock_core::Options::default().with_lease(Duration::from_secs(2));
        let error = stage.locks().with_options(options).write("alice").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains("request timeout"), "{error}");
    })
    .await;
}
