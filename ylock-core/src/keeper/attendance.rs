//! A call that holds locks on its way to more: that of a set, or of a permit. While it waits the client
//! renews what it holds, from wherever it runs. So a call that is not polled any more would keep those
//! locks for as long as the process lives, although none is at work under them.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::environment::{Environment, Moment};

/// When such a call was last polled. What it holds is given to others once that was a lease ago.
#[derive(Debug)]
pub(crate) struct Attendance(AtomicU64);

impl Attendance {
    fn new(now: Moment) -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(now.as_nanos())))
    }

    /// Returns when the call was last polled, give or take a third of its lease.
    pub(super) fn last(&self) -> Moment {
        Moment::from_nanos(self.0.load(Ordering::Acquire))
    }

    /// Notes that the call is polled. Returns how long ago that was noted before.
    fn note(&self, now: Moment) -> Duration {
        now.since(Moment::from_nanos(self.0.swap(now.as_nanos(), Ordering::AcqRel)))
    }
}

/// Makes an attempt, and another one whenever the call was not polled for a lease: others may have what
/// the last one held.
pub(crate) async fn attended<F: Future>(
    environment: &dyn Environment,
    lease: Duration,
    attempt: impl Fn(Arc<Attendance>) -> F,
) -> F::Output {
    loop {
        let attendance = Attendance::new(environment.now());
        let mut attempt = pin!(attempt(Arc::clone(&attendance)));
        loop {
            tokio::select! {
                biased;
                output = &mut attempt => return output,
                () = environment.sleep(lease / 3) => {}
            }
            if attendance.note(environment.now()) >= lease {
                break;
            }
        }
    }
}
