//! Spans of acquisitions and holds, and warnings about those that take too long.

#![allow(clippy::disallowed_methods, reason = "time is paused")]

use std::time::Duration;

use tracing::Level;
use ylock_core::layer::TracingLayer;
use ylock_core::{Error, ErrorKind, Lease, LossReason, MemoryStore, Ylock};
use ylock_testkit::{Log, eventually, poll_once};

use crate::support::{Asked, Notes};

const SOON: Duration = Duration::from_secs(5);

fn warned_once(log: &Log, what: &str, parts: &[&str]) {
    let warned = log.lines(&["WARN", what]);
    assert_eq!(warned.len(), 1, "{warned:?}");
    for part in parts {
        assert!(warned[0].contains(part), "no {part} in {warned:?}");
    }
}

#[tokio::test]
async fn an_acquisition_and_its_hold_have_a_span_each_with_their_end() {
    let (log, _guard) = Log::of(Level::DEBUG);
    let ylock = Ylock::in_memory().layer(TracingLayer::new());
    let held = ylock.lock("users", "alice").write().await.unwrap();
    assert!(ylock.lock("users", "alice").read().now().await.unwrap().is_none());
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
    let ylock = Ylock::new(store.engine()).layer(TracingLayer::new());
    let held = ylock.lock("users", "alice").write().await.unwrap();
    Ylock::new(store.engine()).revoke("users", "alice").await.unwrap();
    eventually(SOON, "it is lost", || async { held.loss() == Some(LossReason::Revoked) }).await;
    let (owners, tokens) =
        (format!("owners=\"{}\"", held.owner()), format!("tokens=\"{}\"", held.token().unwrap()));
    warned_once(
        &log,
        "a lock was lost",
        &["engine=\"memory\"", "alice", &owners, &tokens, "reason=\"revoked\""],
    );
    drop(held);
    assert_eq!(
        log.lines(&["ylock.hold{", "close", "ylock.end=\"lost\"", "ylock.reason=\"revoked\""]).len(),
        1
    );
}

/// The second holder has the grant of the first: its token is not the first one's.
#[tokio::test(start_paused = true)]
async fn the_warning_of_a_lapsed_lock_has_the_token_after_a_hand_over_and_the_cause() {
    let (log, _guard) = Log::of(Level::WARN);
    let refuses_renewals = |asked: &Asked| match asked {
        Asked::Renew(_) => Err(Error::new(ErrorKind::Unavailable, "no answer")),
        _ => Ok(()),
    };
    let ylock = Ylock::from_arc(Notes::over(MemoryStore::new().engine(), refuses_renewals));
    let lock = ylock.lock("users", "alice");
    let first = lock.write().await.unwrap();
    let mut waits = Box::pin(lock.write());
    assert!(poll_once(waits.as_mut()).await.is_none());
    let before = first.token().unwrap();
    drop(first);
    let held = waits.await.unwrap();
    assert_eq!(held.token().unwrap().get(), before.get() + 1, "handed over");
    tokio::time::sleep(lock.options().lease() * 2).await;
    let (owners, tokens) =
        (format!("owners=\"{}\"", held.owner()), format!("tokens=\"{}\"", held.token().unwrap()));
    warned_once(&log, "a lock was lost", &["alice", &owners, &tokens, "reason=\"lapsed\"", "no answer"]);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_is_not_confirmed_after_the_work_is_warned_of_with_lock_owner_and_token() {
    let (log, _guard) = Log::of(Level::WARN);
    let refuses_releases = |asked: &Asked| match asked {
        Asked::Release(..) => Err(Error::new(ErrorKind::Unavailable, "no answer")),
        _ => Ok(()),
    };
    let ylock = Ylock::from_arc(Notes::over(MemoryStore::new().engine(), refuses_releases));
    let work = async |lease: Lease| (lease.owner(), lease.token().unwrap());
    let (owner, token) = ylock.lock("users", "alice").write().run(work).await.unwrap();
    let (owner, token) = (format!("owner={owner}"), format!("token={token}"));
    warned_once(&log, "was not confirmed", &["engine=", "alice", &owner, &token, "no answer"]);
    let parts = ["client=", "engine=", "key=", "alice", &owner, &token, "no answer"];
    warned_once(&log, "a release was given up", &parts);
}

#[tokio::test(start_paused = true)]
async fn a_long_wait_and_a_long_hold_are_warned_of_once_while_they_last() {
    // At this level no subscriber wants the spans: the warning names the lock by itself.
    let (log, _guard) = Log::of(Level::WARN);
    let layer =
        TracingLayer::new().with_slow_wait(Duration::from_secs(2)).with_slow_hold(Duration::from_secs(4));
    let ylock = Ylock::in_memory().layer(layer);
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
        .layer(TracingLayer::new().with_slow_wait(Duration::ZERO).with_slow_hold(Duration::ZERO));
    let held = ylock.lock("users", "alice").write().await.unwrap();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    drop(held);
    assert!(log.lines(&["WARN"]).is_empty());
}
