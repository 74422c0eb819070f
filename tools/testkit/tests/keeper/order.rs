//! The order in which the waiters of one process enter.

use std::time::Duration;

use tokio::time::timeout;
use ylock_core::{Fairness, Guard, Lock, MemoryStore, Mode, Options, Ylock};
use ylock_testkit::poll_once;

use crate::support::{Waits, comes};

const SOON: Duration = Duration::from_secs(5);

fn client() -> Ylock {
    Ylock::new(MemoryStore::new().engine())
}

fn lock(ylock: &Ylock, fairness: Fairness) -> Lock {
    ylock.lock("group", "name").with_options(Options::default().with_fairness(fairness))
}

async fn enters(waits: Waits) -> Guard {
    timeout(SOON, waits).await.expect("granted soon").unwrap()
}

#[tokio::test(start_paused = true)]
async fn only_an_unfair_reader_overtakes_a_writer_that_waits_for_readers() {
    let ylock = client();
    let reader = ylock.lock("group", "name").read().await.unwrap();
    let writer = comes(&lock(&ylock, Fairness::Fair), Mode::Write).await;
    let fair = comes(&lock(&ylock, Fairness::Fair), Mode::Read).await;
    let unfair = lock(&ylock, Fairness::Unfair);
    drop(timeout(Duration::from_millis(1), unfair.read()).await.expect("at once").unwrap());
    drop(reader);
    drop(enters(writer).await);
    drop(enters(fair).await);
}

#[tokio::test(start_paused = true)]
async fn a_writer_overtakes_no_writer_that_waits_for_readers() {
    for fairness in [Fairness::Fair, Fairness::Unfair] {
        let ylock = client();
        let reader = ylock.lock("group", "name").read().await.unwrap();
        let first = comes(&lock(&ylock, Fairness::Fair), Mode::Write).await;
        let mut second = comes(&lock(&ylock, fairness), Mode::Write).await;
        drop(reader);
        let first = enters(first).await;
        assert!(poll_once(second.as_mut()).await.is_none());
        drop(first);
        drop(enters(second).await);
    }
}

#[tokio::test(start_paused = true)]
async fn an_unfair_reader_overtakes_no_waiter_while_a_writer_is_inside() {
    let ylock = client();
    let inside = ylock.lock("group", "name").write().await.unwrap();
    let first = comes(&lock(&ylock, Fairness::Fair), Mode::Write).await;
    let mut reader = comes(&lock(&ylock, Fairness::Unfair), Mode::Read).await;
    drop(inside);
    let first = enters(first).await;
    assert!(poll_once(reader.as_mut()).await.is_none());
    drop(first);
    drop(enters(reader).await);
}
