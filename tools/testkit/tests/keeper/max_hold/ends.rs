//! When a hold ends, and what becomes of the lock.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use ylock_core::{ErrorKind, HandOver, LossReason, MemoryStore, Options, Unlocked, Ylock};
use ylock_testkit::{Call, CountsCalls, eventually};

use super::{LONGEST, SOON, bounded, clients, granted, lock, passed};
use crate::support::{comes, over};

#[tokio::test(start_paused = true)]
async fn it_is_renewed_until_it_has_lasted_so_long_and_is_lost_then() {
    let (here, _) = clients();
    let start = Instant::now();
    let guard = granted(lock(&here).write()).await;
    assert_eq!(guard.lost().await, LossReason::HeldTooLong);
    passed(LONGEST, start);
    assert!(!guard.is_valid() && guard.remaining().is_zero());
    assert_eq!(
        (guard.loss(), guard.check().unwrap_err().kind()),
        (Some(LossReason::HeldTooLong), ErrorKind::Lost)
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_left_of_it_is_no_more_than_the_bound_leaves() {
    let (here, _) = clients();
    let guard = granted(lock(&here).with_options(Options::default().with_max_hold(SOON)).write()).await;
    assert_eq!(guard.remaining(), SOON);
}

/// Before the first renewal, and after many.
#[tokio::test(start_paused = true)]
async fn the_next_client_gets_the_lock_at_once_although_the_guard_is_there() {
    for longest in [SOON, LONGEST] {
        let (here, there) = clients();
        let start = Instant::now();
        let brief = lock(&here).with_options(Options::default().with_max_hold(longest));
        let guard = granted(brief.write()).await;
        let next = timeout(LONGEST * 2, lock(&there).write()).await.expect("the bound is over").unwrap();
        passed(longest, start);
        assert!(next.token() > guard.token() && !guard.is_valid());
        assert_eq!(guard.unlock().await.unwrap(), Unlocked::WasLost);
        assert!(next.is_valid() && lock(&here).write().now().await.unwrap().is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn it_is_given_back_once() {
    let counts = Arc::new(CountsCalls::default());
    let here = over(&MemoryStore::new(), &counts).with_options(bounded());
    let guard = granted(lock(&here).write()).await;
    guard.lost().await;
    eventually(SOON, "it is given back", || async { here.keys_in_use() == 0 }).await;
    drop(guard);
    sleep(SOON).await;
    assert_eq!(counts.of(Call::Release), 1);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_of_the_same_client_gets_it_with_a_larger_token_also_by_a_hand_over() {
    for time in [Duration::ZERO, LONGEST * 10] {
        let (here, _) = clients();
        let here = here.with_options(Options::default().with_hand_over(HandOver::up_to(9, time)));
        let guard = granted(lock(&here).write()).await;
        let next = timeout(LONGEST + SOON, lock(&here).write()).await.expect("the bound is over").unwrap();
        assert!(next.token() > guard.token() && !guard.is_valid());
        assert_eq!(guard.unlock().await.unwrap(), Unlocked::WasLost);
        assert!(next.is_valid());
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_task_of_a_client_has_the_whole_time_for_itself() {
    let (here, _) = clients();
    let here = here.with_options(Options::default().with_hand_over(HandOver::up_to(9, LONGEST)));
    let first = granted(lock(&here).write()).await;
    let next = comes(&lock(&here), ylock_core::Mode::Write).await;
    sleep(LONGEST / 2).await;
    drop(first);
    let (next, start) = (granted(next).await, Instant::now());
    next.lost().await;
    passed(LONGEST, start);
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_enters_again_does_not_prolong_it() {
    let (here, _) = clients();
    let start = Instant::now();
    let outer = granted(lock(&here).write()).await;
    sleep(LONGEST / 2).await;
    let longer = lock(&here).with_options(Options::default().with_max_hold(LONGEST * 9));
    let inner = granted(longer.owned_by(&outer.owner()).write()).await;
    assert_eq!((inner.lost().await, outer.loss()), (LossReason::HeldTooLong, Some(LossReason::HeldTooLong)));
    passed(LONGEST, start);
    assert_eq!(inner.unlock().await.unwrap(), Unlocked::WasLost);
    assert_eq!(outer.unlock().await.unwrap(), Unlocked::WasLost);
}

#[tokio::test(start_paused = true)]
async fn a_writer_that_becomes_a_reader_does_not_prolong_it() {
    let (here, there) = clients();
    let start = Instant::now();
    let guard = granted(lock(&here).write()).await;
    sleep(LONGEST / 2).await;
    let guard = guard.downgrade().await.unwrap();
    let next = timeout(LONGEST, lock(&there).write()).await.expect("the bound is over").unwrap();
    passed(LONGEST, start);
    assert_eq!(guard.loss(), Some(LossReason::HeldTooLong));
    drop(next);
}

#[tokio::test(start_paused = true)]
async fn the_bound_of_a_lock_goes_before_that_of_its_client() {
    let (here, _) = clients();
    let start = Instant::now();
    let unbounded = granted(lock(&here).with_options(Options::default().without_max_hold()).write()).await;
    let brief = here.lock("group", "brief").with_options(Options::default().with_max_hold(SOON));
    let brief = granted(brief.write()).await;
    brief.lost().await;
    passed(SOON, start);
    sleep(LONGEST * 3).await;
    assert_eq!(unbounded.unlock().await.unwrap(), Unlocked::Released);
}

#[tokio::test(start_paused = true)]
async fn a_run_is_stopped_and_fails() {
    let (here, _) = clients();
    let start = Instant::now();
    let error = lock(&here).write().run(|_| pending::<()>()).await.unwrap_err();
    passed(LONGEST, start);
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert!(error.to_string().contains("held_too_long"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_leader_and_a_job_have_the_bound_of_the_client() {
    let (here, _) = clients();
    let start = Instant::now();
    let leadership = here.locks("elections").election("name").campaign().await.unwrap();
    assert_eq!(leadership.lost().await, LossReason::HeldTooLong);
    passed(LONGEST, start);
    let start = Instant::now();
    let ran = here.lock("jobs", "name").once_per(LONGEST * 1_000, |_| pending::<()>()).await;
    assert_eq!(ran.unwrap_err().kind(), ErrorKind::Lost);
    passed(LONGEST, start);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_ends_before_is_the_reason() {
    let outage = Arc::new(ylock_testkit::Outage::of(&[Call::Renew]));
    let here = over(&MemoryStore::new(), &outage).with_options(bounded());
    let guard = granted(lock(&here).write()).await;
    assert_eq!(guard.lost().await, LossReason::Lapsed);
    sleep(LONGEST).await;
    assert_eq!(guard.loss(), Some(LossReason::Lapsed));
}

#[tokio::test(start_paused = true)]
async fn no_time_at_all_is_refused_by_whatever_acquires() {
    let here = Ylock::in_memory().with_options(Options::default().with_max_hold(Duration::ZERO));
    let refused = [
        lock(&here).write().await.err(),
        here.multi_lock().write("group", "name").acquire().await.err(),
        here.locks("group").semaphore("name", 2).acquire().await.err(),
        lock(&here).try_with_options(Options::default().with_lease(Options::MIN_LEASE)).err(),
    ];
    for error in refused {
        let error = error.expect("refused");
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains("max_hold"), "{error}");
    }
}
