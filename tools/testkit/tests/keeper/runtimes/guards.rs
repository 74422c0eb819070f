//! Guards and runtimes: a guard may be dropped where there is no runtime, and a client may outlive the runtime in which
//! it was first used.

#![allow(clippy::disallowed_methods, reason = "a test stands outside: it starts tasks of its own")]

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::time::timeout;
use ylock_core::{ErrorKind, Guard, MemoryStore, Options, Unlocked, Ylock};
use ylock_testkit::{Call, CountsCalls, Fault, eventually};

use crate::support::{current_thread, over, runtime};

const SOON: Duration = Duration::from_secs(5);
/// So long that a busy machine renews it in time.
const LEASE: Duration = Duration::from_secs(2);

fn client(store: &MemoryStore) -> Ylock {
    Ylock::new(store.engine())
}

async fn write(ylock: &Ylock) -> Guard {
    timeout(SOON, ylock.lock("group", "name").write()).await.expect("granted soon").unwrap()
}

#[test]
fn a_guard_dropped_outside_any_runtime_is_given_back_by_the_runtime_of_its_client() {
    let (store, runtime) = (MemoryStore::new(), current_thread());
    let (here, there) = (client(&store), client(&store));
    let guard = runtime.block_on(write(&here));
    drop(guard);
    // The lease is ten seconds: it is not the end of the lease that frees the lock.
    drop(runtime.block_on(write(&there)));
    drop(runtime.block_on(write(&here)));
}

#[test]
fn a_guard_dropped_after_its_runtime_is_given_back_by_the_next_one() {
    let store = MemoryStore::new();
    let (here, there) = (client(&store), client(&store));
    let first = current_thread();
    let guard = first.block_on(write(&here));
    drop(first);
    drop(guard);
    current_thread().block_on(async {
        // Any use of the client wakes it up.
        drop(here.lock("group", "other").write().await.unwrap());
        drop(write(&there).await);
        eventually(SOON, "nothing is in use", || async { here.keys_in_use() == 0 }).await;
    });
}

#[test]
fn a_lock_survives_its_runtime_if_the_client_is_used_in_another_one_in_time() {
    let store = MemoryStore::new();
    let (here, there) = (client(&store), client(&store));
    let options = Options::default().with_lease(LEASE);
    let lock = here.lock("group", "name").with_options(options);
    let guard = current_thread().block_on(lock.write()).unwrap();
    current_thread().block_on(async {
        drop(here.lock("group", "other").write().await.unwrap());
        tokio::time::sleep(LEASE * 2).await;
        assert!(guard.is_valid(), "it is renewed in the other runtime");
        assert!(there.lock("group", "name").write().now().await.unwrap().is_none());
        assert_eq!(guard.unlock().await.unwrap(), Unlocked::Released);
        drop(write(&there).await);
    });
}

/// Renewals do not return as long as this exists in the runtime in which they began.
#[derive(Debug, Default)]
struct SlowRenewals(CountsCalls);

#[async_trait::async_trait]
impl Fault for SlowRenewals {
    async fn before(&self, call: Call) -> ylock_core::Result<()> {
        self.0.before(call).await?;
        if call == Call::Renew && self.0.of(Call::Renew) == 1 {
            std::future::pending::<()>().await;
        }
        Ok(())
    }

    async fn after(&self, _call: Call) -> ylock_core::Result<()> {
        Ok(())
    }
}

#[test]
fn a_renewal_that_dies_with_its_runtime_is_made_by_the_next_one() {
    let slow = Arc::new(SlowRenewals::default());
    let here = over(&MemoryStore::new(), &slow);
    let lock = here.lock("group", "name").with_options(Options::default().with_lease(LEASE));
    let first = current_thread();
    let guard = first.block_on(async {
        let guard = lock.write().await.unwrap();
        eventually(SOON, "a renewal is on its way", || async { slow.0.of(Call::Renew) == 1 }).await;
        guard
    });
    drop(first);
    current_thread().block_on(async {
        drop(here.lock("group", "other").write().await.unwrap());
        tokio::time::sleep(LEASE * 2).await;
        assert!(guard.is_valid(), "{:?}", guard.loss());
    });
}

#[test]
fn a_runtime_that_ends_while_somebody_waits_leaves_nothing_in_the_queue() {
    let store = MemoryStore::new();
    let (here, there, third) = (client(&store), client(&store), client(&store));
    let second = current_thread();
    second.block_on(async {
        let guard = write(&there).await;
        let first = runtime_in_thread(here.clone());
        eventually(SOON, "it waits", || async {
            !there.inspect("group", "name").await.unwrap().queue.is_empty()
        })
        .await;
        tokio::task::spawn_blocking(move || drop(first)).await.unwrap();
        // The next use of the client cleans up.
        drop(here.lock("group", "other").write().await.unwrap());
        drop(guard);
        drop(write(&third).await);
    });
}

/// A runtime with a task that waits for the lock.
fn runtime_in_thread(ylock: Ylock) -> Runtime {
    let runtime = runtime();
    runtime.spawn(async move { drop(ylock.lock("group", "name").write().await) });
    runtime
}

#[test]
fn a_panic_under_the_lock_gives_it_back() {
    let (store, runtime) = (MemoryStore::new(), current_thread());
    let (here, there) = (client(&store), client(&store));
    let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        runtime.block_on(async {
            let _guard = write(&here).await;
            std::panic::resume_unwind(Box::new("the work failed"));
        })
    }));
    assert!(failed.is_err());
    drop(runtime.block_on(write(&there)));
}

#[test]
fn acquiring_outside_a_runtime_is_an_error_and_not_a_panic() {
    let store = current_thread().block_on(async { MemoryStore::new() });
    let lock = client(&store).lock("group", "name");
    let future = pin!(lock.write());
    let Poll::Ready(answer) = future.poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("it waits")
    };
    assert_eq!(answer.unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn a_store_can_be_made_outside_a_runtime() {
    let store = MemoryStore::new();
    drop(current_thread().block_on(write(&client(&store))));
}

#[test]
fn a_client_that_is_gone_leaves_no_task_behind() {
    current_thread().block_on(async {
        let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
        let before = tasks();
        let ylock = client(&MemoryStore::new());
        let guard = write(&ylock).await;
        drop(write_other(&ylock).await);
        assert!(tasks() > before);
        drop((guard, ylock));
        eventually(SOON, "all tasks have ended", || async { tasks() == before }).await;
    });
}

async fn write_other(ylock: &Ylock) -> Guard {
    ylock.lock("group", "other").write().await.unwrap()
}
