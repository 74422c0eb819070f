//! The order in which the waiters of one process enter.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::timeout;
use ylock_core::{Fairness, Guard, MemoryStore, Mode, Options, Result, Ylock};
use ylock_testkit::poll_once;

const SOON: Duration = Duration::from_secs(5);

type Waits = Pin<Box<dyn Future<Output = Result<Guard>> + Send>>;

fn client() -> Ylock {
    Ylock::new(MemoryStore::new().engine())
}

/// A caller that has come.
async fn comes(ylock: &Ylock, mode: Mode, fairness: Fairness) -> Waits {
    let lock = ylock.lock("group", "name").with_options(Options::default().with_fairness(fairness));
    let mut waits: Waits = Box::pin(async move {
        match mode {
            Mode::Read => lock.read().await,
            Mode::Write => lock.write().await,
        }
    });
    assert!(poll_once(waits.as_mut()).await.is_none(), "{mode}, {fairness}: it entered at once");
    waits
}

async fn enters(waits: Waits) -> Guard {
    timeout(SOON, waits).await.expect("granted soon").unwrap()
}

#[tokio::test(start_paused = true)]
async fn only_an_unfair_reader_overtakes_a_writer_that_waits_for_readers() {
    let ylock = client();
    let reader = ylock.lock("group", "name").read().await.unwrap();
    let writer = comes(&ylock, Mode::Write, Fairness::Fair).await;
    let fair = comes(&ylock, Mode::Read, Fairness::Fair).await;
    let unfair = ylock.lock("group", "name").with_options(Options::default().with_fairness(Fairness::Unfair));
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
        let first = comes(&ylock, Mode::Write, Fairness::Fair).await;
        let mut second = comes(&ylock, Mode::Write, fairness).await;
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
    let first = comes(&ylock, Mode::Write, Fairness::Fair).await;
    let mut reader = comes(&ylock, Mode::Read, Fairness::Unfair).await;
    drop(inside);
    let first = enters(first).await;
    assert!(poll_once(reader.as_mut()).await.is_none());
    drop(first);
    drop(enters(reader).await);
}
