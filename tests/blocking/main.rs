//! Locks for synchronous code. Every test waits for a bounded time only.

mod calls;
mod ends;
#[cfg(all(feature = "file", target_os = "linux"))]
mod files;
mod losses;
mod owners;
mod runtimes;
mod threads;

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use ylock::blocking::Ylock;
use ylock::{MemoryStore, Options};

/// So long a test may take, and a wait that is to come to its end.
const BOUND: Duration = Duration::from_secs(120);
/// So long a wait takes that is to be in vain.
const SHORT: Duration = Duration::from_millis(100);

/// Runs a test on a thread, and fails if it does not end in time.
fn bounded<T: Send + 'static>(test: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = channel();
    let thread = thread::spawn(move || sender.send(test()));
    match receiver.recv_timeout(BOUND) {
        Ok(output) => output,
        Err(RecvTimeoutError::Timeout) => panic!("the test is stuck"),
        Err(RecvTimeoutError::Disconnected) => match thread.join() {
            Ok(_) => panic!("the test has ended without an answer"),
            Err(panic) => std::panic::resume_unwind(panic),
        },
    }
}

/// Returns two clients of one store.
fn two_clients() -> (Ylock, Ylock) {
    let store = MemoryStore::new();
    (client_of(&store), client_of(&store))
}

/// Returns a client with a short lease, so that what is lost is told soon.
fn client_of(store: &MemoryStore) -> Ylock {
    let client = ylock::Ylock::new(store.engine());
    Ylock::from_async(client.with_options(Options::default().with_lease(Duration::from_secs(2))))
}
