//! Waiting for something to happen, never for time to pass.

use std::future::{Future, poll_fn};
use std::panic::Location;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::time::{self, sleep};

use super::pace::quiet_time;

/// How often it is looked whether a bound is over that only the clock says is over.
const AGAIN: Duration = Duration::from_millis(50);

/// A bound on how long something may make no progress: over when it has passed by tokio's clock, which a test may have paused, and in
/// [quiet time](quiet_time).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    bound: Duration,
    began: time::Instant,
    really_began: Instant,
    quiet: Duration,
}

impl Bound {
    pub(crate) fn new(bound: Duration) -> Self {
        // In this order: what passes in between must not look like a paused clock.
        let really_began = Instant::now();
        Self { bound, really_began, began: time::Instant::now(), quiet: quiet_time() }
    }

    pub(crate) fn is_over(&self) -> bool {
        let passed = self.began.elapsed();
        // A paused clock runs ahead of the real one whenever all tasks wait.
        let is_paused = passed > self.really_began.elapsed() * 2 + AGAIN;
        passed >= self.bound && (is_paused || quiet_time() - self.quiet >= self.bound)
    }

    /// Returns when the bound is over.
    pub(crate) async fn over(self) {
        sleep(self.bound).await;
        while !self.is_over() {
            sleep(AGAIN).await;
        }
    }
}

/// Asks again and again until the condition holds; panics if it does not within `bound` of quiet time.
#[track_caller]
pub fn eventually<C, F>(bound: Duration, what: &str, mut condition: C) -> impl Future<Output = ()>
where
    C: FnMut() -> F,
    F: Future<Output = bool>,
{
    let caller = Location::caller();
    async move {
        let (waiting, mut pause) = (Bound::new(bound), Duration::from_millis(1));
        while !condition().await {
            assert!(!waiting.is_over(), "{caller}: not within {bound:?}: {what}");
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }
}

/// Returns the result of the future; panics if it takes longer than `bound` of quiet time.
#[track_caller]
pub fn within<F: Future>(bound: Duration, what: &str, future: F) -> impl Future<Output = F::Output> {
    let caller = Location::caller();
    async move {
        match or_over(Bound::new(bound), future).await {
            Some(output) => output,
            None => panic!("{caller}: not within {bound:?}: {what}"),
        }
    }
}

/// Returns the result of the future, or nothing if the bound is over before.
pub(crate) async fn or_over<F: Future>(bound: Bound, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    tokio::select! {
        biased;
        output = &mut future => Some(output),
        () = bound.over() => None,
    }
}

/// Returns the result of the future; panics if nothing happens in it for `bound` of quiet time, counted from when it was last woken, as by an answer of
/// a server. So what goes on ends well, however slow the machine is.
#[track_caller]
pub fn while_it_goes_on<F: Future>(
    bound: Duration,
    what: &str,
    future: F,
) -> impl Future<Output = F::Output> {
    let caller = Location::caller();
    async move {
        let (mut future, mut still) = (pin!(future), pin!(sleep(bound)));
        let mut waiting = Bound::new(bound);
        poll_fn(|context| {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(output);
            }
            let next = if still.as_mut().poll(context).is_ready() {
                assert!(!waiting.is_over(), "{caller}: nothing happens for {bound:?}: {what}");
                AGAIN
            } else {
                waiting = Bound::new(bound);
                bound
            };
            still.as_mut().reset(time::Instant::now() + next);
            // So that the timer wakes this task, if the time is not over already.
            if still.as_mut().poll(context).is_ready() {
                context.waker().wake_by_ref();
            }
            Poll::Pending
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "not within 1800s: never")]
    async fn a_bound_ends_on_a_paused_clock() {
        eventually(Duration::from_secs(1_800), "never", || async { false }).await;
    }

    #[tokio::test]
    #[should_panic(expected = "not within 50ms: never")]
    async fn a_bound_ends_on_a_real_clock() {
        within(Duration::from_millis(50), "never", std::future::pending::<()>()).await;
    }

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
