//! First come, first served.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use ylock_core::{Fairness, Mode, Options, Owner, Unlocked};

use crate::{Client, Fixture, eventually, poll_once, within};

/// The numbers of the tasks that were served, in order.
type Served = Arc<Mutex<Vec<usize>>>;

/// A task that waits, notes that it was served, and gives the lock back. Returns when the queue shows it.
async fn queue_up(client: &Client, seen_by: &Client, number: usize, served: &Served) -> JoinHandle<()> {
    let owner = Owner::new();
    let (lock, served) = (client.lock.owned_by(&owner), Arc::clone(served));
    let task = tokio::spawn(async move {
        let guard = lock.write().await.unwrap();
        served.lock().push(number);
        assert_eq!(guard.unlock().await.unwrap(), Unlocked::Released);
    });
    let seen = || async { seen_by.look().await.queue.iter().any(|waiter| waiter.owner == owner) };
    eventually(client.fixture().soon(), "it is in the queue", seen).await;
    task
}

async fn finish(fixture: &Fixture, waiters: Vec<JoinHandle<()>>) {
    let bound =
        fixture.soon() + (fixture.harness().trip() + fixture.harness().notice()) * 4 * waiters.len() as u32;
    for ended in within(bound, "all are served", join_all(waiters)).await {
        ended.unwrap();
    }
}

/// A hundred waiters of one client are served in the order of their arrival.
pub async fn a_hundred_of_one_client_are_served_in_order(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let (guard, served) = (there.write().await, Served::default());
    let mut waiters = Vec::new();
    for number in 0..100 {
        waiters.push(queue_up(&here, &here, number, &served).await);
    }
    drop(guard);
    finish(&fixture, waiters).await;
    assert_eq!(*served.lock(), (0..100).collect::<Vec<_>>());
}

/// Within a client the first poll takes the place in the queue, whenever the future was made.
pub async fn the_first_poll_takes_the_place(fixture: Fixture) {
    let client = fixture.client().await;
    let (guard, served) = (client.write().await, Served::default());
    let wait = |number: usize| {
        let (lock, served) = (client.lock.clone(), Arc::clone(&served));
        Box::pin(async move {
            let _guard = lock.write().await.unwrap();
            served.lock().push(number);
        })
    };
    let mut futures: Vec<Pin<Box<_>>> = (0..50).map(wait).collect();
    for future in futures.iter_mut().rev() {
        assert!(poll_once(future.as_mut()).await.is_none());
    }
    drop(guard);
    within(fixture.soon(), "all are served", join_all(futures)).await;
    assert_eq!(*served.lock(), (0..50).rev().collect::<Vec<_>>());
}

/// Clients are served in the order in which they joined the queue.
pub async fn clients_are_served_in_the_order_in_which_they_came(fixture: Fixture) {
    let clients = fixture.clients(10).await;
    let (guard, served) = (clients[0].write().await, Served::default());
    let mut waiters = Vec::new();
    for (number, client) in clients.iter().enumerate().skip(1) {
        waiters.push(queue_up(client, &clients[0], number, &served).await);
    }
    drop(guard);
    finish(&fixture, waiters).await;
    assert_eq!(*served.lock(), (1..clients.len()).collect::<Vec<_>>());
}

/// With hand-overs in between, the tasks of each client are still served in the order of their arrival.
pub async fn each_clients_tasks_are_served_in_order(fixture: Fixture) {
    const CLIENTS: usize = 5;
    let clients = fixture.clients(CLIENTS).await;
    let (guard, served) = (clients[0].write().await, Served::default());
    let mut waiters = Vec::new();
    for number in 0..100 {
        let client = &clients[number % CLIENTS];
        waiters.push(queue_up(client, client, number, &served).await);
    }
    drop(guard);
    finish(&fixture, waiters).await;
    let served = served.lock();
    assert_eq!(served.len(), 100);
    for client in 0..CLIENTS {
        let own: Vec<_> = served.iter().filter(|number| *number % CLIENTS == client).collect();
        assert!(own.is_sorted(), "client {client}: {own:?}");
    }
}

/// With `Fairness::Strict` there is one order of arrival over all tasks of all clients.
pub async fn strict_is_one_order_over_all_clients(fixture: Fixture) {
    const CLIENTS: usize = 4;
    let options = Options::default().with_lease(fixture.long_lease()).with_fairness(Fairness::Strict);
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(fixture.client_with(options.clone()).await);
    }
    let (guard, served) = (clients[0].write().await, Served::default());
    let mut waiters = Vec::new();
    for number in 0..40 {
        // Neighbours are often of the same client, and often not.
        let client = &clients[(number / 2 + number * number) % CLIENTS];
        waiters.push(queue_up(client, client, number, &served).await);
        // A place is as exact as the client's guess of the clock that all go by: half of the shortest of some trips.
        tokio::time::sleep(fixture.harness().trip() / 10).await;
    }
    drop(guard);
    finish(&fixture, waiters).await;
    assert_eq!(*served.lock(), (0..40).collect::<Vec<_>>());
}

/// A client whose tasks always want the lock lets another client have its turn, again and again.
pub async fn a_busy_client_lets_others_have_their_turn(fixture: Fixture) {
    let (busy, modest) = (fixture.client().await, fixture.client().await);
    let stop = Arc::new(AtomicBool::new(false));
    let work = |_| {
        let (lock, stop) = (busy.lock.clone(), Arc::clone(&stop));
        tokio::spawn(async move {
            while !stop.load(Ordering::SeqCst) {
                let _guard = lock.write().await.unwrap();
                tokio::task::yield_now().await;
            }
        })
    };
    let tasks: Vec<_> = (0..4).map(work).collect();
    eventually(fixture.soon(), "the busy client is busy", || async { busy.look().await.queue.len() > 1 })
        .await;
    for _ in 0..5 {
        drop(modest.write().await);
    }
    stop.store(true, Ordering::SeqCst);
    join_all(tasks).await.into_iter().for_each(|task| task.unwrap());
}

/// Readers and writers of several clients that alternate in the queue are served in that order.
pub async fn readers_and_writers_are_served_in_turn(fixture: Fixture) {
    let clients = fixture.clients(6).await;
    let guard = clients[0].write().await;
    let mut waiting = Vec::new();
    for (number, client) in clients.iter().enumerate().skip(1) {
        let mode = if number % 2 == 0 { Mode::Write } else { Mode::Read };
        let contender = client.queue_up_seen_by(mode, &clients[0]).await;
        waiting.push(contender);
    }
    drop(guard);
    while !waiting.is_empty() {
        let inside = waiting.remove(0).guard().await;
        fixture.work().await;
        assert!(waiting.iter().all(|contender| !contender.is_done()), "a contender overtook");
        drop(inside);
    }
}
