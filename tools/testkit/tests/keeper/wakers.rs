//! A waker that is called may drop what it has, as an executor does with a task that it will not run any more: nothing is locked then.

#![allow(clippy::disallowed_methods, reason = "a test stands outside: it starts threads of its own")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Context;
use std::time::Duration;

use parking_lot::Mutex;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::SubscriberExt;
use ylock_core::layer::TracingLayer;
use ylock_core::{Guard, MemoryStore, Ylock};
use ylock_testkit::{Call, eventually};

use crate::support::{Drops, Gate, given_back, over, within_bounds};

const SOON: Duration = Duration::from_secs(10);

#[test]
fn a_guard_may_be_dropped_by_being_told_of_its_loss() {
    within_bounds(async {
        let ylock = Ylock::in_memory();
        let guard = ylock.lock("group", "name").write().await.unwrap();
        let lease = guard.lease();
        let waker = Drops::waker(guard);
        let mut lost = Box::pin(lease.lost());
        assert!(lost.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        ylock.revoke("group", "name").await.unwrap();
        given_back(&ylock).await;
    });
}

#[test]
fn a_guard_may_be_dropped_by_the_end_of_closing() {
    within_bounds(async {
        let gate = Arc::new(Gate::before(Call::Release));
        let ylock = over(&MemoryStore::new(), &gate);
        let guard = ylock.lock("group", "name").write().await.unwrap();
        gate.close();
        let waker = Drops::waker(guard);
        let mut closing = Box::pin(ylock.close());
        assert!(closing.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        gate.open();
        given_back(&ylock).await;
    });
}

#[test]
fn a_guard_may_be_dropped_by_the_end_of_somebodys_wait() {
    within_bounds(async {
        let ylock = Ylock::in_memory();
        let lock = ylock.lock("group", "name");
        let waker = Drops::waker(lock.write().await.unwrap());
        let mut waits = Box::pin(lock.write());
        assert!(waits.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        drop(waits);
        given_back(&ylock).await;
    });
}

/// Drops a guard when the log is told anything.
struct DropsOnEvents(Mutex<Option<Guard>>);

impl<S: Subscriber> tracing_subscriber::Layer<S> for DropsOnEvents {
    fn on_event(&self, event: &Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
        if *event.metadata().level() == Level::WARN {
            let guard = self.0.lock().take();
            drop(guard);
        }
    }
}

#[test]
fn a_guard_may_be_dropped_by_a_subscriber_of_the_log() {
    within_bounds(async {
        let ylock = Ylock::in_memory();
        let guard = ylock.lock("group", "name").write().await.unwrap();
        let lease = guard.lease();
        let subscriber = tracing_subscriber::registry().with(DropsOnEvents(Mutex::new(Some(guard))));
        let _logging = tracing::subscriber::set_default(subscriber);
        ylock.revoke("group", "name").await.unwrap();
        given_back(&ylock).await;
        assert!(lease.loss().is_some());
    });
}

/// The guard that is dropped is that of another holder of the lock that is lost.
#[test]
fn one_of_two_guards_may_be_dropped_by_a_subscriber_of_the_log() {
    within_bounds(async {
        let ylock = Ylock::in_memory();
        let lock = ylock.lock("group", "name");
        let (kept, other) = (lock.read().await.unwrap(), lock.read().await.unwrap());
        let subscriber = tracing_subscriber::registry().with(DropsOnEvents(Mutex::new(Some(other))));
        let _logging = tracing::subscriber::set_default(subscriber);
        ylock.revoke("group", "name").await.unwrap();
        eventually(SOON, "it is lost", || async { kept.loss().is_some() }).await;
        drop(kept);
        given_back(&ylock).await;
    });
}

/// Drops a guard when a span is cloned, and notes that there was a warning.
#[derive(Default)]
struct DropsOnClones {
    guard: Mutex<Option<Guard>>,
    warned: AtomicBool,
}

impl Subscriber for DropsOnClones {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.warned.fetch_or(*event.metadata().level() == Level::WARN, Ordering::Relaxed);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}

    fn clone_span(&self, id: &Id) -> Id {
        let guard = self.guard.lock().take();
        drop(guard);
        id.clone()
    }
}

#[test]
fn a_guard_may_be_dropped_by_a_subscriber_while_its_long_hold_is_warned_of() {
    within_bounds(async {
        let subscriber = Arc::new(DropsOnClones::default());
        let _logging = tracing::subscriber::set_default(Arc::clone(&subscriber));
        let ylock = Ylock::in_memory().layer(TracingLayer::new().with_slow_hold(Duration::from_millis(20)));
        let guard = ylock.lock("group", "name").write().await.unwrap();
        *subscriber.guard.lock() = Some(guard);
        let warned = || async { subscriber.warned.load(Ordering::Relaxed) };
        eventually(SOON, "a long hold is warned of", warned).await;
        let guard = subscriber.guard.lock().take();
        drop(guard);
        given_back(&ylock).await;
    });
}
