//! A call that holds locks on its way to more: that of a set, or of a permit. While it waits the client
//! renews what it holds, from wherever it runs. So a call that is not polled any more would keep those
//! locks for as long as the process lives, although none is at work under them.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::environment::{Environment, Moment};

/// When such a call was last polled. What it holds is given to others once that was a lease ago.
#[derive(Debug)]
pub(crate) struct Attendance {
    /// The lease of the call, which notes three times in it that it is polled. A store may grant a shorter one.
    lease: Duration,
    last: AtomicU64,
    /// Something that it held was given to others.
    is_taken_from: AtomicBool,
}

impl Attendance {
    fn new(lease: Duration, now: Moment) -> Arc<Self> {
        let last = AtomicU64::new(now.as_nanos());
        Arc::new(Self { lease, last, is_taken_from: AtomicBool::new(false) })
    }

    /// Returns when the call was last polled, give or take a third of its lease.
    pub(super) fn last(&self) -> Moment {
        Moment::from_nanos(self.last.load(Ordering::Acquire))
    }

    pub(super) fn lease(&self) -> Duration {
        self.lease
    }

    /// Notes that something which the call held is given to others.
    pub(super) fn take_from(&self) {
        self.is_taken_from.store(true, Ordering::Release);
    }

    /// Notes that the call is polled. Returns whether something was taken from it before.
    fn note(&self, now: Moment) -> bool {
        self.last.store(now.as_nanos(), Ordering::Release);
        self.is_taken_from.load(Ordering::Acquire)
    }
}

/// Makes an attempt, and another one whenever something of what the last one held was given to others, because the call
/// was not polled for a lease. One from which nothing was taken keeps its place.
pub(crate) async fn attended<F: Future>(
    environment: &dyn Environment,
    lease: Duration,
    attempt: impl Fn(Arc<Attendance>) -> F,
) -> F::Output {
    loop {
        let attendance = Attendance::new(lease, environment.now());
        let mut attempt = pin!(attempt(Arc::clone(&attendance)));
        loop {
            tokio::select! {
                biased;
                output = &mut attempt => return output,
                () = environment.sleep(lease / 3) => {}
            }
            if attendance.note(environment.now()) {
                break;
            }
        }
    }
}
