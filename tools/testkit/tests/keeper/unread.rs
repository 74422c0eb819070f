//! A waiter that is granted the lock and does not run: it reads its answer late, or never.

#![allow(clippy::disallowed_methods, reason = "a test stands outside: it looks at time")]

use std::time::Duration;

use tokio::time::{sleep, timeout};
use ylock_core::{Guard, Lock, MemoryStore, Mode, Options, Owner, Ylock};
use ylock_testkit::poll_once;

use crate::support::{Waits, comes};

const SOON: Duration = Duration::from_secs(1);
const LEASE: Duration = Duration::from_secs(10);

fn lock() -> Lock {
    let options = Options::default().with_lease(LEASE);
    Ylock::new(MemoryStore::new().engine()).with_options(options).lock("group", "name")
}

async fn granted(future: impl Future<Output = ylock_core::Result<Guard>>) -> Guard {
    timeout(SOON, future).await.expect("granted soon").unwrap()
}

/// Returns a waiter that has the lock and has not read of it.
async fn has_it_unread(lock: &Lock) -> Waits {
    let held = granted(lock.write()).await;
    let waits = comes(lock, Mode::Write).await;
    drop(held);
    waits
}

#[tokio::test(start_paused = true)]
async fn the_lock_goes_on_and_the_waiter_acquires_anew() {
    let lock = lock();
    let mut waits = has_it_unread(&lock).await;
    let other = timeout(LEASE * 2, lock.write()).await.expect("it goes on").unwrap();
    assert!(poll_once(waits.as_mut()).await.is_none(), "another task holds the lock");
    let token = other.token();
    drop(other);
    let late = granted(waits).await;
    assert!(late.is_valid() && late.token() > token);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_reads_of_it_in_time_keeps_it() {
    let lock = lock();
    let waits = has_it_unread(&lock).await;
    sleep(LEASE).await;
    let guard = granted(waits).await;
    sleep(LEASE * 3).await;
    assert!(guard.is_valid());
    assert!(lock.write().now().await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_does_not_run_costs_neither_the_readers_beside_it_nor_the_next_writer() {
    let lock = lock();
    let held = granted(lock.write()).await;
    let (runs, stands) = (comes(&lock, Mode::Read).await, comes(&lock, Mode::Read).await);
    drop(held);
    let reader = granted(runs).await;
    sleep(LEASE * 3).await;
    assert!(reader.is_valid());
    drop(reader);
    drop(granted(lock.write()).await);
    drop(stands);
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_enters_again_keeps_what_its_other_task_has_not_read_of() {
    let lock = lock();
    let own = lock.owned_by(&Owner::new());
    let held = granted(lock.write()).await;
    let stands = comes(&own, Mode::Write).await;
    drop(held);
    let again = granted(own.write()).await;
    sleep(LEASE * 3).await;
    assert!(again.is_valid());
    assert!(lock.write().now().await.unwrap().is_none());
    drop(stands);
}
