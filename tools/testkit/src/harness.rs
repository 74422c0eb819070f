//! The harness: an engine, and what the suite must know about its store.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ylock_core::Guarantees;
use ylock_core::engine::Engine;

use super::long::short_or_long;
use super::registry::Role;

/// Longer than anything that an engine keeps for a minute.
const LONGER_THAN_A_MINUTE: Duration = Duration::from_secs(65);

/// One store, with what the suite must know about it.
#[async_trait]
pub trait Harness: fmt::Debug + Send + Sync + 'static {
    /// Returns the word that names the engine in the list of skipped cases.
    fn name(&self) -> &str;

    /// Returns what the engine declares; decides which cases are left out.
    fn guarantees(&self) -> Guarantees;

    /// Creates the engine of another client of the same store, as a new process would.
    async fn engine(&self) -> Arc<dyn Engine>;

    /// Creates the engine of another client whose locks have this lease by default.
    async fn engine_for(&self, lease: Duration) -> Arc<dyn Engine> {
        let _ = lease;
        self.engine().await
    }

    /// Returns a short lease that the engine supports. Cases wait for several of them, and a client that is not able to
    /// run for half of it counts as broken.
    fn lease(&self) -> Duration;

    /// Returns the longest that one trip to the store takes, on a busy machine.
    fn trip(&self) -> Duration;

    /// Returns the longest until a waiter notices that its turn has come.
    fn notice(&self) -> Duration;

    /// Ends whatever a killed client would still do by itself, such as the heartbeats of a session. By the time of
    /// this call none of its futures is polled any more.
    async fn cut_off(&self, engine: &Arc<dyn Engine>) {
        let _ = engine;
    }

    /// Returns how many things of this group are in the store, whatever they are. Counters that stay on purpose, such as that
    /// of the tokens, are not counted.
    async fn left_behind(&self, group: &str) -> usize {
        let _ = group;
        0
    }

    /// Returns what this harness stands for among all others: which cases the short run asks it. A case that does the same very often does it less
    /// often where it is not the only one of its kind, unless the [run is long](short_or_long).
    fn role(&self) -> Role;

    /// Returns how many names count as many.
    fn many(&self) -> usize {
        if self.role() == Role::Variant { short_or_long(1_000, 10_000) } else { 10_000 }
    }

    /// Returns how many rounds are enough to find a rare race.
    fn rounds(&self) -> usize {
        if self.role() == Role::Variant { short_or_long(100, 500) } else { 500 }
    }

    /// Returns how long a lock is held in the case of a long hold: longer than a minute, as engines keep things for a minute, at least
    /// once for each engine.
    fn long_hold(&self) -> Duration {
        if self.role() == Role::Variant { self.lease() * 4 } else { LONGER_THAN_A_MINUTE }
    }

    /// Returns for how long a case that is not stuck makes no progress at most.
    fn bound(&self) -> Duration {
        Duration::from_secs(60)
    }
}
