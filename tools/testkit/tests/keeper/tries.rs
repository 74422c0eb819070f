//! Callers that only try, beside holders of their own process.

#![allow(clippy::disallowed_methods, reason = "a test stands outside: it looks at time")]

use std::time::Duration;

use tokio::time::{sleep, timeout};
use ylock_core::{Fairness, MemoryStore, Options, Ylock};

/// Strict callers wait for a look at the waiters elsewhere, however long ago the last one was.
fn strict() -> (Ylock, Options) {
    let options = Options::default().with_fairness(Fairness::Strict);
    (Ylock::new(MemoryStore::new().engine()).with_options(options.clone()), options)
}

/// No look at the waiters elsewhere can let it in, and none is on its way.
#[tokio::test(start_paused = true)]
async fn a_reader_is_refused_at_once_beside_a_writer_of_its_process() {
    let (ylock, _) = strict();
    let lock = ylock.lock("group", "name");
    let _held = lock.write().await.unwrap();
    sleep(Duration::from_secs(1)).await;
    let refused = timeout(Duration::from_millis(1), lock.try_read()).await;
    assert!(refused.expect("at once").unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_writer_is_refused_at_once_beside_readers_of_its_process() {
    let (ylock, _) = strict();
    let lock = ylock.lock("group", "name");
    let _held = lock.read().await.unwrap();
    sleep(Duration::from_secs(1)).await;
    let refused = timeout(Duration::from_millis(1), lock.try_write()).await;
    assert!(refused.expect("at once").unwrap().is_none());
}

/// No look at the waiters elsewhere makes the lease longer.
#[tokio::test(start_paused = true)]
async fn a_reader_is_refused_at_once_beside_readers_whose_lease_is_too_short_for_it() {
    let (ylock, options) = strict();
    let _held = ylock.lock("group", "name").read().await.unwrap();
    sleep(Duration::from_secs(1)).await;
    let longer = ylock.lock("group", "name").with_options(options.with_lease(Duration::from_secs(3600)));
    let refused = timeout(Duration::from_millis(1), longer.try_read()).await;
    assert!(refused.expect("at once").unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_may_join_waits_for_a_look_and_no_longer() {
    let (ylock, _) = strict();
    let lock = ylock.lock("group", "name");
    let held = lock.read().await.unwrap();
    sleep(Duration::from_secs(1)).await;
    let joined = timeout(Duration::from_millis(100), lock.try_read()).await;
    assert_eq!(joined.expect("soon").unwrap().map(|guard| guard.token()), Some(held.token()));
}
