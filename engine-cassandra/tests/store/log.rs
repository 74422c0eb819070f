//! Keeps what is logged, for tests that read it.

use std::future::Future;

use tracing::Level;
use ylock_testkit::Log;

/// The outcome, and the warnings on the way to it. For tests whose runtime has one thread.
pub(crate) async fn logged<T>(work: impl Future<Output = T>) -> (T, String) {
    let (log, guard) = Log::of(Level::WARN);
    let outcome = work.await;
    drop(guard);
    (outcome, log.text())
}
