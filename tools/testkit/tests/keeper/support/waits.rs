//! Callers that wait for a lock, each held in its place until the test goes on.

use std::pin::Pin;

use ylock_core::{Guard, Lock, Mode, Result};
use ylock_testkit::poll_once;

/// A caller that waits.
pub(crate) type Waits = Pin<Box<dyn Future<Output = Result<Guard>> + Send>>;

/// A caller that has come, and waits.
pub(crate) async fn comes(lock: &Lock, mode: Mode) -> Waits {
    let lock = lock.clone();
    let mut waits: Waits = Box::pin(async move {
        match mode {
            Mode::Read => lock.read().await,
            Mode::Write => lock.write().await,
        }
    });
    assert!(poll_once(waits.as_mut()).await.is_none(), "a caller that wants to {mode} entered at once");
    waits
}
