//! What the keeper does with a grant: hands it on, shares it, and lets others have their turn.

#![allow(
    clippy::disallowed_methods,
    reason = "a test stands outside: it looks at time and starts tasks of its own"
)]

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use ylock_core::{Fairness, Guard, HandOver, MemoryStore, Mode, Options, Owner, Ylock};
use ylock_testkit::{Call, CountsCalls, eventually, poll_once};

use crate::support::{Waits, comes, over};

const SOON: Duration = Duration::from_secs(5);

async fn write(ylock: &Ylock) -> Guard {
    timeout(SOON, ylock.lock("group", "name").write()).await.expect("granted soon").unwrap()
}

/// Tasks that note their letter when they are served, and work for a while; all of them are in the queue already.
async fn queue_up(
    ylock: &Ylock,
    letter: char,
    count: usize,
    work: Duration,
    served: &Served,
) -> Vec<JoinHandle<()>> {
    let mut tasks = Vec::new();
    for _ in 0..count {
        let owner = Owner::new();
        let (lock, served) = (ylock.lock("group", "name").owned_by(&owner), Arc::clone(served));
        tasks.push(tokio::spawn(async move {
            let _guard = lock.write().await.unwrap();
            served.lock().push(letter);
            sleep(work).await;
        }));
        let seen =
            || async { ylock.inspect("group", "name").await.unwrap().queue.iter().any(|w| w.owner == owner) };
        eventually(SOON, "it is in the queue", seen).await;
    }
    tasks
}

type Served = Arc<Mutex<String>>;

async fn all(tasks: impl IntoIterator<Item = Vec<JoinHandle<()>>>) {
    for task in tasks.into_iter().flatten() {
        task.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_hands_over_no_more_often_than_allowed() {
    for count in [0, 1, 3] {
        let store = MemoryStore::new();
        let options = Options::default().with_hand_over(HandOver::up_to(count, Duration::from_secs(3600)));
        let (here, there) = (Ylock::new(store.engine()).with_options(options), Ylock::new(store.engine()));
        let served = Served::default();
        let guard = write(&here).await;
        let tasks_here = queue_up(&here, 'a', 6, Duration::from_millis(1), &served).await;
        let rest = Ylock::new(store.engine());
        let tasks_there = queue_up(&there, 'b', 1, Duration::from_millis(1), &served).await;
        let tasks_rest = queue_up(&rest, 'c', 1, Duration::from_millis(1), &served).await;
        drop(guard);
        all([tasks_here, tasks_there, tasks_rest]).await;
        let served = served.lock().clone();
        let first = served.find('b').unwrap();
        assert_eq!(first, count as usize, "{served}: after {count} hand-overs the next client has its turn");
        assert_eq!(
            &served[first..first + 2],
            "bc",
            "{served}: and the one after it, before the first has another turn"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_hands_over_no_longer_than_allowed() {
    let store = MemoryStore::new();
    let options = Options::default().with_hand_over(HandOver::up_to(1000, Duration::from_millis(100)));
    let (here, there) = (Ylock::new(store.engine()).with_options(options), Ylock::new(store.engine()));
    let served = Served::default();
    let guard = write(&here).await;
    let tasks_there = queue_up(&there, 'b', 1, Duration::ZERO, &served).await;
    let start = Instant::now();
    let tasks_here = queue_up(&here, 'a', 40, Duration::from_millis(30), &served).await;
    drop(guard);
    all([tasks_there]).await;
    assert!(start.elapsed() <= Duration::from_millis(200), "its turn came after {:?}", start.elapsed());
    all([tasks_here]).await;
    let served = served.lock().clone();
    assert!(served.find('b').unwrap() <= 4, "{served}");
}

#[tokio::test(start_paused = true)]
async fn a_client_with_no_time_for_it_hands_nothing_over() {
    let counts = Arc::new(CountsCalls::default());
    let options = Options::default().with_hand_over(HandOver::up_to(1000, Duration::ZERO));
    let ylock = over(&MemoryStore::new(), &counts).with_options(options);
    let (guard, served) = (write(&ylock).await, Served::default());
    let tasks = queue_up(&ylock, 'a', 3, Duration::ZERO, &served).await;
    drop(guard);
    all([tasks]).await;
    assert_eq!(counts.of(Call::Acquire), 4, "one trip for each");
}

#[tokio::test(start_paused = true)]
async fn strict_hands_nothing_over() {
    let store = MemoryStore::new();
    let counts = Arc::new(CountsCalls::default());
    let strict = Options::default().with_fairness(Fairness::Strict);
    let ylock = over(&store, &counts).with_options(strict);
    let (guard, served) = (write(&ylock).await, Served::default());
    let tasks = queue_up(&ylock, 'a', 10, Duration::ZERO, &served).await;
    drop(guard);
    all([tasks]).await;
    assert_eq!(counts.of(Call::Acquire), 11, "one trip for each");
}

#[tokio::test(start_paused = true)]
async fn fair_hands_over_without_any_trip() {
    let store = MemoryStore::new();
    let counts = Arc::new(CountsCalls::default());
    let ylock = over(&store, &counts);
    let (guard, served) = (write(&ylock).await, Served::default());
    let tasks = queue_up(&ylock, 'a', 10, Duration::ZERO, &served).await;
    drop(guard);
    all([tasks]).await;
    assert_eq!(counts.of(Call::Acquire), 1);
}

#[tokio::test(start_paused = true)]
async fn entering_again_needs_no_trip() {
    let counts = Arc::new(CountsCalls::default());
    let ylock = over(&MemoryStore::new(), &counts);
    let outer = write(&ylock).await;
    let calls = counts.all();
    let again = ylock.lock("group", "name").owned_by(&outer.owner());
    for _ in 0..100 {
        drop((again.write().await.unwrap(), again.read().await.unwrap()));
    }
    assert_eq!(counts.all(), calls);
}

#[tokio::test(start_paused = true)]
async fn readers_of_one_client_share_one_grant() {
    let counts = Arc::new(CountsCalls::default());
    let ylock = over(&MemoryStore::new(), &counts);
    let lock = ylock.lock("group", "name");
    let mut readers = Vec::new();
    for _ in 0..100 {
        readers.push(lock.read().await.unwrap());
    }
    assert_eq!(counts.of(Call::Acquire), 1);
    drop(readers);
    drop(write(&ylock).await);
}

#[tokio::test(start_paused = true)]
async fn unfair_overtakes_and_fair_does_not() {
    let store = MemoryStore::new();
    let [first, second, third] = [(); 3].map(|()| Ylock::new(store.engine()));
    let reader = first.lock("group", "name").read().await.unwrap();
    let writer = queue_up(&second, 'w', 1, Duration::ZERO, &Served::default()).await;
    let lock = third.lock("group", "name");
    assert!(
        lock.read().within(Duration::from_secs(1)).await.unwrap().is_none(),
        "fair stays behind the writer"
    );
    for client in [&third, &first] {
        let unfair =
            client.lock("group", "name").with_options(Options::default().with_fairness(Fairness::Unfair));
        let overtakes = unfair.read().within(Duration::from_secs(1)).await.unwrap();
        assert!(overtakes.is_some(), "unfair does not");
    }
    drop(reader);
    all([writer]).await;
}

/// What the writer has sent before must be refused by a resource that the reader has asked since.
#[tokio::test(start_paused = true)]
async fn a_reader_that_joins_a_former_writer_has_a_larger_token() {
    let ylock = Ylock::new(MemoryStore::new().engine());
    let former = write(&ylock).await.downgrade().await.unwrap();
    let [first, second] = [(); 2].map(|()| ylock.lock("group", "name"));
    let (first, second) = (first.read().await.unwrap(), second.read().await.unwrap());
    assert!(first.token() > former.token());
    assert_eq!(second.token(), first.token(), "no writer came between the two");
}

/// A pause that a waiter asked to survive must not cost it a lock that it got from a neighbour with a short lease.
#[tokio::test(start_paused = true)]
async fn a_waiter_is_not_handed_a_lease_that_is_shorter_than_its_own() {
    let ylock = Ylock::new(MemoryStore::new().engine());
    let lock = |lease| {
        let options = Options::default().with_lease(Duration::from_secs(lease));
        ylock.lock("group", "name").with_options(options)
    };
    let first = lock(10).write().await.unwrap();
    let (long, short) = (lock(3600), lock(5));
    let waits = tokio::spawn(async move { long.write().await.unwrap() });
    let behind = tokio::spawn(async move { short.write().await.unwrap() });
    eventually(SOON, "both wait", || async { ylock.usage()[0].waiting() == 2 }).await;
    let token = first.token();
    drop(first);
    let guard = waits.await.unwrap();
    assert!(guard.remaining() > Duration::from_secs(3000), "{:?}", guard.remaining());
    assert!(guard.token() > token);
    drop(guard);
    let guard = behind.await.unwrap();
    assert!(guard.remaining() > Duration::from_secs(3000), "a longer one will do: {:?}", guard.remaining());
}

#[tokio::test(start_paused = true)]
async fn a_reader_does_not_share_a_lease_that_is_shorter_than_its_own() {
    let ylock = Ylock::new(MemoryStore::new().engine());
    let lock = |lease| {
        let options = Options::default().with_lease(Duration::from_secs(lease));
        ylock.lock("group", "name").with_options(options)
    };
    let first = lock(10).read().await.unwrap();
    let second = lock(10).read().await.unwrap();
    let long = lock(3600);
    assert!(long.read().now().await.unwrap().is_none());
    let waits = tokio::spawn(async move { long.read().await.unwrap() });
    eventually(SOON, "it waits", || async { ylock.usage()[0].waiting() == 1 }).await;
    drop((first, second));
    assert!(waits.await.unwrap().remaining() > Duration::from_secs(3000));
}

/// A waiter of this client that is in the store's queue as the last of `place` waiters.
async fn joins(lock: &ylock_core::Lock, place: usize, seen: &Ylock) -> Waits {
    let waits = comes(lock, Mode::Write).await;
    let queued = || async { seen.inspect("group", "name").await.unwrap().queue.len() == place };
    eventually(SOON, "it is in the queue", queued).await;
    waits
}

#[tokio::test(start_paused = true)]
async fn strict_a_place_in_the_queue_of_all_processes_is_not_inherited() {
    let store = MemoryStore::new();
    let strict = Options::default().with_fairness(Fairness::Strict);
    let (seen, here, there) = (
        Ylock::new(store.engine()),
        Ylock::new(store.engine()).with_options(strict.clone()),
        Ylock::new(store.engine()).with_options(strict),
    );
    let guard = write(&seen).await;
    let gives_up = joins(&here.lock("group", "name"), 1, &seen).await;
    let mut second = joins(&there.lock("group", "name"), 2, &seen).await;
    let lock = here.lock("group", "name");
    let mut third = Box::pin(lock.write());
    assert!(poll_once(third.as_mut()).await.is_none());
    drop((gives_up, guard));
    let guard = tokio::select! {
        biased;
        guard = timeout(SOON, &mut second) => guard.expect("granted soon").unwrap(),
        _ = &mut third => panic!("it came later"),
    };
    assert!(poll_once(third.as_mut()).await.is_none());
    drop(guard);
    drop(timeout(SOON, third).await.expect("granted soon").unwrap());
}

/// The store was told of a writer behind the readers of its process.
#[tokio::test(start_paused = true)]
async fn readers_elsewhere_enter_at_once_when_the_writer_before_them_has_given_up() {
    let store = MemoryStore::new();
    let (here, there) = (Ylock::new(store.engine()), Ylock::new(store.engine()));
    let reader = here.lock("group", "name").read().await.unwrap();
    let writer = joins(&here.lock("group", "name"), 1, &there).await;
    let lock = there.lock("group", "name");
    let mut waits = Box::pin(lock.read());
    assert!(timeout(Duration::from_secs(1), &mut waits).await.is_err());
    drop(writer);
    let start = Instant::now();
    drop(timeout(SOON, waits).await.expect("granted soon").unwrap());
    assert!(reader.is_valid() && start.elapsed() < Duration::from_millis(100), "{:?}", start.elapsed());
}
