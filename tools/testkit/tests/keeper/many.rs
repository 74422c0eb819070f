//! What the keeper does with many keys, and with leases of any length.

#![allow(clippy::disallowed_methods, reason = "a test stands outside: it looks at time")]

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use ylock_core::{Guard, MemoryStore, Options, Unlocked, Ylock};
use ylock_testkit::{Call, CountsCalls, eventually};

use crate::support::over;

const SOON: Duration = Duration::from_secs(5);
const LEASE: Duration = Duration::from_secs(10);

async fn write(ylock: &Ylock) -> Guard {
    timeout(SOON, ylock.lock("group", "name").write()).await.expect("granted soon").unwrap()
}

#[tokio::test]
async fn a_hundred_thousand_keys_leave_nothing() {
    let store = MemoryStore::new();
    let ylock = Ylock::new(store.engine());
    let locks = ylock.locks("group");
    for number in 0..100_000 {
        drop(locks.write(format!("{}", number % 10_000)).await.unwrap());
    }
    eventually(SOON, "nothing is in use", || async { ylock.keys_in_use() == 0 && store.is_empty() }).await;
}

#[tokio::test(start_paused = true)]
async fn two_thousand_locks_are_renewed_in_few_calls() {
    let counts = Arc::new(CountsCalls::default());
    let ylock = over(&MemoryStore::new(), &counts);
    let locks = ylock.locks("group");
    let mut guards = Vec::new();
    for number in 0..2_000 {
        guards.push(locks.write(format!("{number}")).await.unwrap());
    }
    sleep(LEASE * 5).await;
    assert!(guards.iter().all(|guard| guard.is_valid()));
    // 15 rounds of eight batches: one call for each lock would be 30 000.
    let calls = counts.of(Call::Renew);
    assert!((100..=200).contains(&calls), "{calls} calls");
}

#[tokio::test(start_paused = true)]
async fn the_lease_of_the_options_is_the_lease_in_the_store() {
    for lease in [Options::MIN_LEASE, Duration::from_secs(1), Options::MAX_LEASE] {
        let ylock = Ylock::in_memory().with_options(Options::default().with_lease(lease));
        let guard = write(&ylock).await;
        assert_eq!(guard.remaining(), lease - Options::default().with_lease(lease).margin());
        assert_eq!(guard.unlock().await.unwrap(), Unlocked::Released);
    }
}
