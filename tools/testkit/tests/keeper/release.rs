//! Giving back while a waiter of the same client waits: the request that follows is named in the release, and is undone if it does not come
//! to it.

#![allow(clippy::disallowed_methods, reason = "a test stands outside: it looks at time")]

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use ylock_core::{Error, ErrorKind, Fairness, Guard, MemoryStore, Options, Result, Ylock};
use ylock_testkit::{Call, LosesReplies, Slow, eventually, poll_once};

use crate::support::{Asked, Notes, over};

const SOON: Duration = Duration::from_secs(1);
const LEASE: Duration = Duration::from_secs(10);

/// A client that hands nothing over, so that each release names the request that follows.
fn strict(ylock: &Ylock) -> Ylock {
    ylock.with_options(Options::default().with_fairness(Fairness::Strict))
}

async fn write(ylock: &Ylock) -> Guard {
    timeout(SOON, ylock.lock("group", "name").write()).await.expect("granted soon").unwrap()
}

fn away() -> Error {
    Error::new(ErrorKind::Unavailable, "the store is away")
}

#[tokio::test(start_paused = true)]
async fn a_release_that_is_given_up_undoes_what_was_to_follow() {
    let store = MemoryStore::new();
    let notes = Notes::over(store.engine(), |asked| match asked {
        Asked::Release(_, Some(_)) => Err(away()),
        _ => Ok(()),
    });
    let ylock = strict(&Ylock::from_arc(notes.clone()));
    let (guard, lock) = (write(&ylock).await, ylock.lock("group", "name"));
    let mut next = Box::pin(lock.write());
    assert!(poll_once(next.as_mut()).await.is_none());
    drop(guard);
    let error = timeout(LEASE * 2, next).await.expect("it ends").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    eventually(SOON, "nothing is left", || async { ylock.keys_in_use() == 0 }).await;
    let mut releases = notes.0.releases();
    let (followed, nothing) = releases.pop().unwrap();
    assert!(releases.len() >= 3 && nothing.is_none(), "{releases:?}");
    assert!(releases.iter().all(|release| *release == (releases[0].0, Some(followed))), "{releases:?}");
    drop(write(&ylock).await);
}

/// Every release arrives, and no answer to it. The request that follows has been let in long before the release is given up.
#[tokio::test(start_paused = true)]
async fn what_followed_is_not_left_inside_when_all_answers_get_lost() {
    let store = MemoryStore::new();
    let lost = Arc::new(LosesReplies::of(Call::Release, 1_000));
    let ylock = strict(&over(&store, &lost));
    let (guard, lock) = (write(&ylock).await, ylock.lock("group", "name"));
    let mut next = Box::pin(lock.write());
    assert!(poll_once(next.as_mut()).await.is_none());
    drop(guard);
    assert!(timeout(LEASE * 2, next).await.expect("it ends").is_err());
    eventually(SOON, "it is undone", || async { store.is_empty() }).await;
    drop(write(&Ylock::new(store.engine())).await);
}

#[tokio::test(start_paused = true)]
async fn somebody_who_stops_waiting_while_a_release_names_it_leaves_the_store() {
    let store = MemoryStore::new();
    let slow = Arc::new(Slow::new(Duration::from_millis(40), Duration::from_millis(60)));
    let ylock = strict(&over(&store, &slow));
    for millis in [0, 20, 50, 99, 101, 130] {
        let (guard, lock) = (write(&ylock).await, ylock.lock("group", "name"));
        let mut next = Box::pin(lock.write());
        assert!(poll_once(next.as_mut()).await.is_none());
        drop(guard);
        assert!(timeout(Duration::from_millis(millis), next).await.is_err());
        eventually(SOON, "nothing is left", || async { ylock.keys_in_use() == 0 && store.is_empty() }).await;
    }
}

/// A caller that only tries behind a release which the store does not answer has its answer with the next failure, and not when the lease
/// ends.
#[tokio::test(start_paused = true)]
async fn a_try_behind_a_release_that_fails_does_not_wait_for_the_end_of_the_lease() {
    let refuses_releases = |asked: &Asked| match asked {
        Asked::Release(..) => Err(Error::new(ErrorKind::Unavailable, "no answer")),
        _ => Ok(()),
    };
    let ylock = Ylock::from_arc(Notes::over(MemoryStore::new().engine(), refuses_releases));
    let lock = ylock.lock("users", "alice");
    drop(lock.write().await.unwrap());
    let began = tokio::time::Instant::now();
    let error = lock.write().now().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(began.elapsed() < lock.options().lease() / 4, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_given_back_is_not_said_to_be_lost() {
    let guard = write(&Ylock::in_memory()).await;
    let lease = guard.lease();
    lease.check().unwrap();
    drop(guard);
    let error = lease.check().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert!(error.to_string().contains("given back"), "{error}");
}

/// What a store says that refuses releases because of its set-up.
fn refuses_releases(asked: &Asked) -> Result<()> {
    match asked {
        Asked::Release(..) => Err(Error::new(ErrorKind::Config, "the user may not write any more")),
        _ => Ok(()),
    }
}

/// The right may be given back; but that is no reason to keep a program that ends for a lease.
#[tokio::test(start_paused = true)]
async fn a_release_that_the_store_refuses_is_tried_on_until_the_client_closes() {
    let notes = Notes::over(MemoryStore::new().engine(), refuses_releases);
    let long = Options::default().with_lease(Duration::from_secs(3_600));
    let ylock = Ylock::from_arc(notes.clone()).with_options(long);
    let mut unlocking = Box::pin(write(&ylock).await.unlock());
    assert!(timeout(LEASE, unlocking.as_mut()).await.is_err(), "it is tried on");
    let tried = notes.0.releases().len();
    assert!(tried > 5, "{tried}");
    let began = tokio::time::Instant::now();
    ylock.close().await;
    assert!(began.elapsed() < LEASE, "{:?}", began.elapsed());
    let error = unlocking.await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Indeterminate);
    assert!(error.to_string().contains("refuses the release"), "{error}");
}

/// A server that is away may be back the next moment, and then the lock is free for others at once.
#[tokio::test(start_paused = true)]
async fn a_client_that_closes_waits_for_a_release_that_is_not_answered() {
    let asked = Notes::over(MemoryStore::new().engine(), |asked| match asked {
        Asked::Release(..) => Err(away()),
        _ => Ok(()),
    });
    let ylock = Ylock::from_arc(asked.clone());
    let guard = write(&ylock).await;
    let began = tokio::time::Instant::now();
    ylock.close().await;
    assert!(began.elapsed() >= LEASE, "{:?}", began.elapsed());
    drop(guard);
}
