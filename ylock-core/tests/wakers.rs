//! A waker that is called may drop what it has, as an executor does with a task that it will not run any more: nothing is locked then.

#![allow(clippy::disallowed_methods, reason = "a test stands outside: it starts threads of its own")]

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use tokio::runtime::Builder;
use ylock_core::testkit::eventually;
use ylock_core::{Guard, Ylock};

const SOON: Duration = Duration::from_secs(10);

/// Drops a guard when it is woken.
struct Drops(Mutex<Option<Guard>>);

impl Drops {
    fn waker(guard: Guard) -> Waker {
        Arc::new(Self(Mutex::new(Some(guard)))).into()
    }
}

impl Wake for Drops {
    fn wake(self: Arc<Self>) {
        let guard = self.0.lock().unwrap().take();
        drop(guard);
    }
}

/// A thread that locks itself out would hang for ever: it is left behind.
fn within_bounds(work: impl Future<Output = ()> + Send + 'static) {
    let (done, ended) = channel();
    std::thread::spawn(move || {
        Builder::new_current_thread().enable_all().build().unwrap().block_on(work);
        done.send(()).unwrap();
    });
    ended.recv_timeout(SOON * 2).expect("it hangs, or has failed");
}

async fn given_back(ylock: &Ylock) {
    eventually(SOON, "given back", || async { ylock.keys_in_use() == 0 }).await;
}

#[test]
fn a_guard_may_be_dropped_by_being_told_of_its_loss() {
    within_bounds(async {
        let ylock = Ylock::in_memory();
        let guard = ylock.lock("group", "name").write().await.unwrap();
        let lease = guard.lease();
        let waker = Drops::waker(guard);
        let mut lost = Box::pin(lease.lost());
        assert!(lost.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        ylock.revoke("group", "name").await.unwrap();
        given_back(&ylock).await;
    });
}

#[test]
fn a_guard_may_be_dropped_by_the_end_of_closing() {
    within_bounds(async {
        let ylock = Ylock::in_memory();
        let guard = ylock.lock("group", "name").write().await.unwrap();
        let waker = Drops::waker(guard);
        let mut closing = Box::pin(ylock.close());
        assert!(closing.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        given_back(&ylock).await;
    });
}

#[test]
fn a_guard_may_be_dropped_by_the_end_of_somebodys_wait() {
    within_bounds(async {
        let ylock = Ylock::in_memory();
        let lock = ylock.lock("group", "name");
        let waker = Drops::waker(lock.write().await.unwrap());
        let mut waits = Box::pin(lock.write());
        assert!(waits.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        drop(waits);
        given_back(&ylock).await;
    });
}
