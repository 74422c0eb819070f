//! Blocking calls inside async runtimes: refused where they would stall one, and never a panic.

use tokio::runtime::{Builder, Runtime};
use tokio::task::{block_in_place, spawn_blocking, unconstrained};
use ylock::blocking::{Ylock, connect};
use ylock::{ErrorKind, Result};

use super::{BOUND, bounded, two_clients};

fn both_flavours() -> [Runtime; 2] {
    [Builder::new_current_thread(), Builder::new_multi_thread()]
        .map(|mut builder| builder.worker_threads(1).enable_all().build().unwrap())
}

fn is_refused<T>(result: Result<T>) {
    let error = result.err().expect("a call that would stall the runtime");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let text = error.to_string();
    assert!(text.contains("async API") && text.contains("spawn_blocking"), "{text}");
}

/// Acquires, works and gives back.
fn works(ylock: &Ylock) {
    let users = ylock.locks("users");
    let guard = users.write("alice").within(BOUND).wait().unwrap().unwrap();
    assert!(guard.unlock().unwrap().is_released());
    assert!(users.write("alice").run(|lease| lease.is_valid()).unwrap());
    connect("memory://").unwrap().close().unwrap();
}

/// Makes each kind of call where it must be refused.
fn all_are_refused(ylock: &Ylock) {
    is_refused(connect("memory://"));
    is_refused(ylock.locks("users").write("alice").wait());
    is_refused(ylock.locks("users").read("alice").now().wait());
    is_refused(ylock.lock("users", "alice").write().run(|_| panic!("no work")));
    is_refused(ylock.multi_lock().write("users", "alice").acquire().wait());
    is_refused(ylock.locks("users").semaphore("few", 2).acquire().wait());
    is_refused(ylock.locks("users").election("alice").campaign().wait());
    is_refused(ylock.two_phase_locking(|_| -> Result<()> { panic!("no work") }));
    is_refused(ylock.inspect("users", "alice"));
    is_refused(ylock.revoke("users", "alice"));
    is_refused(ylock.list().next().unwrap());
    is_refused(ylock.close());
}

#[test]
fn calls_wait_on_a_plain_thread() {
    bounded(|| works(&Ylock::in_memory()));
}

#[test]
fn calls_are_refused_in_block_on_and_in_tasks_of_both_flavours() {
    bounded(|| {
        for runtime in both_flavours() {
            let ylock = Ylock::in_memory();
            runtime.block_on(async {
                all_are_refused(&ylock);
                let of_task = ylock.clone();
                runtime.spawn(async move { all_are_refused(&of_task) }).await.unwrap();
                tokio::task::LocalSet::new().run_until(async { all_are_refused(&ylock) }).await;
            });
            works(&ylock);
        }
    });
}

#[tokio::main(flavor = "current_thread")]
async fn in_main_of_one_thread() {
    all_are_refused(&Ylock::in_memory());
}

#[tokio::main(worker_threads = 2)]
async fn in_main_of_several_threads() {
    all_are_refused(&Ylock::in_memory());
}

#[test]
fn calls_are_refused_in_an_async_main() {
    bounded(in_main_of_one_thread);
    bounded(in_main_of_several_threads);
}

#[test]
fn calls_wait_in_spawn_blocking_of_both_flavours() {
    bounded(|| {
        for runtime in both_flavours() {
            runtime.block_on(async { spawn_blocking(|| works(&Ylock::in_memory())).await.unwrap() });
        }
    });
}

#[test]
fn calls_wait_in_block_in_place() {
    bounded(|| {
        let [_, runtime] = both_flavours();
        runtime.block_on(async {
            block_in_place(|| works(&Ylock::in_memory()));
            // Tokio takes the budget from this future until it is polled anew.
            tokio::task::yield_now().await;
            all_are_refused(&Ylock::in_memory());
            let task = runtime.spawn(async {
                block_in_place(|| works(&Ylock::in_memory()));
                all_are_refused(&Ylock::in_memory());
            });
            task.await.unwrap();
        });
    });
}

#[test]
fn a_thread_that_only_knows_a_runtime_may_wait() {
    bounded(|| {
        for runtime in both_flavours() {
            let _entered = runtime.enter();
            works(&Ylock::in_memory());
        }
    });
}

/// Cannot be told from a thread that may block. It stalls the runtime, as the documentation says, but comes to its end.
#[test]
fn a_future_without_a_budget_blocks_its_thread_and_does_not_panic() {
    bounded(|| {
        for runtime in both_flavours() {
            runtime.block_on(unconstrained(async { works(&Ylock::in_memory()) }));
        }
    });
}

#[test]
fn to_find_out_costs_a_task_nothing_of_its_budget() {
    bounded(|| {
        for runtime in both_flavours() {
            runtime.block_on(async {
                let ylock = Ylock::in_memory();
                // One step less would be noticed by the last of these.
                for _ in 0..1000 {
                    is_refused(ylock.inspect("users", "alice"));
                    assert!(tokio::task::coop::has_budget_remaining());
                }
            });
        }
    });
}

#[test]
fn guards_may_be_dropped_inside_a_runtime_and_a_refused_end_gives_back() {
    bounded(|| {
        for runtime in both_flavours() {
            let (here, there) = two_clients();
            let [alice, bob, carol] =
                ["alice", "bob", "carol"].map(|name| here.lock("users", name).write().wait().unwrap());
            runtime.block_on(async move {
                drop(alice);
                is_refused(bob.unlock());
                is_refused(carol.downgrade());
                drop(here);
            });
            for name in ["alice", "bob", "carol"] {
                assert!(there.lock("users", name).write().within(BOUND).wait().unwrap().is_some(), "{name}");
            }
        }
    });
}

#[test]
fn work_is_outside_of_the_runtime_of_its_client() {
    bounded(|| {
        let lock = Ylock::in_memory().lock("users", "alice");
        let own = lock.write().run(|_| {
            assert!(tokio::runtime::Handle::try_current().is_err());
            both_flavours().map(|runtime| runtime.block_on(async { 7 }))
        });
        assert_eq!(own.unwrap(), [7, 7]);
    });
}

#[test]
fn a_client_is_used_by_async_and_by_synchronous_code() {
    bounded(|| {
        for runtime in both_flavours() {
            let client = ylock::Ylock::in_memory();
            let blocking = Ylock::from_async(client.clone());
            let held = blocking.lock("users", "alice").write().wait().unwrap();
            runtime.block_on(async {
                assert!(client.lock("users", "alice").write().now().await.unwrap().is_none());
                drop(held);
                let guard = client.lock("users", "alice").write().within(BOUND).await.unwrap().unwrap();
                let waiting =
                    spawn_blocking(move || blocking.lock("users", "alice").write().within(BOUND).wait());
                drop(guard);
                assert!(waiting.await.unwrap().unwrap().is_some());
            });
        }
    });
}
