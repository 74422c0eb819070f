//! The section that the contenders of a point share: the thing that the lock protects, the watch over it, and what is written down.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;
use ylock_core::environment::{Environment, Moment};

/// One visit: a contender was inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Visit {
    pub(crate) round: u32,
    pub(crate) contender: u32,
    pub(crate) called: Moment,
    pub(crate) entered: Moment,
    /// The moment just before it began to give back.
    pub(crate) left: Moment,
}

/// The visits and waits that were written down.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) visits: Vec<Visit>,
    /// The waits of contenders that gave up because the point was over: since when they had been waiting, and until when.
    pub(crate) unfinished: Vec<(Moment, Moment)>,
}

impl Log {
    pub(crate) fn append(&mut self, mut later: Self) {
        self.visits.append(&mut later.visits);
        self.unfinished.append(&mut later.unfinished);
    }
}

/// The critical section; see the [module](self).
#[derive(Debug, Default)]
pub(crate) struct CriticalSection {
    log: Mutex<Log>,
    is_occupied: AtomicBool,
    /// Read, and written later by the contender that is inside: not atomic, so two at once lose an increment.
    counter: AtomicU64,
    overlaps: AtomicU64,
    entries: AtomicU64,
    calls: AtomicU64,
    errors: AtomicU64,
    last_error: Mutex<Option<String>>,
}

impl CriticalSection {
    /// Stays inside for so long, alone if the lock is one. Returns when the contender left.
    pub(crate) async fn hold(&self, environment: &Arc<dyn Environment>, hold: Duration) -> Moment {
        self.entries.fetch_add(1, Ordering::Relaxed);
        if self.is_occupied.swap(true, Ordering::SeqCst) {
            self.overlaps.fetch_add(1, Ordering::Relaxed);
        }
        let read = self.counter.load(Ordering::SeqCst);
        if hold.is_zero() {
            Yield::default().await;
        } else {
            environment.sleep(hold).await;
        }
        self.counter.store(read + 1, Ordering::SeqCst);
        let left = environment.now();
        self.is_occupied.store(false, Ordering::SeqCst);
        left
    }

    pub(crate) fn called(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn visited(&self, visit: Visit) {
        self.log.lock().visits.push(visit);
    }

    pub(crate) fn gave_up(&self, called: Moment, now: Moment) {
        self.log.lock().unfinished.push((called, now));
    }

    pub(crate) fn failed(&self, error: &ylock_core::Error) {
        self.errors.fetch_add(1, Ordering::Relaxed);
        *self.last_error.lock() = Some(error.to_string());
    }

    pub(crate) fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    /// Returns how often the lock was called, with an answer.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    pub(crate) fn errors(&self) -> (u64, Option<String>) {
        let last = self.last_error.lock().clone();
        (self.errors.load(Ordering::Relaxed), last)
    }

    pub(crate) fn overlaps(&self) -> u64 {
        self.overlaps.load(Ordering::Relaxed)
    }

    pub(crate) fn lost_increments(&self) -> u64 {
        self.entries().saturating_sub(self.counter.load(Ordering::SeqCst))
    }

    /// Takes what was written down since the last time.
    pub(crate) fn take_log(&self) -> Log {
        std::mem::take(&mut self.log.lock())
    }
}

/// Lets other tasks run once: without it no other contender could come in between a read and a write.
#[derive(Default)]
struct Yield {
    is_over: bool,
}

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.is_over {
            return Poll::Ready(());
        }
        self.is_over = true;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join;
    use ylock_core::environment::SystemEnvironment;

    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn two_inside_at_once_are_seen_in_both_ways() {
        let (section, environment) = (CriticalSection::default(), SystemEnvironment::shared());
        let hold = || section.hold(&environment, Duration::ZERO);
        join(hold(), hold()).await;
        assert_eq!((section.overlaps(), section.lost_increments()), (1, 1));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn one_after_the_other_is_in_order() {
        let (section, environment) = (CriticalSection::default(), SystemEnvironment::shared());
        for _ in 0..3 {
            section.hold(&environment, Duration::ZERO).await;
        }
        assert_eq!((section.entries(), section.overlaps(), section.lost_increments()), (3, 0, 0));
    }
}
