//! Readers share, writers do not, and neither starves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::Barrier;
use tokio::task::JoinHandle;
use ylock_core::{Fairness, HandOver, Mode, Options};

use crate::{Client, ExclusionOracle, Fixture, eventually, within};

use super::basics::excludes;

/// Many readers of several clients are inside at the same time.
pub async fn readers_share(fixture: Fixture) {
    let clients = fixture.clients(3).await;
    let mut guards = Vec::new();
    for number in 0..30 {
        guards.push(clients[number % clients.len()].read().await);
    }
    assert!(guards.iter().all(|guard| guard.is_valid() && guard.mode() == Mode::Read));
    for client in &clients {
        assert!(client.try_acquire(Mode::Write).await.is_none());
        assert!(client.try_acquire(Mode::Read).await.is_some());
    }
}

/// A writer keeps readers out, here and in another client.
pub async fn a_writer_excludes_readers(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    excludes(&here, Mode::Write, &here, Mode::Read).await;
    excludes(&here, Mode::Write, &there, Mode::Read).await;
}

/// A reader keeps writers out, here and in another client.
pub async fn a_reader_excludes_writers(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    excludes(&here, Mode::Read, &here, Mode::Write).await;
    excludes(&here, Mode::Read, &there, Mode::Write).await;
}

/// One reader that leaves does not end the others' reading.
pub async fn a_reader_that_leaves_does_not_end_the_others(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let (first, second, third) = (here.read().await, here.read().await, there.read().await);
    let writer = there.queue_up(Mode::Write).await;
    drop(first);
    drop(second);
    let one_left = || async { there.look().await.holders.len() == 1 };
    eventually(fixture.soon(), "one reader is left", one_left).await;
    fixture.work().await;
    assert!(third.is_valid() && !writer.is_done(), "a reader is still inside");
    drop(third);
    drop(writer.guard().await);
}

/// After a writer readers share again, also those that waited for it.
pub async fn readers_share_again_after_a_writer(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let writer = here.write().await;
    let waiting = [here.queue_up(Mode::Read).await, there.queue_up(Mode::Read).await];
    drop(writer);
    let [first, second] = waiting;
    let inside = (first.guard().await, second.guard().await);
    drop((here.read().await, there.read().await));
    drop(inside);
}

/// All readers that wait for a writer enter together when it leaves.
pub async fn waiting_readers_enter_together(fixture: Fixture) {
    const READERS: usize = 30;
    let clients = fixture.clients(3).await;
    let writer = clients[0].write().await;
    let inside = Arc::new(Barrier::new(READERS));
    let enter = |number: usize| {
        let (lock, inside) = (clients[number % clients.len()].lock.clone(), Arc::clone(&inside));
        tokio::spawn(async move {
            let guard = lock.read().await.unwrap();
            inside.wait().await;
            drop(guard);
        })
    };
    let readers: Vec<_> = (0..READERS).map(enter).collect();
    for client in &clients {
        let all = || async { client.look().await.queue.len() >= READERS / clients.len() };
        eventually(fixture.soon(), "all wait", all).await;
    }
    drop(writer);
    for reader in within(fixture.soon(), "all are inside at once", join_all(readers)).await {
        reader.unwrap();
    }
}

/// A reader that comes after a waiting writer of its own client stays behind it.
pub async fn a_reader_stays_behind_a_writer_of_its_client(fixture: Fixture) {
    let client = fixture.client().await;
    stays_behind(&client, &client, &client).await;
}

/// A reader that comes after a waiting writer of another client stays behind it.
pub async fn a_reader_stays_behind_a_writer_of_another_client(fixture: Fixture) {
    let clients = fixture.clients(3).await;
    stays_behind(&clients[0], &clients[1], &clients[2]).await;
    stays_behind(&clients[0], &clients[0], &clients[1]).await;
}

/// A reader stays behind a waiting writer also if its client reads already, unless that client may hand the lock to its own tasks.
pub async fn a_reader_does_not_join_its_client_past_a_writer_of_another(fixture: Fixture) {
    let none = HandOver::up_to(0, Duration::ZERO);
    let options = Options::default().with_lease(fixture.long_lease());
    for options in [options.clone().with_hand_over(none), options.with_fairness(Fairness::Strict)] {
        let (here, there) = (fixture.client_with(options).await, fixture.client().await);
        stays_behind(&here, &there, &here).await;
        let reader = here.read().await;
        drop(here.try_acquire(Mode::Read).await.expect("no writer waits"));
        drop(here.read().await);
        let writer = there.queue_up_seen_by(Mode::Write, &here).await;
        assert!(here.try_acquire(Mode::Read).await.is_none(), "a try overtook a writer that waits");
        drop(reader);
        drop(writer.guard().await);
    }
}

/// Also a client that may hand the lock to its own tasks lets none in when its time is over.
pub async fn a_reader_does_not_join_its_client_when_its_time_is_over(fixture: Fixture) {
    let options = Options::default().with_lease(fixture.long_lease());
    let time = options.hand_over().time();
    let (here, there) = (fixture.client_with(options).await, fixture.client().await);
    let reader = here.read().await;
    let writer = there.queue_up_seen_by(Mode::Write, &here).await;
    tokio::time::sleep(time * 2).await;
    let late = here.queue_up(Mode::Read).await;
    fixture.work().await;
    assert!(!late.is_done(), "a reader overtook a writer that has waited for {time:?}");
    drop(reader);
    drop(writer.guard().await);
    drop(late.guard().await);
}

/// `first` reads, `writer` waits, `late` wants to read.
async fn stays_behind(first: &Client, writer: &Client, late: &Client) {
    let reader = first.read().await;
    let waiting = writer.queue_up_seen_by(Mode::Write, late).await;
    let behind = late.queue_up(Mode::Read).await;
    first.fixture().work().await;
    assert!(!behind.is_done() && !waiting.is_done());
    drop(reader);
    let inside = waiting.guard().await;
    assert!(!behind.is_done(), "a reader got in beside a writer");
    drop(inside);
    drop(behind.guard().await);
}

/// A writer gets in although readers of its own client come and go without a gap.
pub async fn a_writer_is_not_starved_by_readers_of_its_client(fixture: Fixture) {
    let client = fixture.client().await;
    is_not_starved(&fixture, std::slice::from_ref(&client), &client).await;
}

/// A writer gets in although readers of other clients come and go without a gap.
pub async fn a_writer_is_not_starved_by_readers_of_other_clients(fixture: Fixture) {
    let clients = fixture.clients(3).await;
    is_not_starved(&fixture, &clients[..2], &clients[2]).await;
}

async fn is_not_starved(fixture: &Fixture, readers: &[Client], writer: &Client) {
    let stop = Arc::new(AtomicBool::new(false));
    let streams = readers.iter().chain(readers).enumerate();
    let streams: Vec<_> = streams.map(|(number, client)| read_without_gap(client, number, &stop)).collect();
    eventually(fixture.soon(), "readers are inside", || async { !writer.look().await.holders.is_empty() })
        .await;
    for _ in 0..3 {
        // Every reader that was before it must leave, and each stays for one piece of work.
        let granted = within(fixture.soon() * 2, "the writer gets in", writer.lock.write()).await;
        drop(granted.unwrap());
    }
    stop.store(true, Ordering::SeqCst);
    join_all(streams).await.into_iter().for_each(|stream| stream.unwrap());
}

/// Always holds a read lock, the next one before the last one is given back if that is possible.
fn read_without_gap(client: &Client, number: usize, stop: &Arc<AtomicBool>) -> JoinHandle<()> {
    let (client, stop) = (client.clone(), Arc::clone(stop));
    tokio::spawn(async move {
        let mut last = None;
        while !stop.load(Ordering::SeqCst) {
            // Out of step with the others: whenever one leaves, others are inside.
            client.fixture().work_for(1.0 + 0.3 * number as f64).await;
            let next = client.try_acquire(Mode::Read).await;
            last = match next {
                Some(guard) => Some(guard),
                None => {
                    drop(last.take());
                    Some(client.lock.read().await.unwrap())
                }
            };
        }
        drop(last);
    })
}

/// Readers and writers of many clients, mixed: a writer is always alone, and readers do share.
pub async fn readers_and_writers_never_overlap(fixture: Fixture) {
    const TASKS: usize = 6;
    let rounds = fixture.harness().rounds() / 50;
    let oracle = Arc::new(ExclusionOracle::default());
    let clients = fixture.clients(4).await;
    let visit = |task: usize| {
        let (lock, oracle) = (clients[task % clients.len()].lock.clone(), Arc::clone(&oracle));
        tokio::spawn(async move {
            for round in 0..rounds {
                let writes = (task + round).is_multiple_of(3);
                let guard = if writes { lock.write().await } else { lock.read().await };
                oracle.visit(&guard.unwrap()).await;
            }
        })
    };
    let tasks: Vec<_> = (0..TASKS * clients.len()).map(visit).collect();
    for ended in join_all(tasks).await {
        ended.unwrap();
    }
    let tasks = TASKS * clients.len();
    let writes: usize =
        (0..tasks).map(|task| (0..rounds).filter(|round| (task + round).is_multiple_of(3)).count()).sum();
    assert_eq!(oracle.written(), writes, "every writer's update is there");
    assert!(oracle.most_readers() > 1, "readers do share");
}

/// `read().run(work)` shares with other readers.
pub async fn run_read_shares(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let inside = Barrier::new(2);
    let work = |client: &Client| {
        let (lock, inside) = (client.lock.clone(), &inside);
        async move { lock.read().run(|_| async { inside.wait().await }).await.map(drop) }
    };
    let both = async { tokio::join!(work(&here), work(&there)) };
    let (here, there) = within(fixture.soon(), "both are inside", both).await;
    here.and(there).unwrap();
}
