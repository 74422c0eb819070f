//! Bounds where a grant or a set has several holders, and where a permit is what is held.

use std::sync::Arc;

use tokio::time::{Instant, sleep, timeout};
use ylock_core::{LossReason, MemoryStore, Options, Unlocked, Ylock};
use ylock_testkit::{Call, CountsCalls};

use super::{LONGEST, SOON, bounded, clients, granted, lock, passed};
use crate::support::over;

#[tokio::test(start_paused = true)]
async fn readers_that_share_a_grant_have_an_end_each() {
    let (here, there) = clients();
    let start = Instant::now();
    let first = granted(lock(&here).read()).await;
    sleep(LONGEST / 2).await;
    let second = granted(lock(&here).read()).await;
    assert_eq!(second.token(), first.token(), "they share it");
    assert_eq!(first.lost().await, LossReason::HeldTooLong);
    passed(LONGEST, start);
    assert!(second.is_valid() && lock(&there).write().now().await.unwrap().is_none());
    assert_eq!(first.unlock().await.unwrap(), Unlocked::WasLost);
    assert!(second.is_valid());
    let next = timeout(LONGEST, lock(&there).write()).await.expect("the second ends as well").unwrap();
    passed(LONGEST + LONGEST / 2, start);
    assert_eq!(second.loss(), Some(LossReason::HeldTooLong));
    drop(next);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_has_no_bound_outlives_one_that_has() {
    let (here, _) = clients();
    let unbounded = lock(&here).with_options(Options::default().without_max_hold());
    let (stays, goes) = (granted(unbounded.read()).await, granted(lock(&here).read()).await);
    goes.lost().await;
    sleep(LONGEST).await;
    assert_eq!(stays.unlock().await.unwrap(), Unlocked::Released);
}

/// The grant is looked at for the end of a hold, and its renewals are as often as without.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_hold_is_no_time_for_a_renewal() {
    let counts = Arc::new(CountsCalls::default());
    let here = over(&MemoryStore::new(), &counts);
    let stays = granted(lock(&here).read()).await;
    let brief = lock(&here).with_options(Options::default().with_max_hold(SOON));
    let goes = granted(brief.read()).await;
    goes.lost().await;
    sleep(SOON).await;
    assert_eq!(counts.of(Call::Renew), 0);
    sleep(Options::DEFAULT_LEASE / 3).await;
    assert_eq!(counts.of(Call::Renew), 1);
    assert!(stays.is_valid());
}

#[tokio::test(start_paused = true)]
async fn each_lock_of_a_set_counts_from_its_own_grant() {
    let (here, there) = clients();
    let held = granted(there.lock("group", "b").write()).await;
    let (set, start) = (here.multi_lock().write("group", "a").write("group", "b"), Instant::now());
    let mut acquiring = Box::pin(set.acquire());
    assert!(timeout(LONGEST / 2, acquiring.as_mut()).await.is_err());
    drop(held);
    let set = timeout(SOON, acquiring).await.expect("both are free").unwrap();
    let (key, reason) = set.lost().await;
    passed(LONGEST, start);
    assert_eq!((key.name(), reason), ("a", LossReason::HeldTooLong));
    assert!(set.get("group", "b").unwrap().is_valid());
}

#[tokio::test(start_paused = true)]
async fn a_set_that_waits_for_longer_gives_back_what_it_has_and_begins_anew() {
    let (here, there) = clients();
    let held = granted(there.lock("group", "b").write()).await;
    let (set, start) = (here.multi_lock().write("group", "a").write("group", "b"), Instant::now());
    let mut acquiring = Box::pin(set.acquire());
    assert!(timeout(SOON, acquiring.as_mut()).await.is_err());
    let wants = there.lock("group", "a");
    let first = tokio::select! {
        biased;
        _ = acquiring.as_mut() => panic!("it has no second lock"),
        first = wants.write() => first.unwrap(),
    };
    passed(LONGEST, start);
    drop((first, held));
    let set = timeout(SOON, acquiring).await.expect("both are free").unwrap();
    assert!(set.is_valid());
}

#[tokio::test(start_paused = true)]
async fn a_permit_is_lost_and_goes_to_the_next() {
    let (here, there) = clients();
    let semaphore = |ylock: &Ylock| ylock.locks("group").semaphore("name", 1);
    let start = Instant::now();
    let permit = semaphore(&here).acquire().await.unwrap();
    let next = semaphore(&there).acquire();
    let next = timeout(LONGEST + SOON, next).await.expect("the bound is over").unwrap();
    assert!(start.elapsed() >= LONGEST && !permit.is_valid());
    assert_eq!(
        (permit.lost().await, permit.loss()),
        (LossReason::HeldTooLong, Some(LossReason::HeldTooLong))
    );
    assert_eq!(permit.unlock().await.unwrap(), Unlocked::WasLost);
    assert!(next.is_valid());
}

/// It holds locks of the semaphore meanwhile, by which it has its place.
#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_a_permit_keeps_its_place_for_longer() {
    let (here, there) = clients();
    let semaphore = |ylock: &Ylock| ylock.locks("group").semaphore("name", 1);
    let held = semaphore(&there).acquire().await.unwrap();
    let mut first = Box::pin(semaphore(&here).acquire());
    assert!(timeout(SOON, first.as_mut()).await.is_err());
    let mut second = Box::pin(semaphore(&there).acquire());
    let waits = async {
        tokio::select! {
            _ = first.as_mut() => {}
            _ = second.as_mut() => {}
        }
    };
    assert!(timeout(LONGEST * 2, waits).await.is_err());
    drop(held);
    tokio::select! {
        permit = first.as_mut() => assert!(permit.unwrap().is_valid()),
        _ = second.as_mut() => panic!("the first has lost its place"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_set_that_grows_is_stopped_when_its_first_lock_ends() {
    let here = Ylock::in_memory().with_options(bounded());
    let start = Instant::now();
    let grown = here.two_phase_locking(|taking| async move {
        taking.write("group", "a").await?;
        sleep(LONGEST / 2).await;
        taking.write("group", "b").await?;
        std::future::pending::<ylock_core::Result<()>>().await
    });
    assert_eq!(grown.await.unwrap_err().kind(), ylock_core::ErrorKind::Lost);
    passed(LONGEST, start);
}
