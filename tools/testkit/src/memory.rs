//! The in-memory engine as a harness, for the suite itself and for engines that are built on it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ylock_core::engine::Engine;
use ylock_core::{Guarantees, MemoryEngine, MemoryStore};

use super::harness::Harness;
use super::registry::Role;

type Wrap = Arc<dyn Fn(MemoryEngine) -> Arc<dyn Engine> + Send + Sync>;

/// A new in-memory store.
#[derive(Clone)]
pub struct MemoryHarness {
    store: MemoryStore,
    wrap: Wrap,
    bound: Duration,
}

impl MemoryHarness {
    /// Creates a new store, with its engine as it is.
    #[allow(clippy::new_without_default, reason = "two stores are never equal, so there is no default one")]
    pub fn new() -> Self {
        Self::wrapped(|engine| Arc::new(engine))
    }

    /// Creates a new store, each of whose engines is put into something else.
    pub fn wrapped<W>(wrap: W) -> Self
    where
        W: Fn(MemoryEngine) -> Arc<dyn Engine> + Send + Sync + 'static,
    {
        Self { store: MemoryStore::new(), wrap: Arc::new(wrap), bound: Duration::from_secs(60) }
    }

    /// Returns the same harness, whose cases are stuck after this long.
    #[must_use]
    pub fn with_bound(self, bound: Duration) -> Self {
        Self { bound, ..self }
    }
}

#[async_trait]
impl Harness for MemoryHarness {
    fn name(&self) -> &str {
        "memory"
    }

    fn guarantees(&self) -> Guarantees {
        crate::ALL_GUARANTEES.with_durable(false)
    }

    async fn engine(&self) -> Arc<dyn Engine> {
        (self.wrap)(self.store.engine())
    }

    fn role(&self) -> Role {
        Role::Whole
    }

    fn lease(&self) -> Duration {
        Duration::from_millis(1200)
    }

    fn trip(&self) -> Duration {
        Duration::from_millis(20)
    }

    fn notice(&self) -> Duration {
        Duration::from_millis(20)
    }

    async fn left_behind(&self, _group: &str) -> usize {
        // Every fixture has a store of its own.
        self.store.len()
    }

    fn long_hold(&self) -> Duration {
        Duration::from_secs(3)
    }

    fn bound(&self) -> Duration {
        self.bound
    }
}

impl fmt::Debug for MemoryHarness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryHarness").field("store", &self.store).finish_non_exhaustive()
    }
}
