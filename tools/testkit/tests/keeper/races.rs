//! Answers of the store that cross what happens here meanwhile.

#![allow(clippy::disallowed_methods, reason = "a test stands outside: it looks at time")]

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};
use ylock_core::{
    ErrorKind, Fairness, Guard, HandOver, LossReason, MemoryStore, Mode, Options, Owner, Unlocked, Ylock,
};
use ylock_testkit::{Call, LosesReplies, Slow, eventually, poll_once};

use crate::support::{Gate, Meanwhile, Warped, over};

const SOON: Duration = Duration::from_secs(1);
const LEASE: Duration = Duration::from_secs(10);

async fn write(ylock: &Ylock) -> Guard {
    timeout(SOON, ylock.lock("group", "name").write()).await.expect("granted soon").unwrap()
}

/// Begins to wait for a lock that another client holds, with a driver that is a task: another caller has come. One that drives itself cannot
/// leave while the answer is on its way to it.
async fn begin<T>(ylock: &Ylock, waits: &mut Pin<Box<impl Future<Output = T>>>) {
    assert!(poll_once(waits.as_mut()).await.is_none());
    assert!(ylock.lock("group", "name").write().now().await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_crosses_the_end_of_the_wait_is_given_back() {
    let (store, meanwhile) = (MemoryStore::new(), Arc::new(Meanwhile::at(Call::Acquire)));
    let ylock = over(&store, &meanwhile);
    let lock = ylock.lock("group", "name");
    let holder = write(&Ylock::new(store.engine())).await;
    let mut waits = Box::pin(async move { lock.write().await });
    begin(&ylock, &mut waits).await;
    meanwhile.set(move || drop(waits));
    drop(holder);
    eventually(SOON, "nothing is left", || async {
        meanwhile.is_done() && ylock.keys_in_use() == 0 && store.is_empty()
    })
    .await;
    drop(write(&ylock).await);
}

/// The next waiter does not get what was asked for an earlier waiter that has gone; its own request is made after that was undone.
#[tokio::test(start_paused = true)]
async fn a_grant_that_crosses_the_end_of_the_wait_is_not_taken_for_that_of_the_next_one() {
    let (store, meanwhile) = (MemoryStore::new(), Arc::new(Meanwhile::at(Call::Acquire)));
    let ylock = over(&store, &meanwhile);
    let (lock, later) = (ylock.lock("group", "name"), ylock.lock("group", "name"));
    let holder = write(&Ylock::new(store.engine())).await;
    let mut waits = Box::pin(async move { lock.read().await });
    begin(&ylock, &mut waits).await;
    let (gone, goes) = tokio::sync::oneshot::channel();
    meanwhile.set(move || {
        drop(waits);
        gone.send(()).unwrap();
    });
    let next = tokio::spawn(async move {
        goes.await.unwrap();
        later.write().await
    });
    drop(holder);
    let guard = timeout(SOON, next).await.expect("granted soon").unwrap().unwrap();
    assert!(guard.is_valid());
    let seen = ylock.inspect("group", "name").await.unwrap();
    assert_eq!((seen.holders.len(), seen.holders[0].mode), (1, Mode::Write));
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_crosses_a_release_says_nothing_of_the_next_grant() {
    let (store, gate) = (MemoryStore::new(), Arc::new(Gate::before(Call::Renew)));
    let ylock = over(&store, &gate);
    let first = write(&ylock).await;
    gate.close();
    eventually(LEASE, "it is renewed", || async { gate.waiting() == 1 }).await;
    assert_eq!(first.unlock().await.unwrap(), Unlocked::Released);
    let second = write(&ylock).await;
    // The store has not got the first one any more, and says so.
    gate.open();
    sleep(LEASE * 2).await;
    assert!(second.is_valid(), "{:?}", second.loss());
}

#[tokio::test(start_paused = true)]
async fn a_downgrade_that_crosses_a_renewal_ends_when_the_store_shows_it_and_that_is_soon() {
    let (store, gate) = (MemoryStore::new(), Arc::new(Gate::before(Call::Renew)));
    let (here, there) = (over(&store, &gate), Ylock::new(store.engine()));
    let guard = write(&here).await;
    gate.close();
    eventually(LEASE, "it is renewed", || async { gate.waiting() == 1 }).await;
    let mut downgrade = Box::pin(guard.downgrade());
    assert!(poll_once(downgrade.as_mut()).await.is_none());
    // The renewal that is on its way shows the writer still.
    gate.open();
    gate.close();
    assert!(timeout(SOON, &mut downgrade).await.is_err(), "the store shows the writer still");
    assert_eq!(gate.waiting(), 1);
    gate.open();
    let reader = timeout(SOON, downgrade).await.expect("shown soon").unwrap();
    assert!(there.lock("group", "name").read().now().await.unwrap().is_some() && reader.is_valid());
}

/// The store counts from its own write, and that was before the answer.
#[tokio::test(start_paused = true)]
async fn a_grant_counts_from_before_its_answer_was_on_its_way() {
    let back = Duration::from_secs(3);
    let ylock = over(&MemoryStore::new(), &Arc::new(Slow::new(Duration::ZERO, back)));
    let guard = timeout(LEASE, ylock.lock("group", "name").write()).await.expect("granted").unwrap();
    let valid = LEASE - Options::default().margin() - back;
    let remaining = guard.remaining();
    assert!(remaining <= valid && remaining >= valid - Duration::from_millis(2), "{remaining:?}");
}

/// What a renewal says of waiters elsewhere is as old as its request: a writer may have come while the answer was on its way.
#[tokio::test(start_paused = true)]
async fn a_reader_does_not_overtake_a_writer_that_came_while_a_renewal_was_answered() {
    let (store, slow) = (MemoryStore::new(), Duration::from_secs(1));
    let (here, there) =
        (over(&store, &Arc::new(Slow::new(Duration::ZERO, slow))), Ylock::new(store.engine()));
    // What is known for less than a second is fresh enough.
    let options = Options::default().with_hand_over(HandOver::up_to(10, slow));
    let (lock, other) = (here.lock("group", "name").with_options(options), there.lock("group", "name"));
    let first = lock.read().await.unwrap();
    // The renewal has been at the store, and its answer is on its way.
    sleep(first.remaining() - LEASE / 2).await;
    let mut writer = Box::pin(other.write());
    assert!(poll_once(writer.as_mut()).await.is_none());
    eventually(SOON, "it waits", || async {
        !there.inspect("group", "name").await.unwrap().queue.is_empty()
    })
    .await;
    sleep(slow).await;
    assert!(lock.read().within(slow * 2).await.unwrap().is_none(), "it has overtaken the writer");
    drop(first);
    drop(timeout(slow * 3, writer).await.expect("its turn").unwrap());
}

/// Each reader wants to know whether a writer waits elsewhere, and the answer to a reader that came before is not good enough.
#[tokio::test(start_paused = true)]
async fn a_downgrade_ends_also_if_readers_keep_coming() {
    let (store, gate) = (MemoryStore::new(), Arc::new(Gate::before(Call::Renew)));
    let ylock = over(&store, &gate).with_options(Options::default().with_fairness(Fairness::Strict));
    let guard = write(&ylock).await;
    gate.close();
    let mut downgrade = Box::pin(guard.downgrade());
    let mut readers = Vec::new();
    for _ in 0..20 {
        if let Some(shown) = poll_once(downgrade.as_mut()).await {
            assert!(shown.unwrap().is_valid());
            return;
        }
        eventually(SOON, "it is renewed", || async { gate.waiting() == 1 }).await;
        let lock = ylock.lock("group", "name");
        let mut reader = Box::pin(async move { lock.read().await });
        assert!(poll_once(reader.as_mut()).await.is_none());
        readers.push(reader);
        gate.open();
        gate.close();
        sleep(Duration::from_millis(5)).await;
    }
    panic!("the store has shown it twenty times");
}

/// A guard that has lost its lock, and a guard of another owner of the same client that has it then.
async fn lost_and_held() -> (MemoryStore, Guard, Guard) {
    let store = MemoryStore::new();
    let (here, there) = (Ylock::new(store.engine()), Ylock::new(store.engine()));
    let lost = write(&here).await;
    there.revoke("group", "name").await.unwrap();
    assert_eq!(timeout(LEASE, lost.lost()).await.expect("it is told"), LossReason::Revoked);
    let held = write(&here).await;
    (store, lost, held)
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_lost_its_lock_does_not_give_back_that_of_the_next_holder() {
    let (store, lost, held) = lost_and_held().await;
    assert_eq!(lost.unlock().await.unwrap(), Unlocked::WasLost);
    assert!(held.is_valid());
    assert!(Ylock::new(store.engine()).lock("group", "name").read().now().await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_lost_its_lock_does_not_let_readers_in_beside_the_next_holder() {
    let (store, lost, held) = lost_and_held().await;
    assert_eq!(lost.downgrade().await.unwrap_err().kind(), ErrorKind::Lost);
    sleep(LEASE).await;
    assert!(held.is_valid());
    assert!(Ylock::new(store.engine()).lock("group", "name").read().now().await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn what_was_given_back_and_handed_over_is_neither_valid_nor_lost_for_its_former_holder() {
    let ylock = Ylock::in_memory()
        .with_options(Options::default().with_hand_over(HandOver::up_to(10, Duration::from_secs(3600))));
    let (first, lock) = (write(&ylock).await, ylock.lock("group", "name"));
    let mut next = Box::pin(lock.write());
    assert!(poll_once(next.as_mut()).await.is_none());
    let former = first.lease();
    drop(first);
    let next = timeout(SOON, next).await.expect("handed over").unwrap();
    assert!(next.token() > former.token());
    assert!(!former.is_valid() && former.remaining().is_zero());
    ylock.revoke("group", "name").await.unwrap();
    assert_eq!(timeout(SOON, next.lost()).await.expect("it is told"), LossReason::Revoked);
    assert_eq!(former.loss(), None);
    assert!(timeout(LEASE, former.lost()).await.is_err());
}

/// The first answer got lost: the second one does not find the lock, because it was given back.
#[tokio::test(start_paused = true)]
async fn a_release_whose_answer_got_lost_is_no_loss() {
    let lost = Arc::new(LosesReplies::of(Call::Release, 1));
    let ylock = over(&MemoryStore::new(), &lost);
    assert_eq!(write(&ylock).await.unlock().await.unwrap(), Unlocked::Released);
    assert_eq!(lost.left(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_finds_nothing_at_once_tells_of_the_loss() {
    let store = MemoryStore::new();
    let (here, there) = (Ylock::new(store.engine()), Ylock::new(store.engine()));
    let guard = write(&here).await;
    let engine = store.engine();
    let id = there.inspect("group", "name").await.unwrap().holders[0].id;
    ylock_core::engine::Engine::release(&engine, guard.key(), id, None).await.unwrap();
    assert_eq!(guard.unlock().await.unwrap(), Unlocked::WasLost);
}

#[tokio::test(start_paused = true)]
async fn a_revocation_by_the_client_itself_is_told_at_once() {
    let ylock = Ylock::in_memory();
    let guard = write(&ylock).await;
    assert_eq!(ylock.revoke("group", "name").await.unwrap(), 1);
    assert_eq!(timeout(SOON, guard.lost()).await.expect("told at once"), LossReason::Revoked);
}

/// Two threads, one owner: behind itself it would wait for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_gets_in_on_another_thread_meanwhile_does_not_queue_behind_itself() {
    let warped = Warped::new();
    let ylock = Ylock::new(MemoryStore::in_environment(warped.clone()).engine());
    let lock = ylock.lock("group", "name").owned_by(&Owner::new());
    let (other, held) = (lock.clone(), Arc::new(Mutex::new(None)));
    let (runtime, holds) = (Handle::current(), Arc::clone(&held));
    warped.before_it_queues(move || {
        let acquired = std::thread::spawn(move || runtime.block_on(other.write()).unwrap());
        *holds.lock() = Some(acquired.join().unwrap());
    });
    let again = timeout(SOON, lock.write()).await.expect("granted at once").unwrap();
    let held = held.lock().take().expect("the other thread holds it");
    assert_eq!(held.owner(), again.owner());
}
