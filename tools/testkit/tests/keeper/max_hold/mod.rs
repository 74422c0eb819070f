//! Holds that last for longer than they may.

#![allow(
    clippy::disallowed_methods,
    reason = "a test stands outside: it looks at time and starts tasks of its own"
)]

mod ends;
mod shared;
mod told;
mod unnoticed;

use std::time::Duration;

use tokio::time::{Instant, timeout};
use ylock_core::{Guard, Lock, MemoryStore, Options, Result, Ylock};

const SOON: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);
/// Timers are up to a millisecond late, and one may wait for another one.
const LATE: Duration = Duration::from_millis(3);

fn bounded() -> Options {
    Options::default().with_max_hold(LONGEST)
}

/// Returns a client whose holds have a bound, and one whose holds have none.
fn clients() -> (Ylock, Ylock) {
    let store = MemoryStore::new();
    (Ylock::new(store.engine()).with_options(bounded()), Ylock::new(store.engine()))
}

fn lock(ylock: &Ylock) -> Lock {
    ylock.lock("group", "name")
}

async fn granted(future: impl Future<Output = Result<Guard>>) -> Guard {
    timeout(SOON, future).await.expect("granted soon").unwrap()
}

/// Checks that this much time has passed, and no more.
#[track_caller]
fn passed(time: Duration, since: Instant) {
    let passed = since.elapsed();
    assert!((time..time + LATE).contains(&passed), "{passed:?} have passed, and not {time:?}");
}
