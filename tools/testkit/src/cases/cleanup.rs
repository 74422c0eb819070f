//! Nothing is left behind.

use std::sync::Arc;

use futures_util::future::join_all;
use tokio::time::timeout;
use ylock_core::{Mode, Options, Ylock};

use crate::{Client, Contender, Faulty, Fixture, LosesEvery, eventually, poll_times, within};

/// After everything was given back the store has nothing of the group.
pub async fn nothing_is_left_in_the_store(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let write = here.write().await;
    let waiting = [there.queue_up(Mode::Write).await, there.queue_up(Mode::Read).await];
    let read = within(fixture.soon(), "a downgrade", write.downgrade()).await.unwrap();
    drop(read);
    join_all(waiting.map(Contender::visit)).await;
    for number in 0..10 {
        drop(here.locks(fixture.group()).write(format!("name {number}")).await.unwrap());
    }
    let empty = || async { fixture.harness().left_behind(&fixture.group()).await == 0 };
    eventually(fixture.soon(), "the store has nothing of this group", empty).await;
    let seen = there.look().await;
    assert!(seen.holders.is_empty() && seen.queue.is_empty(), "{seen:?}");
}

/// A client forgets a key that it neither holds nor waits for.
pub async fn idle_keys_are_forgotten(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let guard = here.write().await;
    assert_eq!(here.keys_in_use(), 1);
    let waiting = there.queue_up(Mode::Write).await;
    assert_eq!(there.keys_in_use(), 1);
    waiting.cancel().await;
    eventually(fixture.soon(), "a wait given up is forgotten", || async { there.keys_in_use() == 0 }).await;
    drop(guard);
    eventually(fixture.soon(), "a lock given back is forgotten", || async { here.keys_in_use() == 0 }).await;
    assert!(here.lock(fixture.group(), "other").write().now().await.unwrap().is_some());
    eventually(fixture.soon(), "a try is forgotten", || async { here.keys_in_use() == 0 }).await;
}

/// A lock is acquired and given back many times in a row, as fast as it goes.
pub async fn a_fast_loop_neither_hangs_nor_leaks(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    for round in 0..fixture.harness().rounds() {
        let client = if round % 7 == 6 { &there } else { &here };
        drop(client.write().await);
    }
    for client in [&here, &there] {
        eventually(fixture.soon(), "the key is forgotten", || async { client.keys_in_use() == 0 }).await;
    }
    assert!(there.look().await.holders.is_empty());
}

/// Tasks that are aborted wherever they are leave nothing behind.
pub async fn aborted_tasks_leave_nothing(fixture: Fixture) {
    let clients = fixture.clients(3).await;
    for round in 0..20 {
        let work = |number: usize| {
            let lock = clients[number % clients.len()].lock.clone();
            tokio::spawn(async move {
                loop {
                    drop(if number.is_multiple_of(2) { lock.write().await } else { lock.read().await });
                }
            })
        };
        let tasks: Vec<_> = (0..9).map(work).collect();
        for _ in 0..round * 3 {
            tokio::task::yield_now().await;
        }
        tasks.iter().for_each(|task| task.abort());
        drop(join_all(tasks).await);
        drop(clients[round % clients.len()].write().await);
    }
}

/// When the last handle of a client is dropped, what its guards hold is still held, and given back in the end.
pub async fn guards_outlive_the_handles_of_their_client(fixture: Fixture) {
    let there = fixture.client().await;
    let engine = fixture.harness().engine().await;
    let lock = Ylock::from_arc(Arc::clone(&engine)).lock(fixture.group(), "the lock");
    // Not the shortest: a renewal may be late on a busy machine.
    let options = Options::default().with_lease(fixture.lease() * 2);
    let guard = within(fixture.soon(), "granted", lock.with_options(options).write()).await.unwrap();
    drop(lock);
    fixture.leases(4.0).await;
    assert!(guard.is_valid() && there.try_acquire(Mode::Write).await.is_none(), "it is still renewed");
    drop(guard);
    drop(there.write().await);
}

/// The number of acquisitions that go wrong at once.
const WRONG_AT_ONCE: usize = 32;
/// The number of tasks, more or less, that belong to connections: two clients with connections to each of three servers, for requests and
/// for messages, that are made when they are needed. Which of them are there before depends on where the names are kept.
const TASKS: usize = 16;

/// Acquisitions that are dropped, refused, too late, revoked, or whose answers get lost leave nothing: neither in the client, which has no
/// lease that would end it, nor in the store.
pub async fn ten_thousand_acquisitions_that_went_wrong_leave_nothing(fixture: Fixture) {
    // Its lease is short: a client may remember for two leases of a holder how long it has watched that holder's row.
    let there = fixture.client_with(Options::default().with_lease(fixture.lease() * 3)).await;
    let others = there.locks(fixture.group());
    let held = join_all((0..8).map(|number| others.write(held_name(number)))).await;
    let faults = Arc::new(LosesEvery::nth(11));
    let options = Options::default().with_lease(fixture.long_lease());
    let here = fixture.client_over(options, |engine| Faulty::over(engine, &faults)).await;
    drop(here.lock.write().await);
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let tasks_before = tasks();
    let each = fixture.harness().many() / WRONG_AT_ONCE;
    let work = (0..WRONG_AT_ONCE).map(|task| {
        let (here, there) = (here.clone(), there.clone());
        tokio::spawn(async move {
            for number in task * each..(task + 1) * each {
                goes_wrong(&here, &there, number).await;
            }
        })
    });
    for task in work.collect::<Vec<_>>() {
        fixture.to_its_end("all have gone wrong", task).await.unwrap();
    }
    eventually(fixture.soon(), "the keys are forgotten", || async { here.keys_in_use() == 0 }).await;
    drop(held);
    for client in [&here, &there] {
        let in_memory = || client.engine().in_memory();
        let empty = || async { in_memory().iter().all(|(_, count)| *count == 0) };
        within(fixture.soon() * 2, "the engine forgets all of it", async {
            while !empty().await {
                tokio::time::sleep(fixture.harness().trip()).await;
            }
        })
        .await;
    }
    eventually(fixture.soon(), "no task is left", || async { tasks() <= tasks_before + TASKS }).await;
    let empty = || async { fixture.harness().left_behind(&fixture.group()).await == 0 };
    eventually(fixture.soon(), "the store has nothing of this group", empty).await;
}

fn held_name(number: usize) -> String {
    format!("held {}", number % 8)
}

async fn goes_wrong(here: &Client, there: &Client, number: usize) {
    let locks = here.locks(here.fixture().group());
    let (name, held) = (format!("name {number}"), held_name(number));
    let polls = 1 + number / 8 % 6;
    // A waiter may have nothing to wake it before its turn, and a renewal whose answer got lost comes again much later.
    let patience = here.fixture().harness().trip() / 20;
    match number % 8 {
        0 => drop(poll_times(polls, locks.write(name)).await),
        1 => drop(timeout(patience, poll_times(polls, locks.read(held))).await),
        2 => drop(timeout(patience, poll_times(polls, locks.write(held))).await),
        3 => drop(locks.write(held).now().await),
        4 => drop(locks.write(held).within(patience).await),
        5 => {
            if let Ok(guard) = locks.write(name).await {
                drop(timeout(patience, poll_times(polls, guard.downgrade())).await);
            }
        }
        6 => {
            if let Ok(guard) = locks.read(name).await {
                drop(timeout(patience, poll_times(polls, guard.unlock())).await);
            }
        }
        _ => {
            let guard = locks.write(name.as_str()).await;
            drop(there.revoke(here.fixture().group(), name).await);
            drop(guard);
        }
    }
}
