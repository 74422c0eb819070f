//! How long the store takes to let a client in.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long the store last took to grant what was free: what a client can expect of it.
#[derive(Debug, Default)]
pub(crate) struct GrantTime {
    micros: AtomicU64,
}

impl GrantTime {
    /// Notes how long it took.
    pub(crate) fn note(&self, took: Duration) {
        self.micros.store(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns the last one. Zero if none is known.
    pub(crate) fn last(&self) -> Duration {
        Duration::from_micros(self.micros.load(Ordering::Relaxed))
    }
}
