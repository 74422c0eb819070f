//! Everything that takes time, on a clock that stands still unless all tasks sleep: hours cost nothing, and moments
//! can be compared exactly.

#![allow(
    clippy::disallowed_methods,
    reason = "a test stands outside: it looks at time and starts tasks of its own"
)]

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::{Instant, sleep};
use ylock_core::{Guard, LossReason, MemoryStore, Options, Result, Unlocked, Ylock};
use ylock_testkit::{Call, CountsCalls, Fault, Faulty, KillableEngine, Outage, Process, poll_once};

const LEASE: Duration = Duration::from_secs(10);
/// Timers have a resolution of a millisecond.
const TICK: Duration = Duration::from_millis(2);

fn killable(store: &MemoryStore) -> (Ylock, Process) {
    let (engine, process) = KillableEngine::new(Arc::new(store.engine()));
    (Ylock::new(engine), process)
}

async fn write(ylock: &Ylock) -> Guard {
    ylock.lock("group", "name").write().await.unwrap()
}

/// Something took this long, and not much longer.
#[track_caller]
fn took(start: Instant, time: Duration) {
    let took = start.elapsed();
    assert!(took >= time.saturating_sub(TICK) && took <= time + TICK, "took {took:?} instead of {time:?}");
}

#[tokio::test(start_paused = true)]
async fn the_lock_of_a_killed_client_is_free_exactly_when_its_lease_is_over() {
    let store = MemoryStore::new();
    let (dying, process) = killable(&store);
    let other = Ylock::new(store.engine());
    let guard = write(&dying).await;
    process.kill();
    let start = Instant::now();
    drop(write(&other).await);
    took(start, LEASE);
    assert!(!guard.is_valid());
}

#[tokio::test(start_paused = true)]
async fn a_lease_counts_from_its_last_renewal() {
    let store = MemoryStore::new();
    let (dying, process) = killable(&store);
    let _guard = write(&dying).await;
    // One renewal at a third of the lease, none after it.
    sleep(LEASE / 2).await;
    process.kill();
    let start = Instant::now();
    drop(write(&Ylock::new(store.engine())).await);
    took(start, LEASE - (LEASE / 2 - LEASE / 3));
}

#[tokio::test(start_paused = true)]
async fn the_loss_is_told_a_margin_before_the_lease_ends() {
    for lease in [Options::MIN_LEASE, Duration::from_secs(1), LEASE, Duration::from_secs(3600)] {
        let store = MemoryStore::new();
        let options = Options::default().with_lease(lease);
        let margin = options.margin();
        let outage = Arc::new(Outage::of(&[Call::Renew]));
        let ylock = Ylock::from_arc(Faulty::over(Arc::new(store.engine()), &outage)).with_options(options);
        let (guard, start) = (write(&ylock).await, Instant::now());
        assert_eq!(guard.remaining(), lease - margin);
        assert_eq!(guard.lost().await, LossReason::Lapsed);
        took(start, lease - margin);
        assert!(guard.remaining().is_zero() && !guard.is_valid());
        assert_eq!(guard.unlock().await.unwrap(), Unlocked::WasLost);
    }
}

#[tokio::test(start_paused = true)]
async fn a_guard_is_invalid_in_the_moment_in_which_its_lease_is_over() {
    let store = MemoryStore::new();
    let (ylock, process) = killable(&store);
    let guard = write(&ylock).await;
    process.pause();
    let valid = LEASE - Options::default().margin();
    sleep(valid - TICK).await;
    assert!(guard.is_valid() && !guard.remaining().is_zero());
    sleep(TICK).await;
    assert!(!guard.is_valid() && guard.remaining().is_zero());
}

#[tokio::test(start_paused = true)]
async fn a_limited_wait_ends_on_time() {
    let store = MemoryStore::new();
    let (here, there) = (Ylock::new(store.engine()), Ylock::new(store.engine()));
    let _guard = write(&here).await;
    for ylock in [&here, &there] {
        for millis in [1, 10, 1_500, 3_600_000] {
            let (time, start) = (Duration::from_millis(millis), Instant::now());
            assert!(ylock.lock("group", "name").write().within(time).await.unwrap().is_none());
            took(start, time);
            let limited = Options::default().with_max_wait(time);
            let start = Instant::now();
            assert!(ylock.lock("group", "name").with_options(limited).read().await.is_err());
            took(start, time);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_hour_of_holding_and_waiting_costs_no_real_time() {
    let real = std::time::Instant::now();
    let store = MemoryStore::new();
    let (here, there) = (Ylock::new(store.engine()), Ylock::new(store.engine()));
    let (guard, hour) = (write(&here).await, Duration::from_secs(3600));
    let waiting = tokio::spawn(async move { write(&there).await });
    sleep(hour).await;
    assert!(guard.is_valid() && !waiting.is_finished());
    let start = Instant::now();
    assert_eq!(guard.unlock().await.unwrap(), Unlocked::Released);
    drop(waiting.await.unwrap());
    took(start, Duration::ZERO);
    assert!(real.elapsed() < Duration::from_secs(20), "an hour took {:?}", real.elapsed());
}

#[tokio::test(start_paused = true)]
async fn there_are_three_renewals_per_lease() {
    let counts = Arc::new(CountsCalls::default());
    let ylock = Ylock::from_arc(Faulty::over(Arc::new(MemoryStore::new().engine()), &counts));
    let guard = write(&ylock).await;
    sleep(LEASE * 100).await;
    let renewals = counts.of(Call::Renew);
    assert!((295..=301).contains(&renewals), "{renewals} renewals in 100 leases");
    drop(guard);
    sleep(LEASE).await;
    assert_eq!(counts.of(Call::Renew), renewals, "none after the release");
}

#[tokio::test(start_paused = true)]
async fn an_outage_that_is_shorter_than_the_lease_costs_nothing() {
    let outage = Arc::new(Outage::of(Call::ALL));
    outage.end();
    let ylock = Ylock::from_arc(Faulty::over(Arc::new(MemoryStore::new().engine()), &outage));
    let guard = write(&ylock).await;
    for _ in 0..10 {
        sleep(LEASE / 2).await;
        outage.begin();
        sleep(LEASE / 2).await;
        outage.end();
        assert!(guard.is_valid());
    }
    assert_eq!(guard.unlock().await.unwrap(), Unlocked::Released);
}

#[tokio::test(start_paused = true)]
async fn a_long_lease_survives_a_long_outage() {
    let outage = Arc::new(Outage::of(&[Call::Renew]));
    let ylock = Ylock::from_arc(Faulty::over(Arc::new(MemoryStore::new().engine()), &outage));
    let hour = Options::default().with_lease(Duration::from_secs(3600));
    let guard = ylock.lock("group", "name").with_options(hour).write().await.unwrap();
    sleep(Duration::from_secs(50 * 60)).await;
    assert!(guard.is_valid());
    outage.end();
    sleep(Duration::from_secs(50 * 60)).await;
    assert!(guard.is_valid());
}

/// An answer that takes a task two steps to read, after a pause of the process as before one.
#[derive(Debug)]
struct InTwoSteps;

#[async_trait]
impl Fault for InTwoSteps {
    async fn before(&self, _: Call) -> Result<()> {
        sleep(Duration::from_millis(50)).await;
        sleep(Duration::from_millis(5)).await;
        Ok(())
    }

    async fn after(&self, _: Call) -> Result<()> {
        Ok(())
    }
}

/// The answer was there long before the wait was over.
#[tokio::test(start_paused = true)]
async fn a_wait_that_ends_after_a_pause_of_the_process_reads_what_came_meanwhile() {
    let ylock = Ylock::from_arc(Faulty::over(Arc::new(MemoryStore::new().engine()), &Arc::new(InTwoSteps)));
    let lock = ylock.lock("group", "name");
    let mut waits = Box::pin(lock.write().within(Duration::from_millis(100)));
    assert!(poll_once(waits.as_mut()).await.is_none());
    tokio::time::advance(LEASE / 10).await;
    assert!(waits.await.unwrap().is_some(), "the store was taken for silent");
}
