//! Locks and waiters with different leases, and requests that are wrong: no caller suffers from those of others.

#![allow(clippy::disallowed_methods, reason = "a test stands outside: it looks at time")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use ylock_core::engine::{Engine, Holding, Renewal};
use ylock_core::{
    Error, ErrorKind, Fairness, Guard, LossReason, MemoryEngine, MemoryStore, Mode, Options, Result, Ylock,
};
use ylock_testkit::{Call, LosesReplies, Outage, Wrapped, Wrapper, eventually, poll_once};

use crate::support::{Asked, Notes, over};

const SOON: Duration = Duration::from_secs(1);
const LEASE: Duration = Duration::from_secs(10);
const DAY: Duration = Duration::from_secs(24 * 3600);
/// A lease, and the pause before the attempt that finds that it is over.
const ABOUT_A_LEASE: Duration = Duration::from_secs(12);

fn lasting(lease: Duration) -> Options {
    Options::default().with_lease(lease)
}

/// A client that has used a lease of a day once, and whose store does not accept releases from now on.
async fn after_a_long_lease() -> (Ylock, Guard) {
    let outage = Arc::new(Outage::of(&[Call::Release, Call::Close]));
    outage.end();
    let ylock = over(&MemoryStore::new(), &outage);
    let long = ylock.lock("group", "long").with_options(lasting(DAY));
    assert!(long.write().await.unwrap().unlock().await.unwrap().is_released());
    let guard = ylock.lock("group", "name").write().await.unwrap();
    outage.begin();
    (ylock, guard)
}

#[tokio::test(start_paused = true)]
async fn an_unlock_takes_as_long_as_the_lease_of_its_own_lock_at_most() {
    let (ylock, guard) = after_a_long_lease().await;
    let start = Instant::now();
    guard.unlock().await.unwrap_err();
    assert!((LEASE..ABOUT_A_LEASE).contains(&start.elapsed()), "{:?}", start.elapsed());
    assert_eq!(ylock.keys_in_use(), 0);
}

#[tokio::test(start_paused = true)]
async fn closing_takes_as_long_as_the_leases_in_use_at_most() {
    let (ylock, guard) = after_a_long_lease().await;
    let start = Instant::now();
    ylock.close().await;
    assert!((LEASE..ABOUT_A_LEASE).contains(&start.elapsed()), "{:?}", start.elapsed());
    assert_eq!(guard.loss(), Some(LossReason::Closed));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_the_engine_refuses_fails_whoever_made_it_and_nobody_else() {
    for kind in [ErrorKind::Config, ErrorKind::Invalid] {
        let store = MemoryStore::new();
        let notes = Notes::over(store.engine(), move |asked| match asked {
            Asked::Acquire(request) if request.lease == DAY => Err(Error::new(kind, "too long a lease")),
            _ => Ok(()),
        });
        let ylock = Ylock::from_arc(notes);
        // Strict: each of them asks for itself.
        let strict = |lease| lasting(lease).with_fairness(Fairness::Strict);
        let good = ylock.lock("group", "name").with_options(strict(LEASE));
        let bad = ylock.lock("group", "name").with_options(strict(DAY));
        let visit = async || drop(good.write().await.unwrap());
        let look = async || drop(good.read().await.unwrap());
        let all = async { tokio::join!(bad.write(), visit(), bad.read(), look(), visit()) };
        let (first, (), third, (), ()) = timeout(LEASE * 2, all).await.expect("no call hangs");
        assert_eq!(first.unwrap_err().kind(), kind);
        assert_eq!(third.err().map(|error| error.kind()), Some(kind));
        assert_eq!(bad.write().now().await.unwrap_err().kind(), kind);
        eventually(SOON, "nothing is left", || async { ylock.keys_in_use() == 0 && store.is_empty() }).await;
    }
}

/// A client whose engine does not take the announcement of a waiter.
fn without_announcements(kind: ErrorKind) -> (Arc<Wrapped<Notes>>, Ylock) {
    let notes = Notes::over(MemoryStore::new().engine(), move |asked| match asked {
        Asked::Renew(holding) if holding.next.is_some() => Err(Error::new(kind, "not this waiter")),
        _ => Ok(()),
    });
    (notes.clone(), Ylock::from_arc(notes))
}

#[tokio::test(start_paused = true)]
async fn an_announcement_that_fails_costs_the_readers_nothing() {
    for kind in [ErrorKind::Config, ErrorKind::Unavailable] {
        let (notes, ylock) = without_announcements(kind);
        let lock = ylock.lock("group", "name");
        let readers = [lock.read().await.unwrap(), lock.read().await.unwrap()];
        let mut writer = Box::pin(lock.write());
        assert!(poll_once(writer.as_mut()).await.is_none());
        for _ in 0..5 {
            sleep(LEASE).await;
            assert!(readers.iter().all(|reader| reader.is_valid()));
        }
        let asked = notes.0.renewals();
        let (named, unnamed): (Vec<_>, Vec<_>) = asked.iter().partition(|holding| holding.next.is_some());
        assert!(named.len() >= 5 && unnamed.len() >= 10, "{} {}", named.len(), unnamed.len());
        drop(readers);
        assert!(timeout(SOON, writer).await.expect("granted soon").unwrap().is_valid());
    }
}

#[tokio::test(start_paused = true)]
async fn an_announcement_that_fails_does_not_keep_a_writer_from_becoming_a_reader() {
    let (notes, ylock) = without_announcements(ErrorKind::Config);
    let lock = ylock.lock("group", "name");
    let guard = lock.write().await.unwrap();
    let mut writer = Box::pin(lock.write());
    assert!(poll_once(writer.as_mut()).await.is_none());
    let reader = timeout(LEASE, guard.downgrade()).await.expect("it does not hang").unwrap();
    assert_eq!(notes.0.renewals().last().unwrap().grant.mode, Mode::Read);
    drop(reader);
    drop(timeout(SOON, writer).await.expect("granted soon").unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_downgrade_whose_answer_got_lost_is_repeated_soon_however_long_the_lease_is() {
    let (store, lost) = (MemoryStore::new(), Arc::new(LosesReplies::of(Call::Renew, 1)));
    let ylock = over(&store, &lost);
    let guard = ylock.lock("group", "name").with_options(lasting(DAY)).write().await.unwrap();
    let reader = timeout(SOON * 2, guard.downgrade()).await.expect("shown soon").unwrap();
    assert!(reader.is_valid() && lost.left() == 0);
}

/// An engine whose renewals prolong nothing: each counts from when the grant counted before.
#[derive(Debug)]
struct Behind {
    inner: MemoryEngine,
    renewals: AtomicUsize,
}

/// More renewals than any schedule makes in a lease. After these the engine says that the lock is gone, so that the test ends.
const TOO_MANY: usize = 1_000;

impl Wrapper for Behind {
    fn inner(&self) -> &dyn Engine {
        &self.inner
    }

    async fn renew(&self, holdings: &[Holding]) -> Vec<Result<Renewal>> {
        let renewals = self.renewals.fetch_add(1, Ordering::Relaxed);
        let answer = |holding: &Holding| match renewals {
            TOO_MANY.. => Renewal::Lost(LossReason::Gone),
            _ => Renewal::Renewed { sent: holding.grant.sent, contended: false },
        };
        holdings.iter().map(|holding| Ok(answer(holding))).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn renewals_that_prolong_nothing_are_a_twelfth_of_the_lease_apart() {
    let behind = Behind { inner: MemoryStore::new().engine(), renewals: AtomicUsize::new(0) };
    let behind = Arc::new(Wrapped(behind));
    let ylock = Ylock::from_arc(Arc::clone(&behind) as _).with_options(lasting(LEASE));
    let guard = ylock.lock("group", "name").write().await.unwrap();
    assert_eq!(timeout(LEASE, guard.lost()).await.expect("the lease is over"), LossReason::Lapsed);
    let renewals = behind.0.renewals.load(Ordering::Relaxed);
    assert!((5..=8).contains(&renewals), "{renewals}");
}

/// An engine that may not show a new mode before it is told to, and renews grants in the mode that they have until then.
#[derive(Debug)]
struct Keeps {
    inner: MemoryEngine,
    may_show: AtomicBool,
    asked: AtomicUsize,
}

impl Wrapper for Keeps {
    fn inner(&self) -> &dyn Engine {
        &self.inner
    }

    async fn renew(&self, holdings: &[Holding]) -> Vec<Result<Renewal>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.may_show.load(Ordering::Relaxed) {
            return self.inner.renew(holdings).await;
        }
        let as_before =
            holdings.iter().map(|holding| Holding::new(holding.grant.clone().with_mode(Mode::Write), None));
        let kept = |answer| match answer {
            Renewal::Renewed { sent, .. } => Renewal::Kept { sent },
            answer => answer,
        };
        let answers = self.inner.renew(&as_before.collect::<Vec<_>>()).await;
        answers.into_iter().map(|answer| answer.map(kept)).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_downgrade_that_the_store_may_not_show_yet_is_asked_for_again_soon_and_costs_no_lock() {
    for lease in [LEASE, DAY] {
        let (inner, may_show) = (MemoryStore::new().engine(), AtomicBool::new(false));
        let keeps = Arc::new(Wrapped(Keeps { inner, may_show, asked: AtomicUsize::new(0) }));
        let ylock = Ylock::from_arc(Arc::clone(&keeps) as _).with_options(lasting(lease));
        let guard = ylock.lock("group", "name").write().await.unwrap();
        let kept = guard.lease();
        let mut downgraded = Box::pin(guard.downgrade());
        assert!(poll_once(downgraded.as_mut()).await.is_none(), "the store does not show it");
        sleep(LEASE / 10).await;
        let strict = ylock.lock("group", "name").with_options(lasting(lease).with_fairness(Fairness::Strict));
        let tried = timeout(SOON * 3, strict.read().now()).await.expect("a try is answered").unwrap();
        assert!(tried.is_none(), "no reader goes before those of others");
        let mut reader = Box::pin(strict.read());
        assert!(timeout(LEASE * 3, &mut reader).await.is_err(), "nor one that waits");
        drop(reader);
        assert!(kept.loss().is_none(), "it is renewed");
        let asked = keeps.0.asked.load(Ordering::Relaxed);
        assert!((20..=50).contains(&asked), "asked {asked} times in {:?}", LEASE * 3);
        keeps.0.may_show.store(true, Ordering::Relaxed);
        let reader = timeout(SOON * 2, downgraded).await.expect("shown soon").unwrap();
        assert!(reader.is_valid());
    }
}
