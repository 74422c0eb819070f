//! The same owner enters again.

use std::sync::Arc;

use tokio::sync::Barrier;
use ylock_core::{Mode, Owner, Unlocked};

use crate::{Client, Contender, Fixture, eventually, within};

/// The same owner enters again at once.
pub async fn the_same_owner_enters_again_at_once(fixture: Fixture) {
    let client = fixture.client().await;
    let owner = Owner::new();
    let both = owner.scope(async { (client.write().await, client.write().await) });
    let (outer, inner) = both.await;
    assert_eq!((outer.owner(), inner.owner()), (owner, owner));
    assert!(client.lock.owned_by(&owner).write().now().await.unwrap().is_some(), "a try enters again, too");
    assert!(client.try_acquire(Mode::Write).await.is_none(), "no other owner does");
}

/// As many releases are needed as there were acquisitions, in whatever order.
pub async fn as_many_releases_as_acquisitions_in_any_order(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let owner = Owner::new();
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let mut guards = Vec::new();
        for _ in 0..order.len() {
            guards.push(Some(owner.scope(here.write()).await));
        }
        let waiter = there.queue_up(Mode::Write).await;
        for (nth, index) in order.into_iter().enumerate() {
            assert!(!waiter.is_done(), "{nth} releases of 3 do not free it");
            assert!(guards.iter().flatten().all(|guard| guard.is_valid()), "an inner release keeps the lock");
            assert_eq!(guards[index].take().unwrap().unlock().await.unwrap(), Unlocked::Released);
        }
        drop(waiter.guard().await);
    }
}

/// A task that was spawned inside the scope is not part of it: it waits.
pub async fn a_spawned_task_does_not_inherit_the_owner(fixture: Fixture) {
    let client = fixture.client().await;
    let (owner, lock, mut spawned) = (Owner::new(), client.lock.clone(), None);
    let guard = owner.scope(client.write()).await;
    owner.scope(async { spawned = Some(tokio::spawn(async move { lock.write().await.map(drop) })) }).await;
    let waiter = spawned.expect("spawned inside the scope");
    eventually(fixture.soon(), "it waits", || async { client.look().await.queue.len() == 1 }).await;
    assert!(!waiter.is_finished());
    drop(guard);
    within(fixture.soon(), "it gets in", waiter).await.unwrap().unwrap();
}

/// Tasks that are given the same owner are inside together.
pub async fn tasks_of_one_owner_are_inside_together(fixture: Fixture) {
    let client = fixture.client().await;
    let (owner, inside) = (Owner::new(), Arc::new(Barrier::new(4)));
    let enter = |client: &Client| {
        let (lock, inside) = (client.lock.owned_by(&owner), Arc::clone(&inside));
        tokio::spawn(async move {
            let guard = lock.write().await.unwrap();
            inside.wait().await;
            guard
        })
    };
    let tasks = [enter(&client), enter(&client), enter(&client), enter(&client)];
    for task in tasks {
        drop(within(fixture.soon(), "all are inside", task).await.unwrap());
    }
}

/// Entering again keeps the token, the lease and the place of the first entry.
pub async fn reentry_keeps_the_token_and_the_lease(fixture: Fixture) {
    let client = fixture.client().await;
    let outer = client.write().await;
    let lock = client.lock.owned_by(&outer.owner()).with_options(fixture.short_options());
    let inner = lock.write().await.unwrap();
    assert_eq!(outer.token(), inner.token());
    assert!(
        outer.remaining() > fixture.lease(),
        "a shorter lease of a reentry does not shorten the first one"
    );
    drop(inner);
    assert!(outer.remaining() > fixture.lease(), "nor does its end");
    assert_eq!(client.look().await.holders.len(), 1);
}

/// Entering again does not queue behind the waiters: they wait for us.
pub async fn reentry_does_not_queue(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let outer = here.write().await;
    let (local, remote) = (here.queue_up(Mode::Write).await, there.queue_up(Mode::Write).await);
    let again = here.lock.owned_by(&outer.owner());
    let inner = within(fixture.soon(), "a reentry is granted", again.write()).await.unwrap();
    assert!(!local.is_done() && !remote.is_done());
    drop((outer, inner));
    tokio::join!(local.visit(), remote.visit());
}

/// An owner that waits in two tasks gets in with both.
pub async fn an_owner_that_waits_twice_gets_in_twice(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let (owner, guard) = (Owner::new(), there.write().await);
    let waiters = [0, 1, 2].map(|_| Contender::start_as(&here, Mode::Write, owner));
    eventually(fixture.soon(), "all wait", || async { here.look().await.queue.len() == 3 }).await;
    let stranger = here.queue_up(Mode::Write).await;
    drop(guard);
    let [first, second, third] = waiters;
    let guards = [first.guard().await, second.guard().await, third.guard().await];
    assert!(!stranger.is_done(), "a stranger is not inside together with them");
    drop(guards);
    drop(stranger.guard().await);
}
