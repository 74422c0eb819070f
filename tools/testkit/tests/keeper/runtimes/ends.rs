//! The runtime in which a client did its work in the background ends: no holder elsewhere may suffer from it.

#![allow(clippy::disallowed_methods, reason = "a test stands outside: it looks at time")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, sleep, timeout};
use ylock_core::{ErrorKind, Guard, LossReason, MemoryStore, Options, Ylock};
use ylock_testkit::{Call, CountsCalls, Outage, eventually, poll_once};

use crate::support::{Warped, over, paused, runtime};

const SOON: Duration = Duration::from_secs(5);
const LEASE: Duration = Duration::from_secs(10);
/// Much less than a lease: nothing is freed by waiting.
const AT_ONCE: Duration = Duration::from_secs(1);

/// A runtime in which the client was used first: its work in the background is there, and has begun.
fn used_in_a_runtime(ylock: &Ylock) -> Runtime {
    let first = runtime();
    first.block_on(async {
        drop(ylock.lock("group", "other").write().await.unwrap());
        // Its one thread takes tasks in turn, so what was started before this one was polled: else it would be carried on elsewhere.
        tokio::spawn(async {}).await.unwrap();
    });
    first
}

async fn write(ylock: &Ylock) -> Guard {
    timeout(SOON, ylock.lock("group", "name").write()).await.expect("granted soon").unwrap()
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
        assert!(Ylock::new(store.engine()).lock("group", "name").write().now().await.unwrap().is_none());
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
            let work = lock.write().run(|_| async move {
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
        let mut work = Box::pin(async move { lock.write().run(|_| std::future::pending::<()>()).await });
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

/// A renewal that is due at once where there is no thread for it would be dropped at once, again and again, and nothing else would run.
#[test]
fn where_no_renewal_can_be_started_a_holder_is_told_of_its_loss_on_time_and_one_in_time_is_renewed() {
    let (warped, main) = (Warped::new(), paused());
    let here = Ylock::new(MemoryStore::in_environment(warped.clone()).engine());
    main.block_on(async {
        let guard = write(&here).await;
        // The renewals run, and nothing that they start.
        tokio::task::yield_now().await;
        warped.drop_tasks();
        sleep(LEASE / 2).await;
        warped.start_tasks();
        sleep(LEASE * 3).await;
        assert!(guard.is_valid(), "{:?}", guard.loss());
        warped.drop_tasks();
        assert_eq!(timeout(LEASE, guard.lost()).await.expect("it is told"), LossReason::Lapsed);
    });
}

/// Tests with paused time that share a client: each has a runtime, and a clock, of its own.
#[test]
fn the_next_runtime_with_a_clock_of_its_own_has_the_renewals_on_that_clock() {
    let (here, first) = (Ylock::new(MemoryStore::new().engine()), paused());
    first.block_on(async { drop(write(&here).await) });
    drop(first);
    paused().block_on(async {
        let guard = write(&here).await;
        sleep(LEASE * 100).await;
        assert!(guard.is_valid(), "{:?}", guard.loss());
    });
}

/// The thread drops its runtime while it is panicking: the work in the background has not panicked.
#[test]
fn a_holder_goes_on_being_renewed_when_the_thread_of_another_runtime_panics() {
    let store = MemoryStore::new();
    let (here, main, first) = (Ylock::new(store.engine()), paused(), paused());
    first.block_on(async { drop(here.lock("group", "other").write().await.unwrap()) });
    let guard = main.block_on(write(&here));
    let panics = std::thread::spawn(move || {
        let _first = first;
        std::panic::resume_unwind(Box::new("the work of a user"));
    });
    panics.join().unwrap_err();
    main.block_on(async {
        sleep(LEASE * 5).await;
        assert!(guard.is_valid(), "{:?}", guard.loss());
    });
}

#[test]
fn a_wait_and_a_loss_that_are_awaited_on_in_another_runtime_go_on() {
    let (first, main, store) = (runtime(), runtime(), MemoryStore::new());
    let (here, there) = (Ylock::new(store.engine()), Ylock::new(store.engine()));
    let guard = main.block_on(async { there.lock("group", "name").write().await.unwrap() });
    let lock = here.lock("group", "name");
    let mut waits = Box::pin(lock.write().within(SOON));
    let lease = guard.lease();
    let mut lost = Box::pin(lease.lost());
    first.block_on(async {
        assert!(poll_once(waits.as_mut()).await.is_none() && poll_once(lost.as_mut()).await.is_none());
    });
    drop(first);
    main.block_on(async {
        assert!(poll_once(waits.as_mut()).await.is_none() && poll_once(lost.as_mut()).await.is_none());
        drop(lost);
        drop(guard);
        assert!(waits.await.unwrap().is_some());
    });
}

/// Nothing can wait in it, so nothing works; but it must not be tried again and again.
#[test]
fn a_runtime_without_timers_is_told_and_does_not_keep_a_processor_busy() {
    let panics = Arc::new(AtomicUsize::new(0));
    let (counted, loud) = (Arc::clone(&panics), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().name() == Some("without timers") {
            counted.fetch_add(1, Ordering::SeqCst);
        } else {
            loud(panic);
        }
    }));
    let ylock = Ylock::in_memory();
    let mut runtime = Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).thread_name("without timers").build().unwrap();
    let guard = runtime.block_on(async { ylock.lock("group", "name").write().await });
    drop(guard);
    std::thread::sleep(AT_ONCE / 2);
    assert!(panics.load(Ordering::SeqCst) < 20, "{panics:?} panics");
}
