//! The points between two calls of the system, for tests: what a process that is killed or stopped there leaves behind. Costs a program the
//! reading of one number.

use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Signal, getpid, kill_process};

/// How many points are still passed; zero means all.
static LEFT: AtomicU64 = AtomicU64::new(0);

/// Stops this process, as `SIGSTOP` does, or ends it, as `SIGKILL` does, at the `number`-th point that it passes from now on; the first one is 1.
/// Used once.
pub fn stop_at(number: u64, ends: bool) {
    LEFT.store(number << 1 | u64::from(ends), Ordering::SeqCst);
}

/// Called before each call of the system by which a lock is changed.
pub(super) fn pass() {
    let left = LEFT.load(Ordering::Relaxed);
    if left != 0 {
        count(left);
    }
}

#[cold]
fn count(left: u64) {
    if left > 3 {
        LEFT.store(left - 2, Ordering::SeqCst);
        return;
    }
    LEFT.store(0, Ordering::SeqCst);
    stop_this_process(left & 1 == 1);
}

/// Sends this process a signal that it cannot refuse. Returns when it goes on.
fn stop_this_process(ends: bool) {
    let sent = kill_process(getpid(), if ends { Signal::KILL } else { Signal::STOP });
    debug_assert!(sent.is_ok(), "a process may send itself signals");
    // Another thread takes the signal, and until that thread runs this one would go on.
    std::thread::sleep(std::time::Duration::from_millis(200));
}
