//! A lease that ran out while nothing of this process ran: the first call afterwards finds out, and nothing is done under the lease any
//! more. The clock jumps, and no timer notices.

#![allow(clippy::disallowed_methods, reason = "a test stands outside: it looks at time")]

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use ylock_core::{ErrorKind, Guard, HandOver, Lock, LossReason, MemoryStore, Options, Unlocked, Ylock};
use ylock_testkit::{Call, KillableEngine, LosesReplies, Outage, eventually, poll_once};

use crate::support::{Warped, over};

const SOON: Duration = Duration::from_secs(1);
const LEASE: Duration = Duration::from_secs(10);
/// The lease may not be relied on any more, but the store has it still.
const LAPSED: Duration = Duration::from_millis(9_500);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Nothing is refused because it comes too late for a hand-over.
fn options() -> Options {
    Options::default().with_lease(LEASE).with_hand_over(HandOver::up_to(1000, DAY))
}

fn client() -> (Arc<Warped>, Ylock) {
    let warped = Warped::new();
    let store = MemoryStore::in_environment(warped.clone());
    (warped, Ylock::new(store.engine()).with_options(options()))
}

fn lock(ylock: &Ylock) -> Lock {
    ylock.lock("group", "name")
}

async fn granted(future: impl Future<Output = ylock_core::Result<Guard>>) -> Guard {
    timeout(SOON, future).await.expect("granted soon").unwrap()
}

#[tokio::test(start_paused = true)]
async fn its_owner_does_not_enter_again_under_it() {
    let (warped, ylock) = client();
    let outer = granted(lock(&ylock).write()).await;
    warped.jump(LAPSED);
    let again = granted(lock(&ylock).owned_by(&outer.owner()).write()).await;
    assert!(again.is_valid() && !outer.is_valid());
    assert!(again.token() > outer.token(), "the store has granted it anew");
    assert_eq!(outer.loss(), Some(LossReason::Lapsed));
}

#[tokio::test(start_paused = true)]
async fn a_reader_does_not_join_the_readers_under_it() {
    let (warped, ylock) = client();
    let first = granted(lock(&ylock).read()).await;
    warped.jump(LAPSED);
    let second = granted(lock(&ylock).read()).await;
    assert!(second.is_valid() && second.token() > first.token(), "it has joined what was over");
    assert_eq!(first.loss(), Some(LossReason::Lapsed));
    let third = granted(lock(&ylock).read()).await;
    assert_eq!(third.token(), second.token(), "what is valid is shared");
}

#[tokio::test(start_paused = true)]
async fn the_error_says_that_it_lapsed() {
    let (warped, ylock) = client();
    let guard = granted(lock(&ylock).write()).await;
    warped.jump(LAPSED);
    let error = guard.lease().check().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert!(error.to_string().contains("the lock was lost: lapsed"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn it_is_not_handed_over() {
    let (warped, ylock) = client();
    let first = granted(lock(&ylock).write()).await;
    let next = lock(&ylock);
    let mut next = Box::pin(next.write());
    assert!(poll_once(next.as_mut()).await.is_none());
    warped.jump(LAPSED);
    drop(first);
    let next = granted(next).await;
    assert!(next.is_valid());
}

#[tokio::test(start_paused = true)]
async fn giving_it_back_says_that_it_was_lost() {
    let (warped, ylock) = client();
    let guard = granted(lock(&ylock).write()).await;
    warped.jump(LAPSED);
    assert_eq!(guard.unlock().await.unwrap(), Unlocked::WasLost);
}

#[tokio::test(start_paused = true)]
async fn giving_back_one_of_several_acquisitions_says_so_too() {
    let (warped, ylock) = client();
    let outer = granted(lock(&ylock).write()).await;
    let inner = granted(lock(&ylock).owned_by(&outer.owner()).write()).await;
    warped.jump(LAPSED);
    assert_eq!(inner.unlock().await.unwrap(), Unlocked::WasLost);
    assert_eq!(outer.loss(), Some(LossReason::Lapsed));
}

#[tokio::test(start_paused = true)]
async fn its_writer_does_not_become_a_reader() {
    let (warped, ylock) = client();
    let guard = granted(lock(&ylock).write()).await;
    warped.jump(LAPSED);
    assert_eq!(guard.downgrade().await.unwrap_err().kind(), ErrorKind::Lost);
}

/// The work takes the whole lease in one go, so that nothing could stop it; and when it ends, nothing has been told yet.
#[tokio::test(start_paused = true)]
async fn work_that_ends_after_it_has_not_been_done_under_the_lock() {
    let (warped, ylock) = client();
    let done = lock(&ylock).write().run(|_| async { warped.jump(LAPSED) }).await;
    assert_eq!(done.unwrap_err().kind(), ErrorKind::Lost);
    let done = lock(&ylock).write().run(|_| async { warped.jump(LEASE / 2) }).await;
    assert!(done.is_ok());
}

/// Its timers have stood still with the machine.
#[tokio::test(start_paused = true)]
async fn its_holder_is_told_soon_after_the_machine_was_suspended() {
    for lease in [LEASE, DAY] {
        let (warped, ylock) = client();
        let guard = granted(lock(&ylock).with_options(options().with_lease(lease)).write()).await;
        let mut lost = Box::pin(guard.lost());
        sleep(Duration::from_secs(1)).await;
        assert!(poll_once(lost.as_mut()).await.is_none());
        warped.jump(lease);
        let woken = Instant::now();
        assert_eq!(lost.await, LossReason::Lapsed);
        assert!(woken.elapsed() <= Duration::from_millis(600), "told after {:?}", woken.elapsed());
    }
}

/// The store still had it, and has prolonged it. But meanwhile the holder may have been told that it is over.
#[tokio::test(start_paused = true)]
async fn a_renewal_that_is_confirmed_after_it_does_not_count() {
    let warped = Warped::new();
    let store = MemoryStore::in_environment(warped.clone());
    let (engine, process) = KillableEngine::new(Arc::new(store.engine()));
    let ylock = Ylock::new(engine).with_options(options());
    let guard = granted(lock(&ylock).write()).await;
    process.pause();
    sleep(LEASE / 2).await;
    warped.jump(LAPSED - LEASE / 2);
    process.resume();
    eventually(SOON, "it is lost", || async { guard.loss() == Some(LossReason::Lapsed) }).await;
    assert!(!guard.is_valid());
    drop(granted(lock(&Ylock::new(store.engine())).write()).await);
}

/// No caller asks for the state of the lock: the client finds out by itself.
#[tokio::test(start_paused = true)]
async fn a_renewal_that_hangs_keeps_no_task_of_the_same_client_out_for_longer() {
    let hangs = Arc::new(LosesReplies::hanging(Call::Renew, 1));
    let ylock = over(&MemoryStore::new(), &hangs);
    let guard = granted(lock(&ylock).write()).await;
    let next = timeout(LEASE, lock(&ylock).write()).await.expect("it lapses").unwrap();
    assert!(next.is_valid() && next.token() > guard.token());
    assert_eq!(guard.loss(), Some(LossReason::Lapsed));
}

/// The last try to renew it before its end has just failed, and the next one would come after it.
#[tokio::test(start_paused = true)]
async fn renewals_that_fail_keep_no_task_of_the_same_client_out_for_longer() {
    let outage = Arc::new(Outage::of(&[Call::Renew]));
    let ylock = over(&MemoryStore::new(), &outage);
    let (guard, start) = (granted(lock(&ylock).write()).await, Instant::now());
    let valid = guard.remaining();
    let next = timeout(LEASE, lock(&ylock).write()).await.expect("it lapses").unwrap();
    let waited = start.elapsed();
    assert!(waited >= valid && waited <= valid + Duration::from_millis(2), "{waited:?}");
    assert!(next.is_valid() && next.token() > guard.token());
}
