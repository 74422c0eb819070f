//! The runtime in which a task waited, held or gave back ends: nothing of that is left behind in the store, and nothing is lost that
//! goes on elsewhere.

#![allow(clippy::disallowed_methods, reason = "a test stands outside: it looks at time")]

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::time::timeout;
use ylock_core::{Guard, MemoryStore, Unlocked, Ylock};
use ylock_testkit::{Call, LosesReplies, eventually, poll_once, within};

use crate::support::{over, paused, runtime};

const SOON: Duration = Duration::from_secs(5);
/// Much less than a lease: nothing is freed by waiting.
const AT_ONCE: Duration = Duration::from_secs(1);

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
        main.block_on(eventually(AT_ONCE, "no task waits", left));
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
    comes_true("it has no waiters and no holders", || store.is_empty());
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
