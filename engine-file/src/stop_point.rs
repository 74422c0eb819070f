//! The points between two calls of the system, for tests: what a process that is killed or stopped there leaves behind. Costs a program the
//! reading of one number.

use std::sync::atomic::{AtomicU64, Ordering};

/// How many points are still passed; zero means all.
static LEFT: AtomicU64 = AtomicU64::new(0);

/// Stops this process, as `SIGSTOP` does, or ends it, as `SIGKILL` does, at the `number`-th point that it passes from now on; the first one is 1.
/// Used once.
pub fn stop_at(number: u64, ends: bool) {
    LEFT.store(number << 1 | u64::from(ends), Ordering::SeqCst);
}

/// Called before each call of the system by which a lock is changed.
pub(crate) fn pass() {
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
    crate::driver::stop_this_process(left & 1 == 1);
}
