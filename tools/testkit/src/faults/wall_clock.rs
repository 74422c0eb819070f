//! A wall clock that can be set.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use ylock_core::engine::Engine;
use ylock_core::environment::{Answer, BoxFuture, Environment, Moment, RuntimeId};

use crate::wrapper::{Wrapped, Wrapper};

/// The wall clock of one client, which shows what it was set to until it is set again.
#[derive(Clone, Debug)]
pub struct WallClock(Arc<AtomicI64>);

impl WallClock {
    /// Creates a clock that shows so many microseconds since 1970.
    pub fn at(micros: i64) -> Self {
        Self(Arc::new(AtomicI64::new(micros)))
    }

    /// Sets the clock.
    pub fn set(&self, micros: i64) {
        self.0.store(micros, Ordering::SeqCst);
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        let micros = i64::try_from(by.as_micros()).expect("less than ages");
        self.0.fetch_add(micros, Ordering::SeqCst);
    }

    /// Returns what the clock shows, in microseconds since 1970.
    pub fn shows(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Returns the engine of a client with this wall clock, as a fixture wants it. What the engine itself reads is another clock.
    pub fn over(&self, inner: Arc<dyn Engine>) -> Arc<dyn Engine> {
        let environment = Set { inner: inner.environment(), clock: self.clone() };
        Arc::new(Wrapped(Clocked { inner, environment: Arc::new(environment) }))
    }
}

#[derive(Debug)]
struct Clocked {
    inner: Arc<dyn Engine>,
    environment: Arc<Set>,
}

impl Wrapper for Clocked {
    fn inner(&self) -> &dyn Engine {
        &*self.inner
    }

    fn environment(&self) -> Arc<dyn Environment> {
        Arc::clone(&self.environment) as Arc<dyn Environment>
    }
}

#[derive(Debug)]
struct Set {
    inner: Arc<dyn Environment>,
    clock: WallClock,
}

impl Environment for Set {
    fn now(&self) -> Moment {
        self.inner.now()
    }

    fn wall_micros(&self) -> i64 {
        self.clock.shows()
    }

    fn random(&self) -> u64 {
        self.inner.random()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture {
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

    fn enter(&self) -> bool {
        self.inner.enter()
    }

    fn spawn_beside(&self, future: BoxFuture) {
        self.inner.spawn_beside(future);
    }

    fn abandon_standing(&self, which: Option<RuntimeId>, patience: Duration) -> Answer<bool> {
        self.inner.abandon_standing(which, patience)
    }

    fn end_of_runtime(&self) -> Answer<()> {
        self.inner.end_of_runtime()
    }

    fn runs_here(&self) -> bool {
        self.inner.runs_here()
    }
}
