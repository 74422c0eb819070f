//! Waiting for something to happen, never for time to pass.

use std::future::Future;
use std::panic::Location;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

/// Asks again and again until the condition holds; panics if it does not within `bound`.
#[track_caller]
pub fn eventually<C, F>(bound: Duration, what: &str, mut condition: C) -> impl Future<Output = ()>
where
    C: FnMut() -> F,
    F: Future<Output = bool>,
{
    let caller = Location::caller();
    async move {
        let (start, mut pause) = (Instant::now(), Duration::from_millis(1));
        while !condition().await {
            assert!(start.elapsed() < bound, "{caller}: not within {bound:?}: {what}");
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }
}

/// Returns the result of the future; panics if it takes longer than `bound`.
#[track_caller]
pub fn within<F: Future>(bound: Duration, what: &str, future: F) -> impl Future<Output = F::Output> {
    let caller = Location::caller();
    async move {
        match timeout(bound, future).await {
            Ok(output) => output,
            Err(_) => panic!("{caller}: not within {bound:?}: {what}"),
        }
    }
}
