//! Waiting for something to happen, never for time to pass.

use std::future::{Future, poll_fn};
use std::panic::Location;
use std::pin::pin;
use std::task::Poll;
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

/// Returns the result of the future; panics if nothing happens in it for `bound`, counted from when it was last woken, as by an answer of a server. So
/// what goes on ends well, however slow the machine is.
#[track_caller]
pub fn while_it_goes_on<F: Future>(
    bound: Duration,
    what: &str,
    future: F,
) -> impl Future<Output = F::Output> {
    let caller = Location::caller();
    async move {
        let (mut future, mut still) = (pin!(future), pin!(sleep(bound)));
        let mut was_still = false;
        poll_fn(|context| {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(output);
            }
            let is_still = still.as_mut().poll(context).is_ready();
            // A process that was stopped sees first that the time is over, and then what has happened meanwhile.
            assert!(!(is_still && was_still), "{caller}: nothing happens for {bound:?}: {what}");
            was_still = is_still;
            still.as_mut().reset(Instant::now() + bound);
            // So that the timer wakes this task.
            assert!(still.as_mut().poll(context).is_pending(), "a bound is longer than nothing");
            Poll::Pending
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn what_goes_on_may_take_any_time() {
        let goes_on = async {
            for _ in 0..100 {
                sleep(BOUND / 2).await;
            }
        };
        while_it_goes_on(BOUND, "it goes on", goes_on).await;
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "nothing happens for 10s: it is stuck")]
    async fn what_is_stuck_fails() {
        while_it_goes_on(BOUND, "it is stuck", std::future::pending::<()>()).await;
    }
}
