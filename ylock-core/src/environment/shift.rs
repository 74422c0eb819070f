//! Work in one runtime, which is told how it came to its end: also if the runtime ended in the middle.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::pin;

use futures_util::FutureExt;

use super::BoxFuture;

/// The way in which work came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Done,
    /// It would do so again. If this were taken for the end of the runtime, the same work would be done again at once, without end.
    Panicked,
    /// Its runtime ended in the middle. It is to begin again in another one, from what the client knows.
    Interrupted,
    /// It was dropped before it was polled, which happens only where nothing will ever run again.
    NeverBegan,
}

/// Work in one runtime.
pub(crate) trait Shift: Send + Sync + 'static {
    fn work(&self) -> impl Future<Output = ()> + Send;

    /// Does what is to be done when the work has come to its end, once, where it was dropped.
    fn ended(&self, how: Ending);
}

/// Returns the work as a task.
pub(crate) fn run(shift: impl Shift) -> BoxFuture {
    let mut watched = Watched { shift, ending: Ending::NeverBegan };
    // Not a function that takes what it works on: that has room for it twice.
    Box::pin(async move {
        // All of it, with its drop, and not a copy of its field.
        let watched = &mut watched;
        watched.ending = Ending::Interrupted;
        // A panic is noticed here, not in the drop: a thread whose own work has panicked drops its runtime too.
        // Pinned: each function that takes a future by value keeps room for it twice.
        let work = pin!(async { watched.shift.work().await });
        let worked = AssertUnwindSafe(work).catch_unwind().await;
        watched.ending = if worked.is_ok() { Ending::Done } else { Ending::Panicked };
    })
}

struct Watched<S: Shift> {
    shift: S,
    /// The ending if this were dropped now.
    ending: Ending,
}

impl<S: Shift> Drop for Watched<S> {
    fn drop(&mut self) {
        self.shift.ended(self.ending);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    /// Work that makes itself, and notes how it ended.
    struct Noted(fn() -> BoxFuture, Arc<Mutex<Vec<Ending>>>);

    impl Shift for Noted {
        async fn work(&self) {
            (self.0)().await;
        }

        fn ended(&self, how: Ending) {
            self.1.lock().push(how);
        }
    }

    /// Returns how work has ended that is polled this often and then dropped.
    fn ends(work: fn() -> BoxFuture, polls: usize) -> Vec<Ending> {
        let noted = Arc::default();
        let mut task = run(Noted(work, Arc::clone(&noted)));
        let polled = (0..polls).filter(|_| (&mut task).now_or_never().is_some()).count();
        assert_eq!(noted.lock().len(), polled, "told when it ends");
        drop(task);
        noted.lock().clone()
    }

    #[test]
    fn work_is_told_once_how_it_ended() {
        let endless = || -> BoxFuture { Box::pin(std::future::pending()) };
        assert_eq!(ends(|| Box::pin(async {}), 1), [Ending::Done]);
        assert_eq!(ends(endless, 1), [Ending::Interrupted]);
        assert_eq!(ends(endless, 2), [Ending::Interrupted]);
        assert_eq!(ends(endless, 0), [Ending::NeverBegan]);
    }

    #[test]
    fn a_panic_is_an_end_while_the_work_is_made_and_while_it_is_done() {
        let panic = || -> BoxFuture { std::panic::resume_unwind(Box::new("work that is wrong")) };
        assert_eq!(ends(panic, 1), [Ending::Panicked]);
        let panics = || -> BoxFuture { Box::pin(async { std::panic::resume_unwind(Box::new("wrong")) }) };
        assert_eq!(ends(panics, 1), [Ending::Panicked]);
    }
}
