//! Waiters, and how they enter.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;
use ylock_core::engine::{Engine, Grant, Holding, Patience, Request};
use ylock_core::environment::Environment;
use ylock_core::{ErrorKind, Mode, Result};
use ylock_engine_cassandra::algorithm::store::State;
use ylock_engine_cassandra::{CassandraEngine, CassandraOptions};
use ylock_testkit::an_outage_is_told_as_one;

use crate::fake::{Fate, LEASE, World, client};
use crate::fixture::{Fixture, bounded, until};

/// Hole 2: the thesis renews only after success, so a client that waits for longer than the TTL falls out of the queue.
#[tokio::test(start_paused = true)]
async fn a_waiter_outlives_many_leases() {
    bounded(async {
        let fixture = Fixture::new();
        let holder = fixture.locks().write("alice").await.unwrap();
        let waiter = tokio::spawn({
            let locks = fixture.locks();
            async move { locks.write("alice").await.unwrap() }
        });
        // More often than a waiter looks, so that no gap in its presence is missed.
        for _ in 0..2_000 {
            tokio::time::sleep(LEASE / 200).await;
            assert_eq!(fixture.states().iter().filter(|state| **state != State::Idle).count(), 2);
        }
        drop(holder);
        assert!(waiter.await.unwrap().is_valid());
    })
    .await;
}

/// The first look shows a waiter whose clock is ahead: the own place is given up for one behind it.
#[tokio::test(start_paused = true)]
async fn a_slow_clock_does_not_overtake() {
    bounded(async {
        let fixture = Fixture::new();
        let fast = World::new();
        fast.step(10_000_000);
        let holder = fixture.locks().write("alice").await.unwrap();
        let queue_up =
            |locks: ylock_core::Locks| tokio::spawn(async move { locks.write("alice").await.unwrap() });
        let first = queue_up(client(&fixture.fake, &fast).locks("users"));
        until("the first one waits", || fixture.states().len() == 2).await;
        let second = queue_up(fixture.locks());
        until("the second one waits", || fixture.states().contains(&State::Waiting)).await;
        assert!(holder.unlock().await.unwrap().is_released());
        let inside = first.await.unwrap();
        assert!(!second.is_finished());
        drop(inside);
        assert!(second.await.unwrap().is_valid());
    })
    .await;
}

/// A reader elsewhere that comes after a writer waiting behind its own client's readers stays behind it.
#[tokio::test(start_paused = true)]
async fn a_writer_behind_its_own_readers_is_seen_elsewhere() {
    bounded(async {
        let fixture = Fixture::new();
        let (here, there) = (fixture.locks(), fixture.locks());
        let reader = here.read("alice").await.unwrap();
        let writer = tokio::spawn({
            let here = here.clone();
            async move { here.write("alice").await.unwrap() }
        });
        until("the row shows the waiter behind it", || {
            let seen = fixture.fake.seen(&fixture.key);
            seen.rows.iter().any(|seen| seen.row.as_ref().is_some_and(|row| row.next.is_some()))
        })
        .await;
        assert!(there.read("alice").now().await.unwrap().is_none());
        assert!(!writer.is_finished());
        drop(reader);
        assert_eq!(writer.await.unwrap().mode(), Mode::Write);
    })
    .await;
}

/// A withdrawal that is still on its way would take the claim away from under a holder that entered meanwhile.
#[tokio::test(start_paused = true)]
async fn nobody_enters_over_its_own_late_withdrawal() {
    bounded(async {
        let fixture = Fixture::new();
        let late = Arc::new(AtomicBool::new(true));
        // From the first waiting row on that follows a claim, withdrawals of the second client are late.
        let mut claimed = std::collections::HashSet::new();
        let is_late = late.clone();
        fixture.fake.plan(move |slot, write| match write.row.state {
            State::Claimed => {
                claimed.insert(slot);
                Fate::Arrives
            }
            State::Waiting if claimed.contains(&slot) && is_late.load(Ordering::Relaxed) => Fate::IsLate,
            _ => Fate::Arrives,
        });
        let first = fixture.locks().write("alice").await.unwrap();
        let second = tokio::spawn({
            let locks = fixture.locks();
            async move { locks.write("alice").await.unwrap() }
        });
        // The second one claims, sees the first one's claim, and withdraws; then the first one leaves.
        fixture.until(State::Claimed, 2).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(first.unlock().await.unwrap().is_released());
        tokio::time::sleep(Duration::from_millis(500)).await;
        let entered_early = second.is_finished();
        late.store(false, Ordering::Relaxed);
        let guard = second.await.unwrap();
        fixture.fake.deliver();
        assert!(!entered_early, "entered while its withdrawal was on its way");
        assert!(
            fixture.states().contains(&State::Claimed) || fixture.states().contains(&State::Held),
            "{:?}",
            fixture.states()
        );
        assert!(fixture.locks().write("alice").now().await.unwrap().is_none());
        drop(guard);
    })
    .await;
}

/// It has claimed by the look that showed the holder, and the next look shows that the holder has left.
#[tokio::test(start_paused = true)]
async fn one_that_claims_behind_a_holder_has_waited() {
    bounded(async {
        let fixture = Fixture::new();
        let (holder, held) = fixture.contestant();
        let grant = holder.acquire(&held).await.unwrap().unwrap();
        holder.renew(&[Holding::new(grant, None)]).await.remove(0).unwrap();
        let (engine, request) = fixture.contestant();
        // So it knows of others, and does not claim before it looks.
        let tries = fixture.again(&request).with_patience(Patience::Try);
        assert!(engine.acquire(&tries).await.unwrap().is_none());
        fixture.fake.plan(|_, write| match write.row.state {
            State::Claimed => Fate::IsHeardAfter(LEASE / 100),
            _ => Fate::Arrives,
        });
        let waiting = tokio::spawn(async move { engine.acquire(&request).await.unwrap().unwrap() });
        fixture.until(State::Claimed, 1).await;
        holder.release(&fixture.key, held.id, None).await.unwrap();
        assert!(waiting.await.unwrap().waited);
    })
    .await;
}

/// A look that took so long that the claim may have expired since lets no contender in: the claim is shown again first.
#[tokio::test(start_paused = true)]
async fn nobody_enters_with_a_look_that_is_too_old() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        fixture.fake.slow_read(LEASE);
        let grant = engine.acquire(&request).await.unwrap().unwrap();
        assert!(fixture.world.now().since(grant.sent) < LEASE / 2, "valid when it is granted");
    })
    .await;
}

/// Starts a try whose second look, by which it enters, takes this long.
fn try_that_looks_for(time: Duration, fixture: &Fixture) -> JoinHandle<Option<Grant>> {
    let (engine, request) = fixture.contestant();
    fixture.fake.slow_read(time);
    fixture.fake.slow_read(Duration::from_millis(1));
    tokio::spawn(async move { engine.acquire(&request.with_patience(Patience::Try)).await.unwrap() })
}

/// Nor does a try.
#[tokio::test(start_paused = true)]
async fn a_try_does_not_enter_with_a_look_that_is_too_old() {
    bounded(async {
        let fixture = Fixture::new();
        let grant = try_that_looks_for(LEASE, &fixture).await.unwrap().unwrap();
        assert!(fixture.world.now().since(grant.sent) < LEASE / 2, "valid when it is granted");
    })
    .await;
}

/// While it looked, its row expired, and another client was inside with a larger token and has left.
#[tokio::test(start_paused = true)]
async fn a_try_whose_token_has_become_too_small_claims_again() {
    bounded(async {
        let fixture = Fixture::new();
        let trying = try_that_looks_for(Duration::from_secs(1), &fixture);
        fixture.until(State::Claimed, 1).await;
        fixture.fake.expire(&fixture.key);
        let (other, theirs) = fixture.contestant();
        let grant = other.acquire(&theirs).await.unwrap().unwrap();
        other.release(&fixture.key, theirs.id, None).await.unwrap();
        assert!(trying.await.unwrap().expect("it is free").token > grant.token);
    })
    .await;
}

/// Starts a try, and another client that came later, has claimed as well and does nothing more.
async fn try_beside_a_later_claim(fixture: &Fixture) -> (Trying, CassandraEngine, Request) {
    let (engine, request) = fixture.contestant();
    fixture.fake.slow_read(Duration::from_secs(1));
    fixture.fake.slow_read(Duration::from_millis(1));
    let trying = tokio::spawn(async move { engine.acquire(&request.with_patience(Patience::Try)).await });
    fixture.until(State::Claimed, 1).await;
    let (later, claims) = fixture.contestant();
    {
        let mut claiming = pin!(later.acquire(&claims));
        let until = fixture.until(State::Claimed, 2);
        tokio::select! {
            biased;
            () = until => {}
            _ = &mut claiming => panic!("it entered beside the try"),
        }
    }
    (trying, later, claims)
}

type Trying = JoinHandle<Result<Option<Grant>>>;

/// The client that came later is slow: nobody but the first is left to enter, so it must not give up before.
#[tokio::test(start_paused = true)]
async fn a_try_that_is_first_gets_in_however_late_the_others_give_way() {
    bounded(async {
        let fixture = Fixture::new();
        let (trying, later, claims) = try_beside_a_later_claim(&fixture).await;
        // Longer than a request may take.
        tokio::time::sleep(LEASE.mul_f64(0.3)).await;
        assert!(!trying.is_finished(), "the lock is not held");
        later.release(&fixture.key, claims.id, None).await.unwrap();
        let grant = trying.await.unwrap().unwrap().expect("it is free");
        assert!(fixture.world.now().since(grant.sent) < LEASE / 2, "valid when it is granted");
    })
    .await;
}

/// The contender that came later died before it gave way, or entered: which of the two is unknown, so "held" would be a guess.
#[tokio::test(start_paused = true)]
async fn a_try_beside_a_claim_that_stays_is_told_so() {
    bounded(async {
        let fixture = Fixture::new();
        let began = fixture.world.now();
        let (trying, _later, _) = try_beside_a_later_claim(&fixture).await;
        let error = trying.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("has claimed the lock"), "{error}");
        let took = fixture.world.now().since(began);
        assert!(LEASE / 3 < took && took < LEASE / 2, "not before a holder would have renewed: {took:?}");
        let reads = fixture.fake.reads.load(Ordering::Relaxed);
        assert!(reads < 200, "{reads} looks: no pause between them");
    })
    .await;
}

/// A client with a faster clock has entered while the claim of the first was on its way. Its row says so at its renewal.
#[tokio::test(start_paused = true)]
async fn a_try_that_is_first_is_refused_when_a_later_claim_turns_out_to_be_inside() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        let request = request.with_ticket(engine.ticket()).with_patience(Patience::Try);
        fixture.fake.plan(|_, _| Fate::IsLate);
        engine.acquire(&request).await.unwrap_err();
        fixture.fake.plan(|_, _| Fate::Arrives);
        let (inside, held) = fixture.contestant();
        let grant = inside.acquire(&held).await.unwrap().expect("it is free");
        let trying = tokio::spawn(async move { engine.acquire(&request).await.unwrap() });
        fixture.until(State::Claimed, 2).await;
        tokio::time::sleep(LEASE / 3).await;
        assert!(!trying.is_finished(), "nothing says that it is held");
        inside.renew(&[Holding::new(grant, None)]).await.remove(0).unwrap();
        assert!(trying.await.unwrap().is_none());
    })
    .await;
}

/// "Exactly one" was not enough: that no other client is in the main row does not mean that I am.
#[tokio::test(start_paused = true)]
async fn nobody_enters_whose_claim_is_not_there() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        fixture.fake.slow_read(Duration::from_secs(1));
        let acquiring = tokio::spawn(async move { engine.acquire(&request).await.unwrap().unwrap() });
        fixture.until(State::Claimed, 1).await;
        fixture.fake.expire(&fixture.key);
        acquiring.await.unwrap();
        assert_eq!(fixture.states(), [State::Claimed], "the claim was shown again before it was relied on");
        assert!(fixture.locks().write("alice").now().await.unwrap().is_none());
    })
    .await;
}

/// A newcomer that claims and withdraws leaves no token behind that the first waiter would have to exceed.
#[tokio::test(start_paused = true)]
async fn a_withdrawn_token_pushes_nobody_into_another_round() {
    bounded(async {
        let fixture = Fixture::new();
        let (holder, held) = fixture.contestant();
        let last = holder.acquire(&held).await.unwrap().unwrap().token;
        for _ in 0..3 {
            let (engine, request) = fixture.contestant();
            let waiting = tokio::spawn(async move { engine.acquire(&request).await });
            let waits = fixture.states().len();
            until("it has claimed or withdrawn, and waits", || fixture.states().len() > waits).await;
            tokio::time::sleep(LEASE / 10).await;
            waiting.abort();
        }
        let seen = fixture.fake.seen(&fixture.key);
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
        let fixture = Fixture::new();
        let options = ylock_core::Options::default().with_lease(Duration::from_secs(2));
        let error = fixture.locks().with_options(options).write("alice").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains("request timeout"), "{error}");
    })
    .await;
}

/// However many outages there are, as long as the store answers in between.
#[tokio::test(start_paused = true)]
async fn a_waiter_bears_every_outage_that_is_shorter_than_a_lease() {
    bounded(async {
        let fixture = Fixture::new();
        // A lease that outlives the outages, and what they do to its renewals.
        let options = ylock_core::Options::default().with_lease(LEASE * 20);
        let holder = fixture.locks().with_options(options).write("alice").await.unwrap();
        let (engine, request) = fixture.contestant();
        let waiter = tokio::spawn(async move { engine.acquire(&request).await });
        fixture.until(State::Claimed, 2).await;
        for _ in 0..4 {
            fixture.fake.is_away(true);
            tokio::time::sleep(LEASE * 7 / 10).await;
            fixture.fake.is_away(false);
            tokio::time::sleep(LEASE / 2).await;
        }
        assert!(!waiter.is_finished());
        assert!(holder.unlock().await.unwrap().is_released());
        waiter.await.unwrap().unwrap().unwrap();
    })
    .await;
}

/// A waiter bears at most one lease without any answer.
#[tokio::test(start_paused = true)]
async fn a_waiter_whose_store_is_away_for_a_lease_is_told() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        fixture.fake.is_away(true);
        let began = fixture.world.now();
        let error = engine.acquire(&request).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let borne = fixture.world.now().since(began);
        assert!(borne >= LEASE && borne < LEASE * 3 / 2, "{borne:?}");
    })
    .await;
}

/// As where an operator has deleted it with a timestamp in the future: to write it again and again would be of no use.
#[tokio::test(start_paused = true)]
async fn a_waiter_whose_row_is_never_shown_is_told_after_a_lease() {
    bounded(async {
        let fixture = Fixture::new();
        fixture.fake.plan(|_, _| Fate::IsHidden);
        let (engine, request) = fixture.contestant();
        let began = fixture.world.now();
        let error = engine.acquire(&request).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("looks do not show the row"), "{error}");
        let (took, looks) = (fixture.world.now().since(began), fixture.fake.reads.load(Ordering::Relaxed));
        assert!((LEASE..LEASE * 3 / 2).contains(&took) && looks < 100, "{looks} looks in {took:?}");
    })
    .await;
}

/// A pause is half a second at most, and by chance a tenth longer, however long the holder was inside.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_long_hold_is_found_within_a_pause() {
    bounded(async {
        let fixture = Fixture::new();
        let holder = fixture.locks().write("alice").await.unwrap();
        let (engine, request) = fixture.contestant();
        let waiter = tokio::spawn(async move { engine.acquire(&request).await.unwrap().unwrap() });
        for round in 1..=20 {
            // At another moment of the waiter's pauses each time.
            tokio::time::sleep(LEASE * 3 + Duration::from_millis(37 * round)).await;
            assert!(!waiter.is_finished());
            if round == 20 {
                break;
            }
        }
        assert!(holder.unlock().await.unwrap().is_released());
        let left = fixture.world.now();
        waiter.await.unwrap();
        let found = fixture.world.now().since(left);
        assert!(found < Duration::from_millis(560), "{found:?}");
    })
    .await;
}

/// Three times in a lease it shows itself again, and it looks about every half a second: not as rarely as its row just lives, and not all
/// the time once that is late.
#[tokio::test(start_paused = true)]
async fn a_waiter_shows_itself_three_times_in_a_lease_and_does_not_look_all_the_time() {
    bounded(async {
        let fixture = Fixture::new();
        let (holder, held) = fixture.contestant();
        holder.acquire(&held.with_lease(LEASE * 100)).await.unwrap().unwrap();
        let (engine, request) = fixture.contestant();
        let waiter = tokio::spawn(async move { engine.acquire(&request).await });
        // Until its pauses have grown to half a second.
        tokio::time::sleep(LEASE).await;
        let count = || [&fixture.fake.writes, &fixture.fake.reads].map(|count| count.load(Ordering::Relaxed));
        let before = count();
        tokio::time::sleep(LEASE * 10).await;
        let [writes, reads] = [0, 1].map(|index| count()[index] - before[index]);
        assert!((29..=35).contains(&writes), "{writes} writes in ten leases");
        assert!(reads < 10 * 30, "{reads} looks in ten leases");
        waiter.abort();
    })
    .await;
}

/// A wait that ends while nothing is answered does not say that others hold the lock.
#[tokio::test(start_paused = true)]
async fn a_wait_for_a_store_that_is_away_is_no_wait_for_a_lock() {
    bounded(async {
        let fixture = Fixture::new();
        let ylock = client(&fixture.fake, &fixture.world);
        fixture.fake.is_away(true);
        an_outage_is_told_as_one(&ylock, "users", CassandraOptions::new("fake").request_timeout()).await;
    })
    .await;
}
