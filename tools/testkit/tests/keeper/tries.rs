//! Callers that only try, beside holders and waiters of their own process.

#![allow(clippy::disallowed_methods, reason = "a test stands outside: it looks at time")]

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use ylock_core::{Error, ErrorKind, Fairness, Guard, MemoryStore, Options, Result, Ylock};
use ylock_testkit::{Call, CountsCalls, Faulty, Outage, eventually, poll_once};

use crate::support::{Asked, Gate, Notes, over};

const SOON: Duration = Duration::from_secs(1);

/// Strict callers wait for a look at the waiters elsewhere, however long ago the last one was.
fn strict() -> (Ylock, Options) {
    let options = Options::default().with_fairness(Fairness::Strict);
    (Ylock::new(MemoryStore::new().engine()).with_options(options.clone()), options)
}

async fn refused_at_once(tries: impl Future<Output = Result<Option<Guard>>>) {
    let refused = timeout(Duration::from_millis(1), tries).await;
    assert!(refused.expect("at once").unwrap().is_none());
}

/// No look at the waiters elsewhere can let it in, and none is on its way.
#[tokio::test(start_paused = true)]
async fn a_reader_is_refused_at_once_beside_a_writer_of_its_process() {
    let (ylock, _) = strict();
    let lock = ylock.lock("group", "name");
    let _held = lock.write().await.unwrap();
    sleep(Duration::from_secs(1)).await;
    refused_at_once(lock.read().now()).await;
}

#[tokio::test(start_paused = true)]
async fn a_writer_is_refused_at_once_beside_readers_of_its_process() {
    let (ylock, _) = strict();
    let lock = ylock.lock("group", "name");
    let _held = lock.read().await.unwrap();
    sleep(Duration::from_secs(1)).await;
    refused_at_once(lock.write().now()).await;
}

/// No look at the waiters elsewhere makes the lease longer.
#[tokio::test(start_paused = true)]
async fn a_reader_is_refused_at_once_beside_readers_whose_lease_is_too_short_for_it() {
    let (ylock, options) = strict();
    let _held = ylock.lock("group", "name").read().await.unwrap();
    sleep(Duration::from_secs(1)).await;
    let longer = ylock.lock("group", "name").with_options(options.with_lease(Duration::from_secs(3600)));
    refused_at_once(longer.read().now()).await;
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_may_join_waits_for_a_look_and_no_longer() {
    let counts = Arc::new(CountsCalls::default());
    let ylock = over(&MemoryStore::new(), &counts);
    let lock = ylock.lock("group", "name").with_options(Options::default().with_fairness(Fairness::Strict));
    let held = lock.read().await.unwrap();
    sleep(Duration::from_secs(1)).await;
    let joined = timeout(Duration::from_millis(100), lock.read().now()).await;
    assert_eq!(joined.expect("soon").unwrap().map(|guard| guard.token()), Some(held.token()));
    assert_eq!(counts.of(Call::Renew), 1);
}

/// The look of the first one is on its way when the second one comes, which cannot join at all.
#[tokio::test(start_paused = true)]
async fn an_unfair_reader_that_wants_a_longer_lease_is_not_in_the_way_of_one_that_tries() {
    let (store, gate) = (MemoryStore::new(), Arc::new(Gate::before(Call::Renew)));
    let ylock = over(&store, &gate);
    let strict = Options::default().with_fairness(Fairness::Strict);
    let unfair = Options::default().with_fairness(Fairness::Unfair).with_lease(Duration::from_secs(3600));
    let (lock, longer) =
        (ylock.lock("group", "name").with_options(strict), ylock.lock("group", "name").with_options(unfair));
    let held = lock.read().await.unwrap();
    sleep(Duration::from_secs(1)).await;
    gate.close();
    let mut tries = Box::pin(lock.read().now());
    assert!(poll_once(tries.as_mut()).await.is_none());
    eventually(SOON, "the look is on its way", || async { gate.waiting() == 1 }).await;
    let mut waits = Box::pin(longer.read());
    assert!(poll_once(waits.as_mut()).await.is_none());
    gate.open();
    let joined = timeout(SOON, tries).await.expect("soon").unwrap().expect("it joins");
    drop((joined, held));
    drop(timeout(SOON, waits).await.expect("granted soon").unwrap());
}

/// It has asked for an answer, and waits for no outage to end.
#[tokio::test(start_paused = true)]
async fn a_reader_that_tries_is_told_that_the_store_does_not_answer_its_look() {
    let away = Arc::new(Outage::of(&[Call::Renew]));
    away.end();
    let ylock = over(&MemoryStore::new(), &away);
    let lock = ylock.lock("group", "name").with_options(Options::default().with_fairness(Fairness::Strict));
    let held = lock.read().await.unwrap();
    sleep(Duration::from_secs(1)).await;
    away.begin();
    let error = timeout(SOON, lock.read().now()).await.expect("soon").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    away.end();
    assert!(held.is_valid());
    let joined = timeout(SOON, lock.read()).await.expect("soon").unwrap();
    assert_eq!(joined.token(), held.token());
}

/// Of the look it is not known whether it has happened, and of the try it is.
#[tokio::test(start_paused = true)]
async fn the_unknown_outcome_of_a_look_is_not_that_of_the_one_that_tries() {
    let notes = Notes::over(MemoryStore::new().engine(), |asked| match asked {
        Asked::Renew(_) => Err(Error::new(ErrorKind::Indeterminate, "no answer")),
        _ => Ok(()),
    });
    let strict = Options::default().with_fairness(Fairness::Strict);
    let lock = Ylock::from_arc(notes).lock("group", "name").with_options(strict);
    let _held = lock.read().await.unwrap();
    sleep(Duration::from_secs(1)).await;
    let error = timeout(SOON, lock.read().now()).await.expect("soon").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_on_its_way_goes_on_when_another_caller_comes() {
    let (store, gate) = (MemoryStore::new(), Arc::new(Gate::before(Call::Acquire)));
    let notes = Notes::over(store.engine(), |_| Ok(()));
    let ylock = Ylock::from_arc(Faulty::over(notes.clone(), &gate));
    gate.close();
    let lock = ylock.lock("group", "name");
    let (mut tries, mut waits) = (Box::pin(lock.write().now()), Box::pin(lock.write()));
    assert!(poll_once(tries.as_mut()).await.is_none());
    assert!(poll_once(waits.as_mut()).await.is_none());
    gate.open();
    let guard = timeout(SOON, tries).await.expect("soon").unwrap().expect("it was free");
    assert_eq!((notes.0.acquired().len(), notes.0.releases().len()), (1, 0));
    drop(guard);
    drop(timeout(SOON, waits).await.expect("granted soon").unwrap());
}

/// A waiter was to follow in the trip of the release, and has gone.
#[tokio::test(start_paused = true)]
async fn one_that_tries_does_not_wait_at_the_place_of_one_that_has_gone() {
    let (store, gate) = (MemoryStore::new(), Arc::new(Gate::before(Call::Release)));
    let (here, there) = (over(&store, &gate), Ylock::new(store.engine()));
    let lock = here.lock("group", "name").with_options(Options::default().with_fairness(Fairness::Strict));
    let guard = lock.write().await.unwrap();
    let elsewhere = there.lock("group", "name");
    let mut elsewhere = Box::pin(elsewhere.write());
    assert!(poll_once(elsewhere.as_mut()).await.is_none());
    let mut gone = Box::pin(lock.write());
    assert!(poll_once(gone.as_mut()).await.is_none());
    gate.close();
    drop(guard);
    eventually(SOON, "the release is on its way", || async { gate.waiting() == 1 }).await;
    drop(gone);
    // One that has a place of its own does not take another one's in any case.
    let lock = here.lock("group", "name");
    let mut tries = Box::pin(lock.write().now());
    assert!(poll_once(tries.as_mut()).await.is_none());
    gate.open();
    let held = timeout(SOON, elsewhere).await.expect("granted soon").unwrap();
    assert!(timeout(SOON, tries).await.expect("refused soon").unwrap().is_none());
    assert!(held.is_valid());
}
