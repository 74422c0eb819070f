//! Many locks are given back at once: a few releases are on their way at a time, and the wait of the others is no failure.

#![allow(clippy::disallowed_methods, reason = "a test stands outside: it looks at time")]

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use tokio::time::Instant;
use ylock_core::engine::{AcquisitionId, Engine, Release, Request};
use ylock_core::layer::{ClientEvent, Event, Events};
use ylock_core::{
    Error, ErrorKind, Fairness, Guard, Key, MemoryEngine, MemoryStore, Options, Result, Unlocked, Ylock,
};
use ylock_testkit::{Call, Fault, Faulty, LosesReplies, Wrapped, Wrapper, eventually, poll_once};

use crate::support::{Gate, Notes, paused};

const SOON: Duration = Duration::from_secs(5);
const LEASE: Duration = Duration::from_secs(10);
/// The releases that are on their way at once, to begin with.
const AT_ONCE: usize = 64;

/// A store with much to do, which refuses everything for a while.
#[derive(Debug)]
struct SlowReleases {
    takes: Duration,
    refuses: Vec<Range<Instant>>,
}

impl SlowReleases {
    fn new(takes: Duration) -> Arc<Self> {
        Arc::new(Self { takes, refuses: Vec::new() })
    }
}

#[async_trait]
impl Fault for SlowReleases {
    async fn before(&self, call: Call) -> Result<()> {
        if call != Call::Release {
            return Ok(());
        }
        if self.refuses.iter().any(|refuses| refuses.contains(&Instant::now())) {
            return Err(Error::new(ErrorKind::Unavailable, "the store is away"));
        }
        tokio::time::sleep(self.takes).await;
        Ok(())
    }

    async fn after(&self, _call: Call) -> Result<()> {
        Ok(())
    }
}

fn throttled(store: &MemoryStore, fault: &Arc<impl Fault>) -> Ylock {
    Ylock::from_arc(Faulty::over(Notes::throttled(store.engine(), AT_ONCE), fault))
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

/// A client that gives back 200 locks, and a store that does not answer yet.
async fn all_places_are_taken() -> (MemoryStore, Arc<Gate>, Ylock) {
    let (store, gate) = (MemoryStore::new(), Arc::new(Gate::before(Call::Release)));
    let ylock = throttled(&store, &gate);
    let held = hold(&ylock, 200).await;
    gate.close();
    drop(held);
    yields().await;
    assert_eq!(gate.waiting(), AT_ONCE);
    (store, gate, ylock)
}

#[tokio::test(start_paused = true)]
async fn a_few_releases_are_on_their_way_at_once_and_one_that_a_waiter_waits_for_is_among_them() {
    let (store, gate, ylock) = all_places_are_taken().await;
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
    let ylock = throttled(&store, &gate).with_options(Options::default().with_fairness(Fairness::Strict));
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
    let notes = Notes::throttled(store.engine(), AT_ONCE);
    let slow = SlowReleases::new(Duration::from_millis(10));
    let ylock = Ylock::from_arc(Faulty::over(notes.clone(), &slow));
    let held = hold(&ylock, 200).await;
    drop(held);
    eventually(SOON, "all are given back", || async { ylock.keys_in_use() == 0 }).await;
    let released: Vec<_> = notes.0.releases().into_iter().map(|(id, _)| id).collect();
    assert_eq!(notes.0.acquired(), released);
}

/// The last of them wait for more than two leases until they are sent: none has failed, and none was lost by its holder.
#[tokio::test(start_paused = true)]
async fn the_wait_for_a_place_is_no_attempt() {
    const MANY: usize = 2_000;
    let (store, slow) = (MemoryStore::new(), SlowReleases::new(Duration::from_secs(1)));
    let ylock = throttled(&store, &slow);
    let (held, mut events) = (hold(&ylock, MANY).await, ylock.events());
    let began = Instant::now();
    let unlocks: Vec<_> = held.into_iter().map(Guard::unlock).collect();
    let unlocked = join_all(unlocks).await;
    assert!(began.elapsed() > LEASE * 2, "{:?}", began.elapsed());
    assert!(unlocked.iter().all(|answer| matches!(answer, Ok(Unlocked::Released))), "{unlocked:?}");
    let left = left(&mut events);
    assert_eq!(left, vec![(0, true); left.len()]);
    assert!(!left.is_empty());
}

/// Returns the failures of each release that has ended, and whether the store has confirmed it.
fn left(events: &mut Events) -> Vec<(u32, bool)> {
    let left = std::iter::from_fn(|| events.try_next()).filter_map(|event| match event {
        Event::ClientEvent(ClientEvent::ReleaseEnded { failures, confirmed, .. }) => {
            Some((failures, confirmed))
        }
        _ => None,
    });
    left.collect()
}

/// The store refuses all at the beginning, for less than a lease, and then for a moment when the leases of most have ended: it has never
/// been silent for a lease.
#[tokio::test(start_paused = true)]
async fn a_release_that_waited_for_long_is_not_given_up_after_a_moment() {
    for first in [Duration::ZERO, LEASE / 5] {
        let (now, moment) = (Instant::now(), Duration::from_millis(500));
        let away = now + LEASE * 2;
        let refuses = vec![now..now + first, away..away + moment];
        let store = MemoryStore::new();
        let slow = Arc::new(SlowReleases { takes: LEASE / 10, refuses });
        let ylock = throttled(&store, &slow);
        let unlocks: Vec<_> = hold(&ylock, 2_000).await.into_iter().map(Guard::unlock).collect();
        let unlocked = join_all(unlocks).await;
        assert!(Instant::now() > away + LEASE);
        assert!(unlocked.iter().all(|answer| matches!(answer, Ok(Unlocked::Released))), "{unlocked:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn where_the_store_does_not_answer_each_release_comes_to_its_end() {
    let hangs = Arc::new(LosesReplies::hanging(Call::Release, usize::MAX));
    let ylock = throttled(&MemoryStore::new(), &hangs);
    let held = hold(&ylock, 2_000).await;
    let began = Instant::now();
    let unlocked = join_all(held.into_iter().map(Guard::unlock)).await;
    assert!(began.elapsed() < LEASE * 2, "{:?}", began.elapsed());
    assert!(unlocked.iter().all(|answer| answer.is_err()));
    assert_eq!(ylock.keys_in_use(), 0);
}

/// An engine over a store that answers no release. It knows of some locks that there is nothing to give back.
#[derive(Debug)]
struct Knows(MemoryEngine);

impl Wrapper for Knows {
    fn inner(&self) -> &dyn Engine {
        &self.0
    }

    fn concurrent_releases(&self) -> Option<usize> {
        Some(AT_ONCE)
    }

    async fn release(&self, key: &Key, _: AcquisitionId, _: Option<&Request>) -> Result<Release> {
        if key.name().ends_with('0') {
            return Ok(Release::WasGone);
        }
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn what_an_engine_knows_by_itself_is_no_answer_of_the_store() {
    let ylock = Ylock::new(Wrapped(Knows(MemoryStore::new().engine())));
    let held = hold(&ylock, 2_000).await;
    let began = Instant::now();
    join_all(held.into_iter().map(Guard::unlock)).await;
    assert!(began.elapsed() < LEASE * 2, "{:?}", began.elapsed());
}

/// Only what was sent may have happened.
#[test]
fn a_release_whose_runtime_ends_while_it_waits_has_not_failed() {
    let (store, gate) = (MemoryStore::new(), Arc::new(Gate::before(Call::Release)));
    let ylock = throttled(&store, &gate);
    let (ends, goes_on) = (paused(), paused());
    drop(goes_on.block_on(hold(&ylock, 1)));
    goes_on.block_on(eventually(SOON, "it is given back", || async { ylock.keys_in_use() == 0 }));
    let mut events = ylock.events();
    ends.block_on(async {
        let held = hold(&ylock, AT_ONCE * 3).await;
        gate.close();
        drop(held);
        eventually(SOON, "all places are taken", || async { gate.waiting() == AT_ONCE }).await;
    });
    gate.open();
    drop(ends);
    goes_on.block_on(eventually(SOON, "all are given back", || async { ylock.keys_in_use() == 0 }));
    let mut left = left(&mut events);
    left.sort_unstable();
    let (sent, waited) = (vec![(1, true); AT_ONCE], vec![(0, true); AT_ONCE * 2]);
    assert_eq!(left, [waited, sent].concat());
}

#[tokio::test(start_paused = true)]
async fn neither_a_waiter_that_gives_up_nor_the_end_of_the_client_lets_all_releases_go() {
    let (store, gate, ylock) = all_places_are_taken().await;
    let wanted = ylock.lock("users", "199");
    assert!(poll_once(Box::pin(wanted.write()).as_mut()).await.is_none());
    let mut closing = Box::pin(ylock.close());
    assert!(poll_once(closing.as_mut()).await.is_none());
    yields().await;
    assert_eq!(gate.waiting(), AT_ONCE + 1);
    gate.open();
    tokio::time::timeout(SOON, closing).await.expect("all are given back");
    assert!(store.is_empty());
}

/// The store may have let in the waiter that was to follow. No caller wants it any more, and it keeps others out.
#[tokio::test(start_paused = true)]
async fn a_release_that_took_a_waiter_along_waits_for_no_place_when_that_waiter_has_gone() {
    let (store, lost) = (MemoryStore::new(), Arc::new(LosesReplies::of(Call::Release, 1)));
    let gate = Arc::new(Gate::before(Call::Release));
    let notes = Notes::throttled(store.engine(), AT_ONCE);
    let ylock = Ylock::from_arc(Faulty::over(Faulty::over(notes, &gate), &lost))
        .with_options(Options::default().with_fairness(Fairness::Strict));
    let (held, wanted) = (hold(&ylock, AT_ONCE).await, ylock.lock("users", "alice"));
    let guard = wanted.write().await.unwrap();
    let mut next = Box::pin(wanted.write());
    assert!(poll_once(next.as_mut()).await.is_none());
    drop(guard);
    eventually(SOON, "the answer gets lost", || async { lost.left() == 0 }).await;
    gate.close();
    drop(held);
    yields().await;
    assert_eq!(gate.waiting(), AT_ONCE);
    drop(next);
    // Sooner than the wait for a place ends because nothing is answered.
    eventually(LEASE / 10, "it is asked again", || async { gate.waiting() > AT_ONCE }).await;
    gate.open();
    eventually(SOON, "all are given back", || async { ylock.keys_in_use() == 0 && store.is_empty() }).await;
}

/// What the releases in a runtime that is not driven wait for never comes.
#[test]
fn a_runtime_that_is_not_driven_keeps_no_other_from_giving_back() {
    let (store, gate) = (MemoryStore::new(), Arc::new(Gate::before(Call::Release)));
    let ylock = throttled(&store, &gate);
    let (stands, runs) = (paused(), paused());
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

/// It was given back in time, and waited less than its lease: it was gone before.
#[tokio::test(start_paused = true)]
async fn a_loss_is_told_also_of_what_waited_for_a_place() {
    let gate = Arc::new(Gate::before(Call::Release));
    let engine = Arc::new(Wrapped(Knows(MemoryStore::new().engine())));
    let ylock = Ylock::from_arc(Faulty::over(engine, &gate));
    gate.close();
    let gone = ylock.lock("users", "alice-0").write().await.unwrap();
    drop(hold(&ylock, AT_ONCE).await);
    eventually(SOON, "all places are taken", || async { gate.waiting() == AT_ONCE }).await;
    let mut unlocks = Box::pin(gone.unlock());
    assert!(poll_once(unlocks.as_mut()).await.is_none());
    yields().await;
    assert_eq!(gate.waiting(), AT_ONCE, "it waits for a place");
    gate.open();
    assert_eq!(tokio::time::timeout(LEASE / 2, unlocks).await.expect("soon").unwrap(), Unlocked::WasLost);
}
