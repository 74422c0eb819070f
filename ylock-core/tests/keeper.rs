//! What the keeper does with an engine: how often it calls it, and what it does when a call fails.

#![allow(
    clippy::disallowed_methods,
    reason = "a test stands outside: it looks at time and starts tasks of its own"
)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use ylock_core::engine::Engine;
use ylock_core::testkit::{Call, CountsCalls, Faulty, LosesReplies, Outage, Slow, eventually, poll_once};
use ylock_core::{
    ErrorKind, Fairness, Guard, HandOver, LossReason, MemoryStore, Options, Owner, Unlocked, Ylock,
};

const SOON: Duration = Duration::from_secs(5);
const LEASE: Duration = Duration::from_secs(10);

fn over(store: &MemoryStore) -> Arc<dyn Engine> {
    Arc::new(store.engine())
}

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
            served.lock().unwrap().push(letter);
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
        let served = served.lock().unwrap().clone();
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
    let served = served.lock().unwrap().clone();
    assert!(served.find('b').unwrap() <= 4, "{served}");
}

#[tokio::test(start_paused = true)]
async fn strict_hands_nothing_over() {
    let store = MemoryStore::new();
    let counts = Arc::new(CountsCalls::default());
    let strict = Options::default().with_fairness(Fairness::Strict);
    let ylock = Ylock::over(Faulty::over(over(&store), &counts)).with_options(strict);
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
    let ylock = Ylock::over(Faulty::over(over(&store), &counts));
    let (guard, served) = (write(&ylock).await, Served::default());
    let tasks = queue_up(&ylock, 'a', 10, Duration::ZERO, &served).await;
    drop(guard);
    all([tasks]).await;
    assert_eq!(counts.of(Call::Acquire), 1);
}

#[tokio::test(start_paused = true)]
async fn entering_again_needs_no_trip() {
    let counts = Arc::new(CountsCalls::default());
    let ylock = Ylock::over(Faulty::over(over(&MemoryStore::new()), &counts));
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
    let ylock = Ylock::over(Faulty::over(over(&MemoryStore::new()), &counts));
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
        lock.read_within(Duration::from_secs(1)).await.unwrap().is_none(),
        "fair stays behind the writer"
    );
    for client in [&third, &first] {
        let unfair =
            client.lock("group", "name").with_options(Options::default().with_fairness(Fairness::Unfair));
        let overtakes = unfair.read_within(Duration::from_secs(1)).await.unwrap();
        assert!(overtakes.is_some(), "unfair does not");
    }
    drop(reader);
    all([writer]).await;
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
    let ylock = Ylock::over(Faulty::over(over(&MemoryStore::new()), &counts));
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
async fn a_release_that_fails_is_repeated_in_the_background() {
    let store = MemoryStore::new();
    let outage = Arc::new(Outage::of(&[Call::Release]));
    let (here, there) = (Ylock::over(Faulty::over(over(&store), &outage)), Ylock::new(store.engine()));
    drop(write(&here).await);
    sleep(LEASE / 4).await;
    assert!(
        there.lock("group", "name").try_write().await.unwrap().is_none(),
        "the store does not know it yet"
    );
    let start = Instant::now();
    outage.end();
    drop(write(&there).await);
    assert!(start.elapsed() <= Duration::from_millis(1_600), "repeated only after {:?}", start.elapsed());
    assert_eq!(here.keys_in_use(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_unlock_that_nobody_confirms_says_so_after_about_one_lease() {
    let outage = Arc::new(Outage::of(&[Call::Release]));
    let ylock = Ylock::over(Faulty::over(over(&MemoryStore::new()), &outage));
    let (guard, start) = (write(&ylock).await, Instant::now());
    let error = timeout(LEASE * 3, guard.unlock()).await.expect("it ends").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Indeterminate | ErrorKind::Unavailable), "{error}");
    assert!(start.elapsed() <= LEASE * 2, "{:?}", start.elapsed());
    assert_eq!(ylock.keys_in_use(), 0);
    drop(write(&ylock).await);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_hangs_does_not_hang_for_ever() {
    let store = MemoryStore::new();
    let hangs = Arc::new(LosesReplies::hanging(Call::Release, 1));
    let ylock = Ylock::over(Faulty::over(over(&store), &hangs));
    let guard = write(&ylock).await;
    let unlocked = timeout(LEASE * 3, guard.unlock()).await;
    assert!(unlocked.is_ok(), "it hangs");
    let again = timeout(LEASE * 3, ylock.lock("group", "name").write()).await;
    drop(again.expect("nor does the next acquisition").unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_hangs_loses_the_lock_in_time() {
    let store = MemoryStore::new();
    let hangs = Arc::new(LosesReplies::hanging(Call::Renew, 1));
    let ylock = Ylock::over(Faulty::over(over(&store), &hangs));
    let guard = write(&ylock).await;
    assert_eq!(timeout(LEASE * 2, guard.lost()).await.expect("it is told"), LossReason::Lapsed);
    drop(write(&ylock).await);
}

#[tokio::test(start_paused = true)]
async fn an_acquisition_that_fails_tells_everybody_and_is_undone() {
    for kind in [Outage::EVERYTHING, &[Call::Acquire]] {
        let store = MemoryStore::new();
        let outage = Arc::new(Outage::of(kind));
        let ylock = Ylock::over(Faulty::over(over(&store), &outage));
        let lock = ylock.lock("group", "name");
        let (first, second) = tokio::join!(lock.write(), lock.read());
        assert_eq!(first.unwrap_err().kind(), ErrorKind::Unavailable);
        assert_eq!(second.unwrap_err().kind(), ErrorKind::Unavailable);
        assert_eq!(lock.clone().try_write().await.unwrap_err().kind(), ErrorKind::Unavailable);
        outage.end();
        drop(write(&ylock).await);
        eventually(LEASE, "nothing is left", || async { ylock.keys_in_use() == 0 && store.is_empty() }).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_indeterminate_acquisition_is_undone_by_its_identity() {
    let store = MemoryStore::new();
    let (lost, counts) = (Arc::new(LosesReplies::of(Call::Acquire, 1)), Arc::new(CountsCalls::default()));
    let ylock = Ylock::over(Faulty::over(Faulty::over(over(&store), &counts), &lost));
    let error = ylock.lock("group", "name").write().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Indeterminate);
    assert_eq!(error.key().unwrap().name(), "name");
    eventually(SOON, "it is undone", || async { store.is_empty() }).await;
    assert_eq!(counts.of(Call::Release), 1);
}

#[tokio::test(start_paused = true)]
async fn giving_up_while_a_far_store_answers_leaves_nothing() {
    let store = MemoryStore::new();
    let slow = Arc::new(Slow::new(Duration::from_millis(40), Duration::from_millis(60)));
    let ylock = Ylock::over(Faulty::over(over(&store), &slow));
    let lock = ylock.lock("group", "name");
    for millis in 0..120 {
        let mut waiting = Box::pin(lock.write());
        assert!(poll_once(waiting.as_mut()).await.is_none());
        sleep(Duration::from_millis(millis)).await;
        drop(waiting);
        eventually(SOON, "nothing is left", || async { ylock.keys_in_use() == 0 && store.is_empty() }).await;
    }
}

#[tokio::test(start_paused = true)]
async fn closing_ends_although_the_store_does_not_answer() {
    let outage = Arc::new(Outage::of(&[Call::Release, Call::Close]));
    let ylock = Ylock::over(Faulty::over(over(&MemoryStore::new()), &outage));
    let (guard, start) = (write(&ylock).await, Instant::now());
    timeout(LEASE * 5, ylock.close()).await.expect("it ends");
    assert!(start.elapsed() <= LEASE * 2 + Duration::from_secs(1), "{:?}", start.elapsed());
    assert_eq!(guard.loss(), Some(LossReason::Closed));
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
