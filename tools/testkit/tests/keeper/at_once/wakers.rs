//! Wakers that run their owner's code, over a store that answers at once: what they drop is given back in the middle of another release.

#![allow(clippy::disallowed_methods, reason = "a test stands outside: it starts threads of its own")]

use std::cell::Cell;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle};
use ylock_core::{HandOver, MemoryStore, Options, Ylock};

use crate::support::{Drops, given_back, within_bounds};

type Waits = Pin<Box<dyn Future<Output = ()> + Send>>;

fn begin(waits: Pin<&mut (impl Future + ?Sized)>, waker: &Waker) {
    assert!(waits.poll(&mut Context::from_waker(waker)).is_pending(), "it waits");
}

/// The store must have nothing locked when it wakes the waiter of another client.
#[test]
fn a_guard_may_be_dropped_by_a_waiter_elsewhere_that_gets_its_turn() {
    within_bounds(async {
        let store = MemoryStore::new();
        let (here, there) = (Ylock::new(store.engine()), Ylock::new(store.engine()));
        let held = here.lock("group", "name").write().await.unwrap();
        let other = there.lock("group", "other").write().await.unwrap();
        let (waker, lock) = (Drops::waker(other), there.lock("group", "name"));
        let mut waits = Box::pin(lock.write());
        begin(waits.as_mut(), &waker);
        drop(held);
        drop(waits);
        given_back(&here).await;
        given_back(&there).await;
        assert!(store.is_empty());
    });
}

/// As an executor does that wakes its tasks under the mutex under which it drops them.
#[test]
fn a_waker_may_take_a_mutex_under_which_guards_are_dropped() {
    struct Locks(Arc<Mutex<usize>>);
    impl Wake for Locks {
        fn wake(self: Arc<Self>) {
            *self.0.lock() += 1;
        }
    }
    within_bounds(async {
        let (store, queue) = (MemoryStore::new(), Arc::new(Mutex::new(0)));
        let (here, there) = (Ylock::new(store.engine()), Ylock::new(store.engine()));
        let (stop, other, runtime) =
            (Arc::new(AtomicBool::new(false)), there.lock("group", "other"), Handle::current());
        let (of_dropper, stops) = (Arc::clone(&queue), Arc::clone(&stop));
        let dropper = std::thread::spawn(move || {
            let _inside = runtime.enter();
            while !stops.load(Ordering::SeqCst) {
                let mut acquires = Box::pin(other.write());
                let acquired = acquires.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                if let Poll::Ready(guard) = acquired {
                    let _locked = of_dropper.lock();
                    drop(guard.unwrap());
                }
            }
        });
        for _ in 0..2_000 {
            let held = here.lock("group", "name").write().await.unwrap();
            let (waker, lock) = (Arc::new(Locks(Arc::clone(&queue))).into(), there.lock("group", "name"));
            let mut waits = Box::pin(lock.write());
            begin(waits.as_mut(), &waker);
            drop(held);
            drop(waits);
            tokio::task::yield_now().await;
        }
        stop.store(true, Ordering::SeqCst);
        dropper.join().unwrap();
    });
}

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    static DEEPEST: Cell<usize> = const { Cell::new(0) };
}

/// An executor that runs its tasks no more: a task that is woken is dropped.
struct Ended(Mutex<Option<Waits>>);

impl Wake for Ended {
    fn wake(self: Arc<Self>) {
        let task = self.0.lock().take();
        DEPTH.with(|depth| depth.set(depth.get() + 1));
        DEEPEST.with(|deepest| deepest.set(deepest.get().max(DEPTH.with(Cell::get))));
        drop(task);
        DEPTH.with(|depth| depth.set(depth.get() - 1));
    }
}

fn deepest(waiters: usize, hand_over: HandOver) -> usize {
    std::thread::Builder::new()
        .stack_size(1 << 30)
        .spawn(move || {
            Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
                let options = Options::default().with_hand_over(hand_over);
                let ylock = Ylock::in_memory().with_options(options);
                let guard = ylock.lock("group", "name").write().await.unwrap();
                let tasks: Vec<Arc<Ended>> = (0..waiters)
                    .map(|_| {
                        let lock = ylock.lock("group", "name");
                        let mut waits: Waits = Box::pin(async move { drop(lock.write().await) });
                        let task = Arc::new(Ended(Mutex::default()));
                        let waker: Waker = Arc::clone(&task).into();
                        begin(waits.as_mut(), &waker);
                        *task.0.lock() = Some(waits);
                        task
                    })
                    .collect();
                drop(guard);
                given_back(&ylock).await;
                drop(tasks);
                DEEPEST.with(Cell::get)
            })
        })
        .unwrap()
        .join()
        .unwrap()
}

/// Each waiter that is dropped when it is woken gives back at once, which wakes the next one: as deep as there are waiters.
#[test]
fn waiters_that_are_dropped_when_they_are_woken_do_not_nest() {
    let few = deepest(500, HandOver::up_to(0, Duration::ZERO));
    assert!(few < 100, "{few} deep");
}

/// The same with the default hand-over, which has a bound of its own.
#[test]
fn waiters_that_are_dropped_when_they_are_woken_nest_no_deeper_than_the_hand_over() {
    let many = deepest(1_500, HandOver::default());
    assert!(many <= 1_100, "{many} deep");
}
