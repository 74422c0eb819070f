//! Giving back while a waiter of the same client waits: the request that follows is named in the release, and is undone if it does not come
//! to it.

#![allow(clippy::disallowed_methods, reason = "a test stands outside: it looks at time")]

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use ylock_core::{Error, ErrorKind, Fairness, Guard, MemoryStore, Options, Ylock};
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
    let ylock = strict(&Ylock::over(notes.clone()));
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
    let ylock = Ylock::over(Notes::over(MemoryStore::new().engine(), refuses_releases));
    let lock = ylock.lock("users", "alice");
    drop(lock.write().await.unwrap());
    let began = tokio::time::Instant::now();
    let error = lock.try_write().await.unwrap_err();
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
