//! An engine whose calls are watched: they tell how slow its store is, and that a case makes progress.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ylock_core::Result;
use ylock_core::engine::Engine;

use super::pace::begin_trip;
use super::wrapper::{Call, Wrapped, Wrapper};

/// An engine that notes how long its store takes, and each answer.
#[derive(Debug)]
pub struct Timed {
    inner: Arc<dyn Engine>,
    trip: Duration,
    answers: Arc<AtomicU64>,
}

impl Timed {
    /// Creates the engine over another one, a trip to whose store takes so long on a busy machine at most, and counts its answers.
    pub fn over(inner: Arc<dyn Engine>, trip: Duration, answers: &Arc<AtomicU64>) -> Arc<Wrapped<Self>> {
        Arc::new(Wrapped(Self { inner, trip, answers: Arc::clone(answers) }))
    }
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
