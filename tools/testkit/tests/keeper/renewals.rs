//! When grants are renewed, and what is told of it.

#![allow(clippy::disallowed_methods, reason = "a test stands outside: it looks at time")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep};
use ylock_core::engine::{EarlyRenewals, Engine};
use ylock_core::layer::{ClientEvent, Event, Events};
use ylock_core::{Error, ErrorKind, Fairness, Key, MemoryEngine, MemoryStore, Options, Ylock};
use ylock_testkit::{Wrapped, Wrapper, eventually};

use crate::support::{Asked, Notes};

const SOON: Duration = Duration::from_secs(1);

/// A lease has room for a few requests that get no answer, and none for a pause of a second between them.
#[tokio::test(start_paused = true)]
async fn a_renewal_that_failed_is_tried_again_a_twelfth_of_the_lease_after_it_began() {
    let times = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&times);
    let notes = Notes::over(MemoryStore::new().engine(), move |asked| {
        let Asked::Renew(_) = asked else { return Ok(()) };
        noted.lock().push(Instant::now());
        if noted.lock().len() == 1 { Err(Error::new(ErrorKind::Unavailable, "no answer")) } else { Ok(()) }
    });
    let ylock = Ylock::from_arc(notes);
    let lease = Duration::from_millis(1_200);
    let guard =
        ylock.lock("group", "name").with_options(Options::default().with_lease(lease)).write().await.unwrap();
    eventually(lease, "it is tried again", || async { times.lock().len() == 2 }).await;
    let times = times.lock();
    let pause = times[1] - times[0];
    // A timer is up to a millisecond late.
    assert!((lease / 12..lease / 11).contains(&pause), "{pause:?}");
    assert!(guard.is_valid());
}

/// The delays of renewals that were told.
fn lags(events: &mut Events) -> Vec<Duration> {
    let lag = |event| match event {
        Event::ClientEvent(ClientEvent::Renewing { lag, .. }) => Some(lag),
        _ => None,
    };
    std::iter::from_fn(|| events.try_next()).filter_map(lag).collect()
}

#[tokio::test(start_paused = true)]
async fn a_renewal_is_told_with_its_delay_if_it_was_planned() {
    let ylock = Ylock::new(MemoryStore::new().engine());
    let mut events = ylock.events();
    let strict = Options::default().with_fairness(Fairness::Strict);
    let lock = ylock.lock("group", "name").with_options(strict);
    let _first = lock.read().await.unwrap();
    sleep(Duration::from_secs(1)).await;
    let _second = lock.read().await.unwrap();
    assert!(lags(&mut events).is_empty(), "a look for a reader is not late for anything");
    sleep(Duration::from_secs(4)).await;
    let lags = lags(&mut events);
    assert!(lags.len() == 1 && lags[0] < Duration::from_millis(10), "{lags:?}");
}

/// An engine that is told things.
#[derive(Debug)]
struct IsTold {
    inner: MemoryEngine,
    early: EarlyRenewals,
    renewals: AtomicUsize,
}

impl Wrapper for IsTold {
    fn inner(&self) -> &dyn Engine {
        &self.inner
    }

    fn early_renewals(&self) -> Option<&EarlyRenewals> {
        Some(&self.early)
    }

    async fn renew(
        &self,
        holdings: &[ylock_core::engine::Holding],
    ) -> Vec<ylock_core::Result<ylock_core::engine::Renewal>> {
        self.renewals.fetch_add(1, Ordering::SeqCst);
        self.inner.renew(holdings).await
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_may_have_a_grant_renewed_before_it_is_due() {
    let (inner, early) = (MemoryStore::new().engine(), EarlyRenewals::default());
    let told = Arc::new(Wrapped(IsTold { inner, early: early.clone(), renewals: AtomicUsize::new(0) }));
    let ylock = Ylock::from_arc(told.clone());
    let guard = ylock.lock("group", "name").write().await.unwrap();
    assert_eq!(told.0.renewals.load(Ordering::SeqCst), 0);
    early.ask(&Key::new("group", "name").unwrap());
    eventually(SOON, "it is renewed", || async { told.0.renewals.load(Ordering::SeqCst) == 1 }).await;
    early.ask(&Key::new("group", "other").unwrap());
    sleep(SOON).await;
    assert_eq!(told.0.renewals.load(Ordering::SeqCst), 1, "what is not held is not renewed");
    drop(guard);
}
