//! Acquisitions of one owner under one hold: it lasts as long as one of them, and writes as long as one of them writes.

use std::time::Duration;

use tokio::time::timeout;
use ylock_core::{Guard, MemoryStore, Owner, Ylock};
use ylock_testkit::eventually;

const SOON: Duration = Duration::from_secs(5);

/// A client with an owner, and another client over the same store.
struct Two {
    here: Ylock,
    there: Ylock,
    owner: Owner,
}

impl Two {
    fn new() -> Self {
        let store = MemoryStore::new();
        let [here, there] = [(); 2].map(|()| Ylock::new(store.engine()));
        Self { here, there, owner: Owner::new() }
    }

    async fn write(&self) -> Guard {
        self.here.lock("group", "name").owned_by(&self.owner).write().await.unwrap()
    }

    async fn read(&self) -> Guard {
        self.here.lock("group", "name").owned_by(&self.owner).read().await.unwrap()
    }

    /// Returns whether a reader elsewhere may enter.
    async fn lets_readers_in(&self) -> bool {
        self.there.lock("group", "name").read().now().await.unwrap().is_some()
    }

    async fn lets_writers_in(&self) -> bool {
        self.there.lock("group", "name").write().now().await.unwrap().is_some()
    }
}

#[tokio::test(start_paused = true)]
async fn a_writer_that_has_become_a_reader_stays_when_another_read_of_its_owner_ends() {
    let two = Two::new();
    let reads = two.write().await.downgrade().await.unwrap();
    drop(two.read().await);
    assert!(reads.is_valid());
    assert!(!two.lets_writers_in().await);
    assert!(reads.unlock().await.unwrap().is_released());
    assert!(two.lets_writers_in().await);
}

#[tokio::test(start_paused = true)]
async fn one_of_two_writes_of_an_owner_that_becomes_a_read_lets_no_reader_in() {
    let two = Two::new();
    let (outer, inner) = (two.write().await, two.write().await);
    let inner = timeout(SOON, inner.downgrade()).await.expect("soon").unwrap();
    assert!(!two.lets_readers_in().await);
    drop(inner);
    assert!(!two.lets_readers_in().await);
    drop(outer);
    eventually(SOON, "it is given back", || two.lets_writers_in()).await;
}

#[tokio::test(start_paused = true)]
async fn the_last_write_of_an_owner_that_still_reads_lets_readers_in() {
    let two = Two::new();
    let (write, read) = (two.write().await, two.read().await);
    assert!(!two.lets_readers_in().await);
    drop(write);
    // At once, and not with the next renewal.
    eventually(Duration::from_secs(1), "it is shown that it only reads", || two.lets_readers_in()).await;
    assert!(!two.lets_writers_in().await);
    assert!(read.is_valid());
}
