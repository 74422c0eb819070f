//! A timer that survives the runtime in which it began: a caller may go on with a future in another runtime.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::{Handle, Id};
use tokio::time::{Instant, Sleep};

/// A future that ends after a time on the clock of the runtime that polls it, counted from the first poll.
pub(super) struct Timer {
    duration: Duration,
    begun: Option<Begun>,
}

struct Begun {
    until: Instant,
    sleep: Pin<Box<Sleep>>,
    /// The runtime of the timer: polled in another one after this has ended, the timer would panic.
    runtime: Option<Id>,
}

impl Timer {
    pub(super) fn new(duration: Duration) -> Self {
        Self { duration, begun: None }
    }
}

impl Future for Timer {
    type Output = ();

    #[allow(clippy::disallowed_methods, reason = "this is the seam that all other code uses")]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let runtime = Handle::try_current().ok().map(|handle| handle.id());
        let begun = match self.begun.take() {
            Some(begun) if begun.runtime == runtime => begun,
            Some(Begun { until, .. }) => {
                Begun { until, sleep: Box::pin(tokio::time::sleep_until(until)), runtime }
            }
            None => {
                let sleep = Box::pin(tokio::time::sleep(self.duration));
                Begun { until: sleep.deadline(), sleep, runtime }
            }
        };
        self.begun.insert(begun).sleep.as_mut().poll(context)
    }
}
