//! Acquire, exclude, give back.

use std::sync::Arc;

use futures_util::future::join_all;
use ylock_core::{Mode, Unlocked};

use crate::{Client, Contender, ExclusionOracle, Fixture, eventually, within};

/// A lock is granted, shown with its owner, given back, and free again.
pub async fn a_lock_is_granted_shown_and_given_back(fixture: Fixture) {
    let client = fixture.client().await;
    let guard = client.write().await;
    assert!(guard.is_valid() && !guard.remaining().is_zero() && guard.loss().is_none());

    let seen = client.look().await;
    assert_eq!(seen.holders.len(), 1, "{seen:?}");
    assert_eq!((seen.holders[0].owner, seen.holders[0].mode), (guard.owner(), Mode::Write));
    assert_eq!(seen.holders[0].token, guard.token());
    assert!(seen.queue.is_empty(), "{seen:?}");

    let lease = guard.lease();
    assert_eq!(guard.unlock().await.unwrap(), Unlocked::Released);
    assert!(!lease.is_valid() && lease.remaining().is_zero(), "a lock that was given back is not held");
    assert!(client.look().await.holders.is_empty());
    drop(client.write().await);
}

/// Two owners of one client exclude each other.
pub async fn a_writer_excludes_other_owners_of_its_client(fixture: Fixture) {
    let client = fixture.client().await;
    excludes(&client, Mode::Write, &client, Mode::Write).await;
}

/// Two clients exclude each other.
pub async fn a_writer_excludes_other_clients(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    excludes(&here, Mode::Write, &there, Mode::Write).await;
}

/// One owner used in two clients is two strangers.
pub async fn an_owner_is_a_stranger_in_another_client(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let guard = here.write().await;
    assert!(there.lock.owned_by(&guard.owner()).write().now().await.unwrap().is_none());
    let waiter = Contender::start_as(&there, Mode::Write, guard.owner());
    fixture.work().await;
    assert!(!waiter.is_done(), "the same owner in another client waits like any other owner");
    drop(guard);
    drop(waiter.guard().await);
}

/// While one client holds, the other gets in neither by trying nor by waiting; afterwards it does.
pub(super) async fn excludes(holder: &Client, held: Mode, other: &Client, wanted: Mode) {
    let guard = holder.acquire(held).await;
    assert!(other.try_acquire(wanted).await.is_none(), "{wanted} was granted beside {held}");
    let waiter = other.queue_up(wanted).await;
    holder.fixture().work().await;
    assert!(!waiter.is_done(), "{wanted} did not wait for {held}");
    assert_eq!(guard.unlock().await.unwrap(), Unlocked::Released);
    let guard = waiter.guard().await;
    assert!(holder.try_acquire(held).await.is_none(), "{held} was granted beside {wanted}");
    drop(guard);
}

/// When a writer leaves, exactly one waiter gets in.
pub async fn a_release_lets_exactly_one_writer_in(fixture: Fixture) {
    let clients = fixture.clients(3).await;
    let guard = clients[0].write().await;
    let mut waiters = Vec::new();
    for client in clients.iter().chain(&clients) {
        waiters.push(client.queue_up(Mode::Write).await);
    }
    drop(guard);
    for left in (0..waiters.len()).rev() {
        let one = || async { waiters.iter().any(Contender::is_done) };
        eventually(fixture.soon(), "one waiter gets in", one).await;
        fixture.work().await;
        assert_eq!(waiters.iter().filter(|waiter| waiter.is_done()).count(), 1, "only one gets in");
        let inside = waiters.iter().position(Contender::is_done).unwrap();
        let guard = waiters.swap_remove(inside).guard().await;
        assert_eq!(waiters.len(), left);
        drop(guard);
    }
}

/// Many tasks of many clients are inside one at a time, and no update is lost.
pub async fn many_tasks_of_many_clients_never_overlap(fixture: Fixture) {
    const TASKS: usize = 8;
    let rounds = fixture.harness().rounds() / 100;
    let oracle = Arc::new(ExclusionOracle::default());
    let clients = fixture.clients(8).await;
    let tasks = clients.iter().flat_map(|client| (0..TASKS).map(move |_| client)).map(|client| {
        let (lock, oracle) = (client.lock.clone(), Arc::clone(&oracle));
        tokio::spawn(async move {
            for _ in 0..rounds {
                oracle.visit(&lock.write().await.unwrap()).await;
            }
        })
    });
    for ended in join_all(tasks.collect::<Vec<_>>()).await {
        ended.unwrap();
    }
    assert_eq!(oracle.written(), clients.len() * TASKS * rounds, "every writer's update is there");
}

/// Dropping a guard gives the lock back.
pub async fn dropping_a_guard_gives_back(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    drop(here.write().await);
    drop(there.write().await);
    drop(here.write().await);
}

/// A panic under the lock gives it back.
pub async fn a_panic_gives_back(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let guard = here.write().await;
    let panicked = tokio::spawn(async move {
        let _guard = guard;
        std::panic::resume_unwind(Box::new("the work failed"));
    });
    assert!(panicked.await.unwrap_err().is_panic());
    drop(there.write().await);
}

/// A guard may be given back by another task, and by a thread that knows no runtime.
pub async fn a_guard_is_given_back_by_any_task_or_thread(fixture: Fixture) {
    let client = fixture.client().await;
    let guard = client.write().await;
    assert_eq!(tokio::spawn(guard.unlock()).await.unwrap().unwrap(), Unlocked::Released);
    let guard = client.write().await;
    std::thread::spawn(move || drop(guard)).join().unwrap();
    drop(client.write().await);
}

/// `run` returns what the work returns, under a valid lock, and gives the lock back.
pub async fn run_does_the_work_under_the_lock_and_gives_back(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let work = here.lock.write().run(|lease| async move { (lease.is_valid(), lease.mode(), lease.token()) });
    let (valid, mode, token) = within(fixture.soon(), "the work is done", work).await.unwrap();
    assert!(valid);
    assert_eq!((mode, token.is_some()), (Mode::Write, fixture.harness().guarantees().fencing));
    assert!(there.try_acquire(Mode::Write).await.is_some(), "`run` returns when the store has the lock back");
}

/// Work inside `run` may acquire the same lock again.
pub async fn work_inside_run_may_enter_again(fixture: Fixture) {
    let client = fixture.client().await;
    let work = client.lock.write().run(|outer| {
        let lock = client.lock.clone();
        async move {
            lock.write().await.unwrap().owner() == outer.owner() && lock.read().await.unwrap().is_valid()
        }
    });
    assert!(within(fixture.soon(), "the work enters again", work).await.unwrap());
}
