//! A subscriber of the log that panics in the middle of what is carried out at once.

#![allow(clippy::disallowed_methods, reason = "a test stands outside: it starts tasks of its own")]

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::timeout;
use tracing::Level;
use ylock_core::engine::{AcquisitionId, AtOnce, Engine, Grant, Release, Request};
use ylock_core::environment::Environment;
use ylock_core::{Key, MemoryEngine, MemoryStore, Result, Ylock};
use ylock_testkit::{Wrapped, Wrapper};

use crate::support::{PanickingLog, Warped};

/// The machine sleeps for longer than a lease, once, while the store answers.
struct Sleeps {
    inner: MemoryEngine,
    environment: Arc<Warped>,
    awake: AtomicBool,
    at_once: bool,
}

impl fmt::Debug for Sleeps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sleeps")
    }
}

impl Sleeps {
    fn sleep(&self) {
        if !self.awake.swap(true, Ordering::SeqCst) {
            self.environment.jump(Duration::from_secs(20));
        }
    }
}

impl AtOnce for Sleeps {
    fn acquire(&self, request: &Request) -> Option<Result<Option<Grant>>> {
        let answer = AtOnce::acquire(&self.inner, request);
        self.sleep();
        answer
    }

    fn release(&self, key: &Key, id: AcquisitionId, next: Option<&Request>) -> Result<Release> {
        AtOnce::release(&self.inner, key, id, next)
    }
}

impl Wrapper for Sleeps {
    fn inner(&self) -> &dyn Engine {
        &self.inner
    }

    fn at_once(&self) -> Option<&dyn AtOnce> {
        self.at_once.then_some(self)
    }

    async fn acquire(&self, request: &Request) -> Result<Option<Grant>> {
        let answer = Engine::acquire(&self.inner, request).await;
        self.sleep();
        answer
    }
}

async fn the_key_is_not_stuck(at_once: bool) {
    let environment = Warped::new();
    let store = MemoryStore::in_environment(Arc::clone(&environment) as Arc<dyn Environment>);
    let engine = Sleeps { inner: store.engine(), environment, awake: AtomicBool::new(false), at_once };
    let ylock = Ylock::from_arc(Arc::new(Wrapped(engine)));
    let lock = ylock.lock("group", "name");
    {
        let _log = PanickingLog::of(Level::WARN);
        let first = lock.clone();
        let first =
            timeout(Duration::from_secs(60), tokio::spawn(async move { drop(first.write().await) })).await;
        first.expect("it is stuck").expect("the log is no concern of the caller");
    }
    let guard = timeout(Duration::from_secs(60), lock.write()).await.expect("the key is stuck").unwrap();
    drop(guard.unlock().await);
    timeout(Duration::from_secs(60), ylock.close()).await.unwrap();
    assert_eq!(ylock.keys_in_use(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_that_panics_does_not_stick_a_key_under_a_driver() {
    the_key_is_not_stuck(false).await;
}

/// The lease has ended before the answer: the loss is told in the middle.
#[tokio::test(start_paused = true)]
async fn a_subscriber_that_panics_does_not_stick_a_key_that_is_answered_at_once() {
    the_key_is_not_stuck(true).await;
}
