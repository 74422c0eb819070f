//! Many locks are given back at once: a few releases are on their way at a time, and the wait of the others is no failure.

#![allow(clippy::disallowed_methods, reason = "a test stands outside: it looks at time")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use support::{Gate, Notes};
use tokio::runtime::Builder;
use tokio::time::Instant;
use ylock_core::layer::{ClientEvent, Event};
use ylock_core::testkit::{Call, Fault, Faulty, eventually, poll_once};
use ylock_core::{Fairness, Guard, MemoryStore, Options, Result, Unlocked, Ylock};

const SOON: Duration = Duration::from_secs(5);
const LEASE: Duration = Duration::from_secs(10);
/// The releases that are on their way at once, to begin with.
const AT_ONCE: usize = 64;

/// A store with much to do.
#[derive(Debug)]
struct SlowReleases(Duration);

#[async_trait]
impl Fault for SlowReleases {
    async fn before(&self, call: Call) -> Result<()> {
        if call == Call::Release {
            tokio::time::sleep(self.0).await;
        }
        Ok(())
    }

    async fn after(&self, _call: Call) -> Result<()> {
        Ok(())
    }
}

fn over(store: &MemoryStore, fault: &Arc<impl Fault>) -> Ylock {
    Ylock::over(Faulty::over(Arc::new(store.engine()), fault))
}

async fn hold(ylock: &Ylock, many: usize) -> Vec<Guard> {
    let mut held = Vec::new();
    for number in 0..many {
        held.push(ylock.lock("users", format!("{number}")).write().await.unwrap());
    }
    held
}

async fn yields() {
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_few_releases_are_on_their_way_at_once_and_one_that_a_waiter_waits_for_is_among_them() {
    let (store, gate) = (MemoryStore::new(), Arc::new(Gate::before(Call::Release)));
    let ylock = over(&store, &gate);
    let held = hold(&ylock, 200).await;
    gate.close();
    drop(held);
    yields().await;
    assert_eq!(gate.waiting(), AT_ONCE);
    let last = ylock.lock("users", "199");
    let mut last = Box::pin(last.write());
    assert!(poll_once(last.as_mut()).await.is_none());
    yields().await;
    assert_eq!(gate.waiting(), AT_ONCE + 1);
    gate.open();
    drop(tokio::time::timeout(SOON, last).await.expect("granted soon").unwrap());
    eventually(SOON, "all are given back", || async { ylock.keys_in_use() == 0 && store.is_empty() }).await;
}

#[tokio::test(start_paused = true)]
async fn a_release_that_a_waiter_waits_for_at_the_beginning_waits_for_no_place() {
    let (store, gate) = (MemoryStore::new(), Arc::new(Gate::before(Call::Release)));
    let ylock = over(&store, &gate).with_options(Options::default().with_fairness(Fairness::Strict));
    let (held, wanted) = (hold(&ylock, AT_ONCE).await, ylock.lock("users", "alice"));
    let guard = wanted.write().await.unwrap();
    let mut next = Box::pin(wanted.write());
    assert!(poll_once(next.as_mut()).await.is_none());
    gate.close();
    drop(held);
    yields().await;
    drop(guard);
    yields().await;
    assert_eq!(gate.waiting(), AT_ONCE + 1);
}

#[tokio::test(start_paused = true)]
async fn releases_go_in_the_order_in_which_the_locks_were_given_back() {
    let store = MemoryStore::new();
    let notes = Notes::over(store.engine(), |_| Ok(()));
    let slow = Arc::new(SlowReleases(Duration::from_millis(10)));
    let ylock = Ylock::over(Faulty::over(notes.clone(), &slow));
    let held = hold(&ylock, 200).await;
    drop(held);
    eventually(SOON, "all are given back", || async { ylock.keys_in_use() == 0 }).await;
    let released: Vec<_> = notes.releases().into_iter().map(|(id, _)| id).collect();
    assert_eq!(notes.acquired(), released);
}

/// The last of them wait for more than two leases until they are sent: none has failed, and none was lost by its holder.
#[tokio::test(start_paused = true)]
async fn the_wait_for_a_place_is_no_attempt() {
    const MANY: usize = 2_000;
    let (store, slow) = (MemoryStore::new(), Arc::new(SlowReleases(Duration::from_secs(1))));
    let ylock = over(&store, &slow);
    let (held, mut events) = (hold(&ylock, MANY).await, ylock.events());
    let began = Instant::now();
    let unlocks: Vec<_> = held.into_iter().map(Guard::unlock).collect();
    let unlocked = join_all(unlocks).await;
    assert!(began.elapsed() > LEASE * 2, "{:?}", began.elapsed());
    assert!(unlocked.iter().all(|answer| matches!(answer, Ok(Unlocked::Released))), "{unlocked:?}");
    let left = std::iter::from_fn(|| events.try_next()).filter_map(|event| match event {
        Event::ClientEvent(ClientEvent::Left { failures, confirmed, .. }) => Some((failures, confirmed)),
        _ => None,
    });
    let left: Vec<_> = left.collect();
    assert_eq!(left, vec![(0, true); left.len()]);
    assert!(!left.is_empty());
}

/// What the releases in a runtime that is not driven wait for never comes.
#[test]
fn a_runtime_that_is_not_driven_keeps_no_other_from_giving_back() {
    let (store, gate) = (MemoryStore::new(), Arc::new(Gate::before(Call::Release)));
    let ylock = over(&store, &gate);
    let runtime = || Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let (stands, runs) = (runtime(), runtime());
    stands.block_on(async {
        let held = hold(&ylock, AT_ONCE * 2).await;
        gate.close();
        drop(held);
        eventually(SOON, "all places are taken", || async { gate.waiting() == AT_ONCE }).await;
    });
    gate.open();
    runs.block_on(async {
        drop(ylock.lock("group", "name").write().await.unwrap());
        let there = Ylock::new(store.engine());
        drop(tokio::time::timeout(SOON, there.lock("group", "name").write()).await.expect("it is free"));
    });
    drop(stands);
    runs.block_on(eventually(SOON, "all are given back", || async { ylock.keys_in_use() == 0 }));
}
