//! Readers that join the readers of their process, and what the store is asked for it.

#![allow(clippy::disallowed_methods, reason = "a test stands outside: it looks at time")]

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use ylock_core::{HandOver, MemoryStore, Mode, Options, Ylock};
use ylock_testkit::{Call, CountsCalls, eventually};

use crate::support::{comes, over};

const SOON: Duration = Duration::from_secs(5);

/// The writer elsewhere came later than both; one of them would otherwise wait for it.
#[tokio::test(start_paused = true)]
async fn readers_that_waited_together_enter_together() {
    let store = MemoryStore::new();
    let [here, there, elsewhere] = [(); 3].map(|()| Ylock::new(store.engine()));
    let inside = there.lock("group", "name").write().await.unwrap();
    let lock = here.lock("group", "name");
    let readers = (comes(&lock, Mode::Read).await, comes(&lock, Mode::Read).await);
    let queued = |count| {
        let there = there.clone();
        move || {
            let there = there.clone();
            async move { there.inspect("group", "name").await.unwrap().queue.len() == count }
        }
    };
    eventually(SOON, "the readers are in the queue", queued(1)).await;
    let writer = comes(&elsewhere.lock("group", "name"), Mode::Write).await;
    eventually(SOON, "the writer is behind them", queued(2)).await;
    drop(inside);
    let both = async { (readers.0.await.unwrap(), readers.1.await.unwrap()) };
    let (one, other) = timeout(SOON, both).await.expect("neither waits for the writer");
    assert_eq!(one.token(), other.token());
    drop((one, other));
    drop(timeout(SOON, writer).await.expect("granted soon").unwrap());
}

/// How often the store is asked for a reader that comes half a bound after the last look.
async fn looks(hand_over: HandOver) -> usize {
    let counts = Arc::new(CountsCalls::default());
    let options = Options::default().with_hand_over(hand_over);
    let ylock = over(&MemoryStore::new(), &counts).with_options(options);
    let lock = ylock.lock("group", "name");
    let first = lock.read().await.unwrap();
    sleep(Duration::from_millis(50)).await;
    let second = timeout(SOON, lock.read()).await.expect("granted soon").unwrap();
    drop((first, second));
    counts.of(Call::Renew)
}

#[tokio::test(start_paused = true)]
async fn a_look_is_good_for_as_long_as_a_process_may_keep_a_lock_to_itself() {
    assert_eq!(looks(HandOver::default()).await, 0);
    assert_eq!(looks(HandOver::up_to(0, Duration::from_secs(1))).await, 1, "it may not keep it at all");
}
