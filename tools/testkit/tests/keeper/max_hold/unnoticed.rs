//! A hold whose end comes while nothing of this process runs: the first call afterwards finds out.
//! The clock jumps, and no timer notices.

use std::sync::Arc;
use std::time::Duration;

use ylock_core::layer::{ClientEvent, End, Event};
use ylock_core::{ErrorKind, Guard, LossReason, MemoryStore, Options, Unlocked, Ylock};
use ylock_testkit::{Call, Faulty, eventually, poll_once};

use super::{granted, lock};
use crate::support::{Meanwhile, Warped};

const LEASE: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(5);
/// The lease may not be relied on any more.
const LAPSED: Duration = Duration::from_millis(9_500);

fn options() -> Options {
    Options::default().with_lease(LEASE).with_max_hold(LONGEST)
}

async fn held() -> (Arc<Warped>, Ylock, Guard) {
    let warped = Warped::new();
    let store = MemoryStore::in_environment(warped.clone());
    let ylock = Ylock::new(store.engine()).with_options(options());
    let guard = granted(lock(&ylock).write()).await;
    (warped, ylock, guard)
}

#[tokio::test(start_paused = true)]
async fn its_guard_says_so_at_that_moment_and_for_good() {
    let (warped, _ylock, guard) = held().await;
    warped.jump(LONGEST - Duration::from_nanos(1));
    assert!(guard.is_valid() && guard.loss().is_none());
    warped.jump(Duration::from_nanos(1));
    assert!(!guard.is_valid() && guard.remaining().is_zero());
    assert_eq!(guard.loss(), Some(LossReason::HeldTooLong));
    assert!(guard.check().unwrap_err().to_string().contains("held_too_long"));
    // The lease ends as well: that is not why it was lost.
    warped.jump(LEASE);
    assert_eq!((guard.loss(), guard.lost().await), (Some(LossReason::HeldTooLong), LossReason::HeldTooLong));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_over_as_well_is_the_reason() {
    let (warped, ylock, guard) = held().await;
    warped.jump(LAPSED);
    assert!(guard.check().unwrap_err().to_string().contains("lapsed"));
    drop(granted(lock(&ylock).write()).await);
    assert_eq!(guard.loss(), Some(LossReason::Lapsed));
}

#[tokio::test(start_paused = true)]
async fn its_owner_does_not_enter_again_under_it() {
    let (warped, ylock, outer) = held().await;
    warped.jump(LONGEST);
    let again = granted(lock(&ylock).owned_by(&outer.owner()).write()).await;
    assert!(again.is_valid() && again.token() > outer.token());
    assert_eq!(outer.unlock().await.unwrap(), Unlocked::WasLost);
    assert!(again.is_valid());
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_comes_afterwards_does_not_wait_for_the_next_look() {
    let (warped, ylock, guard) = held().await;
    warped.jump(LONGEST);
    let next = lock(&ylock);
    let next = poll_once(std::pin::pin!(next.write())).await.expect("at once").unwrap();
    assert!(next.is_valid() && next.token() > guard.token());
}

#[tokio::test(start_paused = true)]
async fn giving_it_back_says_that_it_was_lost() {
    let (warped, ylock, guard) = held().await;
    warped.jump(LONGEST);
    assert_eq!(guard.unlock().await.unwrap(), Unlocked::WasLost);
    assert!(lock(&ylock).write().now().await.unwrap().is_some(), "it is given back all the same");
}

#[tokio::test(start_paused = true)]
async fn its_writer_does_not_become_a_reader() {
    let (warped, _ylock, guard) = held().await;
    warped.jump(LONGEST);
    assert_eq!(guard.downgrade().await.unwrap_err().kind(), ErrorKind::Lost);
}

/// The work takes the whole time in one go, so that nothing could stop it; and when it ends,
/// nothing has been told yet.
#[tokio::test(start_paused = true)]
async fn work_that_ends_after_it_has_not_been_done_under_the_lock() {
    let (warped, ylock, guard) = held().await;
    drop(guard);
    let done = lock(&ylock).write().run(|_| async { warped.jump(LONGEST) }).await;
    assert_eq!(done.unwrap_err().kind(), ErrorKind::Lost);
    let done = lock(&ylock).write().run(|_| async { warped.jump(LONGEST / 2) }).await;
    assert!(done.is_ok());
}

/// Its timers have stood still with the machine.
#[tokio::test(start_paused = true)]
async fn its_holder_is_told_soon_after_the_machine_was_suspended() {
    let (warped, _ylock, guard) = held().await;
    let mut lost = Box::pin(guard.lost());
    assert!(poll_once(lost.as_mut()).await.is_none());
    tokio::time::sleep(Duration::from_secs(1)).await;
    warped.jump(LONGEST);
    let woken = tokio::time::Instant::now();
    assert_eq!(lost.await, LossReason::HeldTooLong);
    assert!(woken.elapsed() <= Duration::from_millis(600), "told after {:?}", woken.elapsed());
}

/// The guard has said why. A renewal that was under way brings another reason.
#[tokio::test(start_paused = true)]
async fn a_reason_that_comes_later_is_not_told_beside_it() {
    let (warped, meanwhile) = (Warped::new(), Arc::new(Meanwhile::at(Call::Renew)));
    let store = MemoryStore::in_environment(warped.clone());
    let ylock = Ylock::from_arc(Faulty::over(Arc::new(store.engine()), &meanwhile)).with_options(options());
    let mut events = ylock.events();
    let guard = granted(lock(&ylock).write()).await;
    let lease = guard.lease();
    meanwhile.set(move || {
        warped.jump(LONGEST);
        assert_eq!(lease.loss(), Some(LossReason::HeldTooLong));
    });
    assert_eq!(Ylock::new(store.engine()).revoke("group", "name").await.unwrap(), 1);
    let given_back = || async { meanwhile.is_done() && ylock.keys_in_use() == 0 };
    eventually(LEASE, "the loss is told, and it is given back", given_back).await;
    let of_hold = |event| match event {
        Event::ClientEvent(ClientEvent::HoldEnded { end, .. }) => Some(end),
        _ => None,
    };
    let of_holds: Vec<_> = std::iter::from_fn(|| events.try_next()).filter_map(of_hold).collect();
    assert_eq!(of_holds, [End::Lost(LossReason::HeldTooLong)]);
    assert_eq!(guard.loss(), Some(LossReason::HeldTooLong));
}
