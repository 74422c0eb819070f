//! Spans of acquisitions and holds, and warnings about those that take too long.

#![allow(clippy::disallowed_methods, reason = "time is paused")]

mod support;

use std::time::Duration;

use support::Log;
use tracing::Level;
use ylock_core::layer::TracingLayer;
use ylock_core::testkit::{eventually, poll_once};
use ylock_core::{LossReason, MemoryStore, Ylock};

const SOON: Duration = Duration::from_secs(5);

#[tokio::test]
async fn an_acquisition_and_its_hold_have_a_span_each_with_their_end() {
    let (log, _guard) = Log::of(Level::DEBUG);
    let ylock = Ylock::in_memory().with(TracingLayer::new());
    let held = ylock.lock("users", "alice").write().await.unwrap();
    assert!(ylock.lock("users", "alice").try_read().await.unwrap().is_none());
    drop(held);
    let granted = log.lines(&["ylock.acquire{", "close"]);
    assert_eq!(granted.len(), 2, "{granted:?}");
    for part in
        ["ylock.group=\"users\"", "ylock.name=\"alice\"", "ylock.engine=\"memory\"", "ylock.mode=write"]
    {
        assert!(granted[0].contains(part), "{granted:?}");
    }
    assert!(granted[0].contains("ylock.outcome=\"granted\""), "{granted:?}");
    assert!(granted[1].contains("ylock.outcome=\"not_free\""), "{granted:?}");
    let held = log.lines(&["ylock.hold{", "close", "ylock.end=\"released\""]);
    assert_eq!(held.len(), 1);
    assert!(!held[0].contains("ylock.acquire"), "the hold is not inside the wait: {held:?}");
}

#[tokio::test(start_paused = true)]
async fn the_span_of_a_lost_hold_says_why_and_the_loss_is_warned_of() {
    let (log, _guard) = Log::of(Level::DEBUG);
    let store = MemoryStore::new();
    let ylock = Ylock::new(store.engine()).with(TracingLayer::new());
    let held = ylock.lock("users", "alice").write().await.unwrap();
    Ylock::new(store.engine()).revoke("users", "alice").await.unwrap();
    eventually(SOON, "it is lost", || async { held.loss() == Some(LossReason::Revoked) }).await;
    assert_eq!(log.lines(&["WARN", "a lock was lost", "revoked"]).len(), 1);
    drop(held);
    assert_eq!(
        log.lines(&["ylock.hold{", "close", "ylock.end=\"lost\"", "ylock.reason=\"revoked\""]).len(),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn a_long_wait_and_a_long_hold_are_warned_of_once_while_they_last() {
    // At this level no subscriber wants the spans: the warning names the lock by itself.
    let (log, _guard) = Log::of(Level::WARN);
    let layer =
        TracingLayer::new().with_slow_wait(Duration::from_secs(2)).with_slow_hold(Duration::from_secs(4));
    let ylock = Ylock::in_memory().with(layer);
    let lock = ylock.lock("users", "alice");
    let held = lock.write().await.unwrap();
    let mut waits = Box::pin(lock.write());
    assert!(poll_once(waits.as_mut()).await.is_none());
    let warned = |what: &str| log.lines(&["WARN", what, "alice"]).len();
    tokio::time::sleep(Duration::from_millis(1900)).await;
    assert_eq!((warned("waited for"), warned("held")), (0, 0));
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!((warned("waited for"), warned("held")), (1, 0));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!((warned("waited for"), warned("held")), (1, 1));
    drop((held, waits));
}

#[tokio::test(start_paused = true)]
async fn a_layer_without_thresholds_warns_of_nothing() {
    let (log, _guard) = Log::of(Level::WARN);
    let ylock = Ylock::in_memory()
        .with(TracingLayer::new().with_slow_wait(Duration::ZERO).with_slow_hold(Duration::ZERO));
    let held = ylock.lock("users", "alice").write().await.unwrap();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    drop(held);
    assert!(log.lines(&["WARN"]).is_empty());
}
