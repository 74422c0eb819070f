//! The runtime in which a client did its work in the background ends: nobody who uses the client elsewhere may suffer from it, and
//! nothing is left behind.

#![allow(clippy::disallowed_methods, reason = "a test stands outside: it looks at time")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use support::Warped;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, sleep, timeout};
use ylock_core::testkit::{
    Call, CountsCalls, Fault, Faulty, LosesReplies, Outage, eventually, poll_once, within,
};
use ylock_core::{ErrorKind, Guard, LossReason, MemoryStore, Options, Unlocked, Ylock};

const SOON: Duration = Duration::from_secs(5);
const LEASE: Duration = Duration::from_secs(10);
/// Much less than a lease: nothing is freed by waiting.
const AT_ONCE: Duration = Duration::from_secs(1);

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// A runtime whose clock stands still unless everybody sleeps.
fn paused() -> Runtime {
    Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

fn over(store: &MemoryStore, fault: &Arc<impl Fault>) -> Ylock {
    Ylock::over(Faulty::over(Arc::new(store.engine()), fault))
}

/// A runtime in which the client was used first: its work in the background is there.
fn used_in_a_runtime(ylock: &Ylock) -> Runtime {
    let first = runtime();
    first.block_on(async { drop(ylock.lock("group", "other").write().await.unwrap()) });
    first
}

async fn write(ylock: &Ylock) -> Guard {
    timeout(SOON, ylock.lock("group", "name").write()).await.expect("granted soon").unwrap()
}

/// The condition holds soon, on a thread without a runtime.
fn comes_true(what: &str, condition: impl Fn() -> bool) {
    let start = std::time::Instant::now();
    while !condition() {
        assert!(start.elapsed() < AT_ONCE, "not within {AT_ONCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_holder_in_a_runtime_of_one_thread_goes_on_being_renewed() {
    let store = MemoryStore::new();
    let (here, main) = (Ylock::new(store.engine()), paused());
    let first = used_in_a_runtime(&here);
    let guard = main.block_on(write(&here));
    drop(first);
    main.block_on(async {
        sleep(LEASE * 5).await;
        assert!(guard.is_valid(), "{:?}", guard.loss());
        assert!(Ylock::new(store.engine()).lock("group", "name").try_write().await.unwrap().is_none());
    });
}

#[test]
fn a_holder_in_a_runtime_of_several_threads_goes_on_being_renewed() {
    let (counts, main) = (Arc::new(CountsCalls::default()), runtime());
    let options = Options::default().with_lease(Duration::from_secs(2));
    let here = over(&MemoryStore::new(), &counts).with_options(options);
    let first = used_in_a_runtime(&here);
    let guard = main.block_on(write(&here));
    drop(first);
    let before = counts.of(Call::Renew);
    // Four renewals take longer than a lease.
    main.block_on(eventually(SOON, "it is renewed", || async { counts.of(Call::Renew) >= before + 4 }));
    assert!(guard.is_valid(), "{:?}", guard.loss());
}

#[test]
fn a_holder_is_told_of_its_loss_and_its_work_is_stopped_before_the_next_one_gets_in() {
    let (store, outage, main) = (MemoryStore::new(), Arc::new(Outage::of(&[Call::Renew])), paused());
    let (here, there) = (over(&store, &outage), Ylock::new(store.engine()));
    let first = used_in_a_runtime(&here);
    let (guard, work, stopped) = main.block_on(async {
        let guard = here.lock("group", "held").write().await.unwrap();
        let (inside, stopped) = (Arc::new(AtomicBool::new(false)), Arc::new(()));
        let (entered, working, lock) = (inside.clone(), stopped.clone(), here.lock("group", "name"));
        let work = tokio::spawn(async move {
            let work = lock.run(|_| async move {
                entered.store(true, Ordering::SeqCst);
                std::future::pending::<()>().await;
                drop(working);
            });
            work.await
        });
        eventually(SOON, "it works", || async { inside.load(Ordering::SeqCst) }).await;
        (guard, work, stopped)
    });
    drop(first);
    main.block_on(async {
        drop(timeout(LEASE * 2, there.lock("group", "name").write()).await.expect("it lapses").unwrap());
        assert_eq!(Arc::strong_count(&stopped), 1, "it works on beside the next holder");
        assert_eq!(work.await.unwrap().unwrap_err().kind(), ErrorKind::Lost);
        assert_eq!(timeout(LEASE, guard.lost()).await.expect("it is told"), LossReason::Lapsed);
    });
}

#[test]
fn a_loss_is_told_on_time_even_if_no_task_of_the_client_runs() {
    let (warped, main) = (Warped::new(), paused());
    let store = MemoryStore::in_environment(warped.clone());
    let here = Ylock::new(store.engine());
    let first = used_in_a_runtime(&here);
    let valid = LEASE - Options::default().margin();
    let (guard, start, work) = main.block_on(async {
        let guard = here.lock("group", "held").write().await.unwrap();
        let lock = here.lock("group", "name");
        let start = Instant::now();
        let mut work = Box::pin(async move { lock.run(|_| std::future::pending::<()>()).await });
        while here.keys_in_use() < 2 || here.inspect("group", "name").await.unwrap().holders.is_empty() {
            assert!(poll_once(work.as_mut()).await.is_none());
            tokio::task::yield_now().await;
        }
        (guard, start, work)
    });
    warped.drop_tasks();
    drop(first);
    main.block_on(async {
        assert_eq!(timeout(LEASE, guard.lost()).await.expect("it is told"), LossReason::Lapsed);
        assert!(start.elapsed() <= valid + Duration::from_millis(2), "{:?}", start.elapsed());
        assert_eq!(timeout(AT_ONCE, work).await.expect("it ends").unwrap_err().kind(), ErrorKind::Lost);
    });
}

/// A runtime with tasks that wait for locks; it is seen in the store that they do.
fn with_waiters(here: &Ylock, there: &Ylock, names: &[String]) -> Runtime {
    let runtime = runtime();
    for name in names {
        let lock = here.lock("group", &**name);
        runtime.spawn(async move { drop(lock.write().await) });
    }
    for name in names {
        let waits = || async { !there.inspect("group", &**name).await.unwrap().queue.is_empty() };
        runtime.block_on(eventually(SOON, "it waits", waits));
    }
    runtime
}

async fn held(there: &Ylock, names: &[String]) -> Vec<Guard> {
    let mut guards = Vec::new();
    for name in names {
        guards.push(there.lock("group", &**name).write().await.unwrap());
    }
    guards
}

fn names() -> Vec<String> {
    (0..20).map(|number| format!("name {number}")).collect()
}

#[test]
fn those_who_waited_in_it_leave_the_store_at_once_if_the_client_is_used_in_another_one() {
    let (store, main, names) = (MemoryStore::new(), runtime(), names());
    let (here, there) = (Ylock::new(store.engine()), Ylock::new(store.engine()));
    let guards = main.block_on(async {
        drop(write(&here).await);
        held(&there, &names).await
    });
    drop(with_waiters(&here, &there, &names));
    for name in &names {
        let left = || async { there.inspect("group", &**name).await.unwrap().queue.is_empty() };
        main.block_on(eventually(AT_ONCE, "nobody waits", left));
    }
    drop(guards);
    main.block_on(eventually(AT_ONCE, "nothing is in use", || async { here.keys_in_use() == 0 }));
}

#[test]
fn those_who_waited_in_it_leave_the_store_at_once_if_no_runtime_is_left() {
    let (store, names) = (MemoryStore::new(), names());
    let (here, there) = (Ylock::new(store.engine()), Ylock::new(store.engine()));
    let main = runtime();
    let guards = main.block_on(held(&there, &names));
    drop(with_waiters(&here, &there, &names));
    drop(main);
    drop(guards);
    comes_true("nobody waits and nobody holds", || store.is_empty());
    comes_true("nothing is in use", || here.keys_in_use() + there.keys_in_use() == 0);
}

#[test]
fn a_guard_that_is_dropped_when_no_runtime_is_left_is_given_back_at_once() {
    let store = MemoryStore::new();
    for end in [runtime, paused] {
        let (here, runtime) = (Ylock::new(store.engine()), end());
        let guard = runtime.block_on(write(&here));
        drop(runtime);
        drop(guard);
        comes_true("it is given back", || store.is_empty());
        comes_true("nothing is in use", || here.keys_in_use() == 0);
    }
}

/// The first attempt was done, and its answer died with the runtime: the second one does not find the lock any more.
#[test]
fn a_release_that_dies_with_it_is_repeated_and_is_no_loss() {
    let hangs = Arc::new(LosesReplies::hanging(Call::Release, 1));
    let (store, main) = (MemoryStore::new(), runtime());
    let here = over(&store, &hangs);
    let (first, other) = (runtime(), Ylock::new(store.engine()));
    let mut unlock = Box::pin(first.block_on(write(&here)).unlock());
    first.block_on(async {
        assert!(poll_once(unlock.as_mut()).await.is_none());
        eventually(SOON, "the store has it", || async { hangs.left() == 0 }).await;
    });
    drop(first);
    main.block_on(async {
        drop(write(&other).await);
        let unlocked = within(SOON, "given back", unlock).await;
        assert_eq!(unlocked.unwrap(), Unlocked::Released);
    });
}

/// The engine's own future was dropped: the same request is made again, and keeps its place.
#[test]
fn somebody_elsewhere_who_waits_keeps_the_place_in_the_queue() {
    let (store, main) = (MemoryStore::new(), runtime());
    let (here, there, last) =
        (Ylock::new(store.engine()), Ylock::new(store.engine()), Ylock::new(store.engine()));
    let guard = main.block_on(write(&there));
    let (lock, first) = (here.lock("group", "name"), runtime());
    // Its contender is driven in the first runtime, and it goes on waiting in the other one.
    let mut waits = Box::pin(lock.write());
    first.block_on(async {
        assert!(poll_once(waits.as_mut()).await.is_none());
        eventually(SOON, "it waits", || async {
            !there.inspect("group", "name").await.unwrap().queue.is_empty()
        })
        .await;
    });
    let id = main.block_on(there.inspect("group", "name")).unwrap().queue[0].id;
    drop(first);
    main.block_on(async {
        let later = last.lock("group", "name");
        let mut later = Box::pin(later.write());
        assert!(poll_once(later.as_mut()).await.is_none());
        let both = || async { there.inspect("group", "name").await.unwrap().queue.len() == 2 };
        eventually(SOON, "both wait", both).await;
        assert_eq!(there.inspect("group", "name").await.unwrap().queue[0].id, id);
        drop(guard);
        let guard = within(SOON, "granted", waits).await.unwrap();
        assert!(poll_once(later.as_mut()).await.is_none());
        drop(guard);
        drop(within(SOON, "granted", later).await.unwrap());
    });
}
