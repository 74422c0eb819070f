//! Background work that goes on when the runtime in which it ran has ended.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use super::{BoxFuture, Environment};

type Make = Arc<dyn Fn() -> BoxFuture + Send + Sync>;

/// A task of which one runs at a time. When its runtime ends it begins afresh in another one.
#[derive(Debug, Default)]
pub struct Caretaker(Arc<AtomicBool>);

impl Caretaker {
    /// Whether it runs.
    pub fn is_running(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Starts it, unless it runs. `make` makes the work, also each time that it begins afresh, from what it knows of the client; it
    /// holds the client weakly, and the work ends by itself when the client is gone.
    pub fn start(
        &self,
        environment: &Arc<dyn Environment>,
        make: impl Fn() -> BoxFuture + Send + Sync + 'static,
    ) {
        if self.is_running() || self.0.swap(true, Ordering::AcqRel) {
            return;
        }
        let shift = Shift {
            running: Arc::clone(&self.0),
            environment: Arc::downgrade(environment),
            make: Arc::new(make),
            progress: Progress::Waits,
        };
        environment.spawn(Box::pin(shift.work()));
    }
}

/// The work in one runtime.
struct Shift {
    running: Arc<AtomicBool>,
    /// Weak: the client's own thread ends when the client is gone, and this may run on it.
    environment: Weak<dyn Environment>,
    make: Make,
    progress: Progress,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Waits,
    Began,
    Done,
}

impl Shift {
    async fn work(mut self) {
        self.progress = Progress::Began;
        (self.make)().await;
        self.progress = Progress::Done;
    }
}

impl Drop for Shift {
    fn drop(&mut self) {
        // One that was never polled is dropped only where nothing will ever run again. One that panicked would do so again.
        let goes_on = self.progress == Progress::Began && !std::thread::panicking();
        let Some(environment) = self.environment.upgrade().filter(|_| goes_on) else {
            self.running.store(false, Ordering::Release);
            return;
        };
        let next = Self {
            running: Arc::clone(&self.running),
            environment: Weak::clone(&self.environment),
            make: Arc::clone(&self.make),
            progress: Progress::Waits,
        };
        environment.spawn(Box::pin(next.work()));
    }
}

impl fmt::Debug for Shift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shift").field("running", &self.running).finish_non_exhaustive()
    }
}
