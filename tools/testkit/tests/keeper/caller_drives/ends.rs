//! A caller that talks to the store itself, in the future that it polls: what becomes of that when it stops polling, or goes.

#![allow(clippy::disallowed_methods, reason = "a test stands outside: it starts tasks of its own")]

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time::timeout;
use ylock_core::{ErrorKind, Guard, MemoryEngine, MemoryStore, Result, Unlocked, Ylock};
use ylock_testkit::{Call, CountsCalls, Fault, Faulty, LosesReplies, Slow, eventually, poll_once};

use crate::support::{Gate, current_thread, over, runtime};

const SOON: Duration = Duration::from_secs(1);
const TRIP: Duration = Duration::from_millis(5);

type Waits<T> = Pin<Box<dyn Future<Output = Result<T>> + Send>>;

fn write(ylock: &Ylock) -> Waits<Guard> {
    let lock = ylock.lock("group", "name");
    Box::pin(async move { lock.write().await })
}

async fn soon<T>(waits: Waits<T>) -> T {
    timeout(SOON, waits).await.expect("in time").unwrap()
}

/// A client whose calls of this kind do not reach the store.
fn stopped_before(call: Call) -> (MemoryStore, Arc<Gate>, Ylock) {
    let (store, gate) = (MemoryStore::new(), Arc::new(Gate::before(call)));
    let ylock = over(&store, &gate);
    gate.close();
    (store, gate, ylock)
}

/// An unlock that was polled once, so that its request waits before the store.
async fn unlocking(ylock: &Ylock) -> Waits<Unlocked> {
    let guard = soon(write(ylock)).await;
    let mut unlocks: Waits<Unlocked> = Box::pin(guard.unlock());
    assert!(poll_once(unlocks.as_mut()).await.is_none());
    unlocks
}

#[tokio::test(start_paused = true)]
async fn a_pair_starts_no_task() {
    let (_, gate, ylock) = stopped_before(Call::Acquire);
    gate.open();
    drop(soon(write(&ylock)).await.unlock().await);
    gate.close();
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let mut waits = write(&ylock);
    assert!(poll_once(waits.as_mut()).await.is_none());
    assert_eq!(tasks(), before);
    gate.open();
    drop(soon(waits).await.unlock().await);
    assert_eq!(tasks(), before);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_its_caller_does_not_poll_goes_on_when_another_caller_comes() {
    let (_, gate, ylock) = stopped_before(Call::Release);
    let unlocks = unlocking(&ylock).await;
    gate.open();
    drop(soon(write(&ylock)).await);
    assert_eq!(soon(unlocks).await, Unlocked::Released);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_its_caller_drops_goes_on() {
    let (store, gate, ylock) = stopped_before(Call::Release);
    drop(unlocking(&ylock).await);
    gate.open();
    eventually(SOON, "it is given back", || async { store.is_empty() && ylock.keys_in_use() == 0 }).await;
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_does_not_poll_holds_up_no_other_when_it_goes() {
    let (_, gate, ylock) = stopped_before(Call::Acquire);
    let (mut first, mut second) = (write(&ylock), write(&ylock));
    assert!(poll_once(first.as_mut()).await.is_none());
    assert!(poll_once(second.as_mut()).await.is_none());
    gate.open();
    drop(first);
    drop(soon(second).await);
}

#[tokio::test(start_paused = true)]
async fn readers_enter_beside_one_that_does_not_poll() {
    let (_, gate, ylock) = stopped_before(Call::Acquire);
    let lock = ylock.lock("group", "name");
    let reader = lock.clone();
    let mut first: Waits<Guard> = Box::pin(async move { reader.read().await });
    assert!(poll_once(first.as_mut()).await.is_none());
    gate.open();
    let second = timeout(SOON, lock.read()).await.expect("in time").unwrap();
    assert_eq!(second.mode(), soon(first).await.mode());
}

/// What it drove is a task from then on, and wakes it no more.
#[tokio::test(start_paused = true)]
async fn a_waiter_is_woken_when_another_caller_has_taken_over_what_it_drove() {
    let (_, gate, ylock) = stopped_before(Call::Acquire);
    let mut first = write(&ylock);
    // Not the task that it is polled in last.
    assert!(poll_once(first.as_mut()).await.is_none());
    let first = tokio::spawn(async move { first.as_mut().await });
    tokio::time::sleep(TRIP).await;
    eventually(SOON, "it asks", || async { gate.waiting() == 1 }).await;
    assert!(ylock.lock("group", "name").write().now().await.unwrap().is_none());
    // Time goes on when the new task waits before the gate.
    tokio::time::sleep(TRIP).await;
    gate.open();
    drop(timeout(SOON, first).await.expect("in time").unwrap().unwrap());
}

#[tokio::test(start_paused = true)]
async fn close_waits_for_no_caller_that_does_not_poll() {
    let (store, gate, ylock) = stopped_before(Call::Acquire);
    let mut waits = write(&ylock);
    assert!(poll_once(waits.as_mut()).await.is_none());
    gate.open();
    timeout(SOON, ylock.close()).await.expect("in time");
    assert!(store.is_empty());
    assert_eq!(waits.await.unwrap_err().kind(), ErrorKind::Closed);
}

#[tokio::test(start_paused = true)]
async fn close_gives_back_what_its_caller_does_not_poll_any_more() {
    let (store, gate, ylock) = stopped_before(Call::Release);
    let unlocks = unlocking(&ylock).await;
    gate.open();
    timeout(SOON, ylock.close()).await.expect("in time");
    assert!(store.is_empty());
    assert_eq!(soon(unlocks).await, Unlocked::Released);
}

#[tokio::test(start_paused = true)]
async fn a_try_that_its_caller_drops_is_undone() {
    let (store, gate, ylock) = stopped_before(Call::Acquire);
    let lock = ylock.lock("group", "name");
    let mut tries = Box::pin(lock.write().now());
    assert!(poll_once(tries.as_mut()).await.is_none());
    drop(tries);
    gate.open();
    eventually(SOON, "it is undone", || async { store.is_empty() && ylock.keys_in_use() == 0 }).await;
}

/// Acquisitions fail, and what may have come of them cannot be undone yet.
#[tokio::test(start_paused = true)]
async fn a_failure_is_told_before_it_is_undone() {
    let (gate, loses) = (Arc::new(Gate::before(Call::Release)), Arc::new(LosesReplies::of(Call::Acquire, 1)));
    gate.close();
    let engine = Faulty::over(Arc::new(MemoryEngine::new()), &gate);
    let lock = Ylock::from_arc(Faulty::over(engine, &loses)).lock("group", "name");
    let failed = timeout(SOON, lock.write().now()).await.expect("in time").unwrap_err();
    assert_eq!((failed.kind(), gate.waiting()), (ErrorKind::Indeterminate, 1));
}

/// A runtime that is not driven takes over, and ends.
#[test]
fn a_driver_that_was_polled_goes_to_no_other_runtime() {
    let store = MemoryStore::new();
    let ylock = over(&store, &Arc::new(Slow::new(TRIP, TRIP)));
    let (ends, goes_on) = (current_thread(), current_thread());
    let (mut first, mut second) = (write(&ylock), write(&ylock));
    assert!(ends.block_on(poll_once(first.as_mut())).is_none());
    assert!(goes_on.block_on(poll_once(second.as_mut())).is_none());
    drop(ends);
    drop(goes_on.block_on(soon(first)));
    drop(goes_on.block_on(soon(second)));
}

/// It goes on where it was polled: its request is not cut.
#[test]
fn another_runtimes_caller_makes_a_task_where_the_driver_was_polled() {
    let (gate, counts) = (Arc::new(Gate::before(Call::Acquire)), Arc::new(CountsCalls::default()));
    gate.close();
    let engine = Faulty::over(Arc::new(MemoryEngine::new()), &gate);
    let ylock = Ylock::from_arc(Faulty::over(engine, &counts));
    let (here, there) = (runtime(), current_thread());
    let (mut first, mut second) = (write(&ylock), write(&ylock));
    assert!(here.block_on(poll_once(first.as_mut())).is_none());
    assert!(there.block_on(poll_once(second.as_mut())).is_none());
    gate.open();
    let guard = there.block_on(soon(first));
    assert_eq!(counts.of(Call::Acquire), 1);
    drop(guard);
    drop(there.block_on(soon(second)));
}

/// A gate before the store, at which something happens in the middle of the poll that comes to it.
struct At(Gate, Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl fmt::Debug for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("At").field(&self.0).finish_non_exhaustive()
    }
}

#[async_trait]
impl Fault for At {
    async fn before(&self, call: Call) -> Result<()> {
        if call == Call::Release {
            let work = self.1.lock().take();
            work.into_iter().for_each(|work| work());
        }
        self.0.before(call).await
    }

    async fn after(&self, _call: Call) -> Result<()> {
        Ok(())
    }
}

/// In another thread, say, while the first one polls.
#[tokio::test(start_paused = true)]
async fn another_caller_may_come_while_the_first_one_polls() {
    let (store, fault) = (MemoryStore::new(), Arc::new(At(Gate::before(Call::Release), Mutex::default())));
    let ylock = over(&store, &fault);
    fault.0.close();
    let second = Arc::new(Mutex::new(write(&ylock)));
    let comes = Arc::clone(&second);
    let arrives = move || assert!(comes.lock().as_mut().now_or_never().is_none());
    *fault.1.lock() = Some(Box::new(arrives));
    let unlocks = unlocking(&ylock).await;
    assert!(fault.1.lock().is_none());
    fault.0.open();
    let second = Arc::into_inner(second).unwrap().into_inner();
    drop(soon(second).await);
    assert_eq!(soon(unlocks).await, Unlocked::Released);
}

/// The timers of a runtime that has ended never ring again.
#[test]
fn a_caller_that_goes_on_in_another_runtime_asks_there() {
    for ends_before in [true, false] {
        let store = MemoryStore::new();
        let ylock = over(&store, &Arc::new(Slow::new(TRIP, TRIP)));
        let (first, second) = (current_thread(), current_thread());
        let mut waits = write(&ylock);
        assert!(first.block_on(poll_once(waits.as_mut())).is_none());
        let mut first = Some(first);
        if ends_before {
            drop(first.take());
        }
        let mut unlocks: Waits<Unlocked> = Box::pin(second.block_on(soon(waits)).unlock());
        assert!(second.block_on(poll_once(unlocks.as_mut())).is_none());
        drop(second);
        let third = current_thread();
        assert_eq!(third.block_on(soon(unlocks)), Unlocked::Released);
        assert!(store.is_empty());
    }
}

/// Its runtime is not driven any more, and another one's caller comes.
#[test]
fn a_runtime_that_ends_with_a_caller_in_it_leaves_nothing_that_another_one_waits_for() {
    let (store, gate, ylock) = stopped_before(Call::Release);
    let (ends, goes_on) = (current_thread(), current_thread());
    let unlocks = ends.block_on(unlocking(&ylock));
    ends.spawn(async move { drop(unlocks.await) });
    gate.open();
    drop(ends);
    drop(goes_on.block_on(soon(write(&ylock))));
    goes_on.block_on(eventually(SOON, "it is given back", || async { store.is_empty() }));
}
