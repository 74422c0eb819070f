//! What the keeper does when a call of the engine fails, hangs, or takes its time.

#![allow(clippy::disallowed_methods, reason = "a test stands outside: it looks at time")]

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use ylock_core::{ErrorKind, Guard, LossReason, MemoryStore, Ylock};
use ylock_testkit::{Call, CountsCalls, Fault, Faulty, LosesReplies, Outage, Slow, eventually, poll_once};

use crate::support::over;

const SOON: Duration = Duration::from_secs(5);
const LEASE: Duration = Duration::from_secs(10);

async fn write(ylock: &Ylock) -> Guard {
    timeout(SOON, ylock.lock("group", "name").write()).await.expect("granted soon").unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_release_that_fails_is_repeated_in_the_background() {
    let store = MemoryStore::new();
    let outage = Arc::new(Outage::of(&[Call::Release]));
    let (here, there) = (over(&store, &outage), Ylock::new(store.engine()));
    drop(write(&here).await);
    sleep(LEASE / 4).await;
    assert!(
        there.lock("group", "name").write().now().await.unwrap().is_none(),
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
    let ylock = over(&MemoryStore::new(), &outage);
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
    let ylock = over(&store, &hangs);
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
    let ylock = over(&store, &hangs);
    let guard = write(&ylock).await;
    assert_eq!(timeout(LEASE * 2, guard.lost()).await.expect("it is told"), LossReason::Lapsed);
    drop(write(&ylock).await);
}

#[tokio::test(start_paused = true)]
async fn an_acquisition_that_fails_tells_everybody_and_is_undone() {
    for kind in [Call::ALL, &[Call::Acquire]] {
        let store = MemoryStore::new();
        let outage = Arc::new(Outage::of(kind));
        let ylock = over(&store, &outage);
        let lock = ylock.lock("group", "name");
        let (first, second) = tokio::join!(lock.write(), lock.read());
        assert_eq!(first.unwrap_err().kind(), ErrorKind::Unavailable);
        assert_eq!(second.unwrap_err().kind(), ErrorKind::Unavailable);
        assert_eq!(lock.clone().write().now().await.unwrap_err().kind(), ErrorKind::Unavailable);
        outage.end();
        drop(write(&ylock).await);
        eventually(LEASE, "nothing is left", || async { ylock.keys_in_use() == 0 && store.is_empty() }).await;
    }
}

#[tokio::test]
async fn errors_of_looking_and_of_taking_away_name_engine_and_key() {
    let outage = Arc::new(Outage::of(Call::ALL));
    let ylock = over(&MemoryStore::new(), &outage);
    for error in [ylock.inspect("group", "name").await.err(), ylock.revoke("group", "name").await.err()] {
        let error = error.unwrap();
        assert_eq!((error.key().unwrap().name(), error.engine()), ("name", Some("memory")));
    }
}

#[tokio::test(start_paused = true)]
async fn an_indeterminate_acquisition_is_undone_by_its_identity() {
    let store = MemoryStore::new();
    let (lost, counts) = (Arc::new(LosesReplies::of(Call::Acquire, 1)), Arc::new(CountsCalls::default()));
    let ylock = Ylock::from_arc(Faulty::over(Faulty::over(Arc::new(store.engine()), &counts), &lost));
    let error = ylock.lock("group", "name").write().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Indeterminate);
    // The engine named neither.
    assert_eq!((error.key().unwrap().name(), error.engine()), ("name", Some("memory")));
    eventually(SOON, "it is undone", || async { store.is_empty() }).await;
    assert_eq!(counts.of(Call::Release), 1);
}

#[tokio::test(start_paused = true)]
async fn giving_up_while_a_far_store_answers_leaves_nothing() {
    let store = MemoryStore::new();
    let slow = Arc::new(Slow::new(Duration::from_millis(40), Duration::from_millis(60)));
    let ylock = over(&store, &slow);
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
    let ylock = over(&MemoryStore::new(), &outage);
    let (guard, start) = (write(&ylock).await, Instant::now());
    timeout(LEASE * 5, ylock.close()).await.expect("it ends");
    assert!(start.elapsed() <= LEASE * 2 + Duration::from_secs(1), "{:?}", start.elapsed());
    assert_eq!(guard.loss(), Some(LossReason::Closed));
}

#[tokio::test(start_paused = true)]
async fn closing_again_after_a_close_that_was_dropped_closes_the_engine_once() {
    let (counts, outage) = (Arc::new(CountsCalls::default()), Arc::new(Outage::of(&[Call::Release])));
    let ylock =
        Ylock::from_arc(Faulty::over(Faulty::over(Arc::new(MemoryStore::new().engine()), &outage), &counts));
    let guard = write(&ylock).await;
    assert!(timeout(SOON, ylock.close()).await.is_err());
    assert_eq!((guard.loss(), counts.of(Call::Close)), (Some(LossReason::Closed), 0));
    outage.end();
    tokio::join!(ylock.close(), ylock.close());
    ylock.close().await;
    assert_eq!(counts.of(Call::Close), 1);
}

/// The time that has passed says nothing about the store: this process has asked once, and did not run since.
#[tokio::test(start_paused = true)]
async fn a_pause_does_not_give_up_a_release() {
    let slow = Arc::new(Slow::new(Duration::from_millis(40), Duration::from_millis(60)));
    let ylock = over(&MemoryStore::new(), &slow);
    let mut unlocked = Box::pin(write(&ylock).await.unlock());
    poll_once(unlocked.as_mut()).await;
    sleep(Duration::from_millis(20)).await;
    tokio::time::advance(LEASE * 2).await;
    assert!(timeout(SOON, &mut unlocked).await.expect("given back soon").is_ok());
}

/// Nothing was released while the process did not run.
#[tokio::test(start_paused = true)]
async fn a_pause_of_the_process_does_not_close_the_engine_before_its_locks_are_given_back() {
    let (slow, store) = (Arc::new(Slow::new(SOON / 5, SOON / 5)), MemoryStore::new());
    let counts = Arc::new(CountsCalls::default());
    let ylock = Ylock::from_arc(Faulty::over(Faulty::over(Arc::new(store.engine()), &slow), &counts));
    let guard = write(&ylock).await;
    let mut closing = Box::pin(ylock.close());
    assert!(poll_once(closing.as_mut()).await.is_none());
    sleep(Duration::from_millis(20)).await;
    tokio::time::advance(LEASE * 3).await;
    assert!(poll_once(closing.as_mut()).await.is_none());
    assert_eq!((ylock.keys_in_use(), counts.of(Call::Close)), (1, 0), "its release is on its way");
    timeout(SOON, closing).await.expect("it is closed soon");
    assert_eq!((ylock.keys_in_use(), counts.of(Call::Close)), (0, 1));
    assert_eq!(guard.loss(), Some(LossReason::Closed));
}

/// An engine that is wrong: one of its calls panics, every time.
#[derive(Debug)]
struct Panics(Call, CountsCalls);

#[async_trait::async_trait]
impl Fault for Panics {
    async fn before(&self, call: Call) -> ylock_core::Result<()> {
        self.1.before(call).await?;
        if call == self.0 {
            std::panic::resume_unwind(Box::new("an engine that is wrong"));
        }
        Ok(())
    }

    async fn after(&self, _call: Call) -> ylock_core::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_panics_is_told_as_an_error_and_not_asked_again_without_end() {
    for call in [Call::Acquire, Call::Renew, Call::Release] {
        let panics = Arc::new(Panics(call, CountsCalls::default()));
        let ylock = over(&MemoryStore::new(), &panics);
        let done = timeout(LEASE * 3, async {
            let guard = ylock.lock("group", "name").write().await?;
            if call == Call::Renew {
                assert_eq!(guard.lost().await, LossReason::Lapsed);
            }
            guard.unlock().await
        });
        let done = done.await.unwrap_or_else(|_| panic!("{call:?}: it hangs"));
        assert_eq!(done.is_err(), call != Call::Renew, "{call:?}: {done:?}");
        eventually(LEASE * 2, "nothing is in use", || async { ylock.keys_in_use() == 0 }).await;
        assert!(panics.1.of(call) <= 20, "{call:?}: {}", panics.1.of(call));
    }
}

/// The request that hung is dropped, and the next one has not been sent when the wait ends.
#[tokio::test(start_paused = true)]
async fn a_wait_behind_a_release_that_hangs_is_no_wait_for_a_lock() {
    let store = MemoryStore::new();
    let hangs = Arc::new(LosesReplies::hanging(Call::Release, usize::MAX));
    let ylock = over(&store, &hangs);
    drop(write(&ylock).await);
    let waited = ylock.lock("group", "name").write().within(LEASE / 2).await;
    assert_eq!(waited.unwrap_err().kind(), ErrorKind::Unavailable);
}
