//! Waiters that stand still, and waiters whose session is kept by no other task.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use ylock_core::Mode;
use ylock_core::engine::Engine;
use ylock_core::environment::{BoxFuture, Environment, Moment, RuntimeId};

use crate::fake::SESSION;
use crate::fixture::Fixture;

/// Far shorter than the session: places end with it, and the session goes on.
const LEASE: Duration = Duration::from_secs(3);

/// Until then what is due has happened.
const SOON: Duration = Duration::from_millis(50);

/// A runtime that is not driven any more: background work is kept, and does not go on.
struct Undriven {
    driven: Arc<dyn Environment>,
    kept: Mutex<Vec<BoxFuture>>,
}

impl Environment for Undriven {
    fn now(&self) -> Moment {
        self.driven.now()
    }

    fn wall_micros(&self) -> i64 {
        self.driven.wall_micros()
    }

    fn random(&self) -> u64 {
        self.driven.random()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture {
        self.driven.sleep(duration)
    }

    fn spawn(&self, future: BoxFuture) {
        self.kept.lock().push(future);
    }

    fn spawn_begun(&self, future: BoxFuture, _runtime: RuntimeId) {
        self.kept.lock().push(future);
    }

    fn spawn_for_all(&self, future: BoxFuture) {
        self.kept.lock().push(future);
    }

    fn enter(&self) -> bool {
        self.driven.enter()
    }

    fn runs_here(&self) -> bool {
        self.driven.runs_here()
    }
}

impl fmt::Debug for Undriven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Undriven")
    }
}

/// It would lose its place, though it runs.
#[tokio::test(start_paused = true)]
async fn a_waiter_keeps_its_session_when_the_background_work_of_its_client_is_not_driven() {
    let fixture = Fixture::new();
    let here = fixture.client().await;
    here.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    // The node stays, and its client sends nothing more: all heartbeats are those of the waiter.
    fixture.fake.give_up(0);
    let undriven = Arc::new(Undriven { driven: fixture.environment(), kept: Mutex::default() });
    let there = fixture.client_in(undriven, &Fixture::options()).await.unwrap();
    let waits = fixture.acquiring(&there, Mode::Write);
    fixture.until_contenders(2).await;
    for _ in 0..4 {
        fixture.fake.sent();
        tokio::time::sleep(SESSION / 2).await;
        let sent = fixture.fake.sent();
        assert!(sent.contains(&"check"), "{sent:?}");
        assert!(sent.len() < 20, "{sent:?}");
    }
    assert!(!waits.is_finished());
    waits.abort();
}

/// The others do not wait for it any longer than that.
#[tokio::test(start_paused = true)]
async fn a_place_whose_caller_does_not_run_any_more_is_given_up_when_its_lease_ends() {
    let fixture = Fixture::new();
    let (here, there) =
        (fixture.client().await, fixture.client_with(&Fixture::short_leases(LEASE)).await.unwrap());
    here.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    let request = fixture.request(Mode::Write).with_lease(LEASE);
    let mut waits = Box::pin(there.acquire(&request));
    assert!(tokio::time::timeout(SOON, &mut waits).await.is_err());
    tokio::time::sleep(LEASE - SOON * 2).await;
    assert_eq!(fixture.contenders().len(), 2);
    tokio::time::sleep(SOON * 2).await;
    assert_eq!(fixture.contenders().len(), 1);
    drop(waits);
}

/// Contenders that come meanwhile would be before it.
#[tokio::test(start_paused = true)]
async fn a_waiter_that_stood_still_for_its_lease_queues_again_as_soon_as_it_runs() {
    let fixture = Fixture::new();
    let (here, there) =
        (fixture.client().await, fixture.client_with(&Fixture::short_leases(LEASE)).await.unwrap());
    here.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    let request = fixture.request(Mode::Write).with_lease(LEASE);
    let mut waits = pin!(there.acquire(&request));
    assert!(tokio::time::timeout(SOON, &mut waits).await.is_err());
    assert_eq!(fixture.contenders().len(), 2);
    tokio::time::sleep(LEASE + SOON).await;
    assert_eq!(fixture.contenders().len(), 1, "its place is given up");
    assert!(tokio::time::timeout(SOON, &mut waits).await.is_err());
    assert_eq!(fixture.contenders().len(), 2);
}
