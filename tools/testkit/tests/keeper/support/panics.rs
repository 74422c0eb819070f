//! Foreign code that panics: a subscriber of the log, and the waker of a caller.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Metadata, Subscriber};

fn panics(message: &'static str) -> ! {
    // Without the message of a panic.
    std::panic::resume_unwind(Box::new(message));
}

/// A subscriber that panics at each event, and at the end of each span.
pub(crate) struct PanickingLog {
    level: Level,
    told: AtomicUsize,
}

impl PanickingLog {
    /// Makes it the one of this thread, for what is at this level and those above it.
    pub(crate) fn of(level: Level) -> (Arc<Self>, DefaultGuard) {
        let log = Arc::new(Self { level, told: AtomicUsize::new(0) });
        (Arc::clone(&log), tracing::subscriber::set_default(log))
    }

    /// Returns how often it was told something, and has panicked.
    pub(crate) fn told(&self) -> usize {
        self.told.load(Ordering::SeqCst)
    }
}

impl Subscriber for PanickingLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.level
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {
        self.told.fetch_add(1, Ordering::SeqCst);
        panics("the log is full");
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
    fn try_close(&self, _: Id) -> bool {
        panics("the log is full");
    }
}

/// A waker that panics when it is called.
pub(crate) struct PanickingWaker(AtomicUsize);

impl PanickingWaker {
    pub(crate) fn new() -> (Arc<Self>, Waker) {
        let waker = Arc::new(Self(AtomicUsize::new(0)));
        (Arc::clone(&waker), Waker::from(waker))
    }

    /// Returns how often it was called, and has panicked.
    pub(crate) fn called(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for PanickingWaker {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
        panics("a waker that is wrong");
    }
}

/// Polls a future once with a waker that panics. The future is not ready then.
pub(crate) fn waits_with_panicking_waker<F: Future + Unpin>(future: &mut F) -> Arc<PanickingWaker> {
    let (waker, called) = PanickingWaker::new();
    let poll = std::pin::Pin::new(future).poll(&mut Context::from_waker(&called));
    assert!(matches!(poll, Poll::Pending), "it does not wait");
    waker
}
