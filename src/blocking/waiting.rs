//! How a thread waits for a future.
//!
//! Not by `Runtime::block_on`: that panics where the caller is in a runtime, and work that it polls could start no runtime of its own. This thread
//! polls the future and parks; timers and connections are driven by the thread of the client.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use tokio::runtime::Handle;

use super::outside::Outside;

/// Wakes a thread that waits.
struct Unpark {
    thread: Thread,
    /// Other code may park and unpark the same thread: only this says that the future is to be polled.
    is_awake: AtomicBool,
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.is_awake.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// Polls a future in a runtime until it is ready, and does the work that it asks for outside of that runtime.
pub(super) fn wait<F: Future, W: FnOnce() -> T, T>(
    runtime: &Handle,
    future: F,
    outside: &Outside<W, T>,
) -> F::Output {
    let mut future = pin!(future);
    let unpark = Arc::new(Unpark { thread: std::thread::current(), is_awake: AtomicBool::new(false) });
    let waker = Waker::from(Arc::clone(&unpark));
    loop {
        let polled = {
            let _entered = runtime.enter();
            future.as_mut().poll(&mut Context::from_waker(&waker))
        };
        if let Poll::Ready(output) = polled {
            return output;
        }
        if outside.work() {
            continue;
        }
        while !unpark.is_awake.swap(false, Ordering::Acquire) {
            std::thread::park();
        }
    }
}
