//! Groups in which tasks use locks in different ways. Each group is named after its behaviour.

use std::{sync::Arc, time::Duration};

use rand::RngExt;
use tokio::{task::JoinSet, time::sleep};
use ylock::{Guard, Locks, Owner, Ylock};

use super::{Settings, Tally, site::Site};

/// Starts the tasks of all groups on one store.
pub(super) fn start(site: &Site, settings: &Settings, tasks: &mut JoinSet<()>) {
    let tally = site.tally();
    for locks in site.locks("busy").iter().cycle().take(8) {
        tasks.spawn(busy(locks.clone(), Arc::clone(tally)));
    }
    let [locks, _] = site.locks("idle");
    tasks.spawn(idle(locks, Arc::clone(tally)));
    for locks in site.locks("impatient") {
        tasks.spawn(impatient(locks, Arc::clone(tally)));
    }
    let [holder, waiter] = site.locks("stuck");
    tasks.spawn(hold_long(holder, Arc::clone(tally)));
    for _ in 0..3 {
        tasks.spawn(wait_a_little(waiter.clone(), Arc::clone(tally)));
    }
    tasks.spawn(change_their_mind(waiter, Arc::clone(tally)));
    let [locks, _] = site.locks("mistaken");
    tasks.spawn(write_while_reading(locks, Arc::clone(tally)));
    let [_, operator] = site.clients();
    let [unlucky, _] = site.locks("unlucky");
    tasks.spawn(lose(unlucky, operator.clone(), settings.clone(), Arc::clone(tally)));
}

/// Uses a few names that many tasks want: to read, to write, and to write again in the same work.
async fn busy(locks: Locks, tally: Arc<Tally>) {
    loop {
        let (name, kind) = (["anna", "bert", "carl"][below(3)], below(10));
        match kind {
            0..6 => work(tally.count(locks.read(name).await.map(Some)), 8).await,
            6..9 => work(tally.count(locks.write(name).await.map(Some)), 8).await,
            _ => Owner::new().scope(write_twice(&locks, name, &tally)).await,
        }
        pause(2..30).await;
    }
}

async fn write_twice(locks: &Locks, name: &'static str, tally: &Tally) {
    let outer = tally.count(locks.write(name).await.map(Some));
    if outer.is_some() {
        work(tally.count(locks.write(name).await.map(Some)), 3).await;
    }
    work(outer, 3).await;
}

/// Acquires a lock now and then, and finds it free.
async fn idle(locks: Locks, tally: Arc<Tally>) {
    loop {
        work(tally.count(locks.write("once in a while").await.map(Some)), 20).await;
        pause(1_500..2_500).await;
    }
}

/// Tries a lock, and does something else if the lock is taken.
async fn impatient(locks: Locks, tally: Arc<Tally>) {
    loop {
        work(tally.count(locks.write("slot").now().await), 80).await;
        pause(20..60).await;
    }
}

/// Holds a lock for longer than the other tasks want to wait, and for longer than a third of a lease, so that the lock is renewed.
async fn hold_long(locks: Locks, tally: Arc<Tally>) {
    loop {
        let guard = tally.count(locks.write("report").await.map(Some));
        sleep(Duration::from_secs(5)).await;
        drop(guard);
        pause(500..1_000).await;
    }
}

async fn wait_a_little(locks: Locks, tally: Arc<Tally>) {
    loop {
        work(tally.count(locks.write("report").within(Duration::from_millis(700)).await), 20).await;
        pause(100..500).await;
    }
}

/// Drops the future that waits: a cancelled acquisition.
async fn change_their_mind(locks: Locks, tally: Arc<Tally>) {
    loop {
        match tokio::time::timeout(Duration::from_millis(400), locks.read("report")).await {
            Ok(ended) => work(tally.count(ended.map(Some)), 20).await,
            Err(_) => drop(tally.count::<Guard>(Ok(None))),
        }
        pause(500..1_500).await;
    }
}

/// Wants to write while it reads. Two owners that both did this would wait for each other for ever, so it is an error at once.
async fn write_while_reading(locks: Locks, tally: Arc<Tally>) {
    loop {
        let locks = locks.owned_by(&Owner::new());
        let reading = tally.count(locks.read("balance").await.map(Some));
        drop(tally.count(locks.write("balance").await.map(Some)));
        drop(reading);
        pause(500..1_500).await;
    }
}

/// Loses locks: an operator takes them away.
async fn lose(locks: Locks, operator: Ylock, settings: Settings, tally: Arc<Tally>) {
    let mut left = settings.losses.unwrap_or(u32::MAX);
    while left > 0 {
        let held = settings.lose_every.min(Duration::from_secs(3));
        let guard = tally.count(locks.write("treasure").await.map(Some));
        sleep(held).await;
        // An error means that the store is in trouble; the metrics show it.
        if let (Some(guard), Ok(1..)) = (&guard, operator.revoke("unlucky", "treasure").await) {
            guard.lost().await;
            tally.lost();
            left -= 1;
        }
        drop(guard);
        sleep(settings.lose_every.saturating_sub(held)).await;
    }
    std::future::pending::<()>().await;
}

/// Works under the lock, if it was granted.
async fn work(guard: Option<Guard>, milliseconds: u64) {
    if guard.is_some() {
        pause(0..milliseconds).await;
    }
}

fn below(end: usize) -> usize {
    rand::rng().random_range(0..end)
}

async fn pause(milliseconds: std::ops::Range<u64>) {
    let time = rand::rng().random_range(milliseconds);
    sleep(Duration::from_millis(time)).await;
}
