//! The thread of the client's own, which no work of the program can block.

use std::thread::JoinHandle;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// A thread with a runtime, which ends with this.
pub(super) struct OwnThread {
    pub(super) handle: Handle,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl OwnThread {
    pub(super) fn start() -> Option<Self> {
        let runtime = Builder::new_current_thread().enable_all().build().ok()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let work = move || drop(runtime.block_on(stopped));
        let thread = std::thread::Builder::new().name("ylock".to_owned()).spawn(work).ok()?;
        Some(Self { handle, stop, thread })
    }

    /// Ends the thread, and waits until its tasks are dropped.
    pub(super) fn end(self) {
        drop(self.stop);
        drop(self.thread.join());
    }
}
