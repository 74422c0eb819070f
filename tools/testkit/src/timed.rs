//! An engine whose calls are watched: they tell how slow its store is, and that a case makes progress.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ylock_core::Result;
use ylock_core::engine::Engine;

use super::pace::begin_trip;
use super::wrapper::{Call, Wrapper};

/// An engine that notes how long its store takes, and each answer.
#[derive(Debug)]
pub(crate) struct Timed {
    pub(crate) inner: Arc<dyn Engine>,
    /// The longest that a trip takes on a busy machine.
    pub(crate) trip: Duration,
    /// The answers so far, of all clients of a case.
    pub(crate) answers: Arc<AtomicU64>,
}

impl Wrapper for Timed {
    fn inner(&self) -> &dyn Engine {
        &*self.inner
    }

    async fn around<T: Send>(&self, call: Call, answer: impl Future<Output = Result<T>> + Send) -> Result<T> {
        // The others wait for more than one answer of the store.
        let is_one_trip = !matches!(call, Call::Acquire | Call::Close | Call::Examine);
        let trip = is_one_trip.then(|| begin_trip(self.trip));
        let answer = answer.await;
        drop(trip);
        // Holders renew for ever, also beside a case that is stuck.
        if call != Call::Renew {
            self.answers.fetch_add(1, Ordering::Relaxed);
        }
        answer
    }
}
