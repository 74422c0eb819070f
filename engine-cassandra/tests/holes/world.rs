//! Paused time, and a wall clock that can be set.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use ylock_core::environment::{BoxFuture, Environment, Moment, RuntimeId, SystemEnvironment};

/// Tokio's clock for moments, and a wall clock that can be set.
#[derive(Debug)]
pub(crate) struct World {
    inner: Arc<dyn Environment>,
    wall: AtomicI64,
    start: Moment,
    sleeps: AtomicU64,
}

impl World {
    pub(crate) fn new() -> Arc<Self> {
        let inner = SystemEnvironment::on_tokio_clock();
        Arc::new(Self {
            start: inner.now(),
            inner,
            wall: AtomicI64::new(1_000_000_000_000_000),
            sleeps: AtomicU64::new(0),
        })
    }

    /// Steps the wall clock, forwards or back.
    pub(crate) fn step(&self, micros: i64) {
        self.wall.fetch_add(micros, Ordering::Relaxed);
    }

    /// How often a task of the clients, or the store, has begun to sleep: a client that does nothing sleeps rarely.
    pub(crate) fn sleeps(&self) -> u64 {
        self.sleeps.load(Ordering::Relaxed)
    }
}

impl Environment for World {
    fn now(&self) -> Moment {
        self.inner.now()
    }

    fn wall_micros(&self) -> i64 {
        let running = self.inner.now().since(self.start).as_micros();
        self.wall.load(Ordering::Relaxed) + i64::try_from(running).unwrap()
    }

    fn random(&self) -> u64 {
        self.inner.random()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture {
        self.sleeps.fetch_add(1, Ordering::Relaxed);
        self.inner.sleep(duration)
    }

    fn spawn(&self, future: BoxFuture) {
        self.inner.spawn(future);
    }

    fn spawn_begun(&self, future: BoxFuture, runtime: RuntimeId) {
        self.inner.spawn_begun(future, runtime);
    }

    fn spawn_for_all(&self, future: BoxFuture) {
        self.inner.spawn_for_all(future);
    }

    fn runs_here(&self) -> bool {
        self.inner.runs_here()
    }

    fn enter(&self) -> bool {
        self.inner.enter()
    }
}
