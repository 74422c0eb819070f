//! The measurements that are the same for all engines: hand-overs, held locks, and processes that are killed.

mod awake;
pub mod crash;
mod hand_over;
mod held;
mod pairs;
mod program;
pub mod stress;
mod times;
mod usage;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ylock_core::engine::Engine;
use ylock_core::{Options, Ylock};

pub use hand_over::{HandOvers, contend};
pub use held::hold;
pub use pairs::pairs;
pub use program::{Arm, run};
pub use times::{Times, ms, ratio};
pub use usage::{Usage, futex_calls_in_a_second};

/// A client, and the number of requests that its engine has sent.
pub struct Measured {
    /// The client that a user has.
    pub ylock: Ylock,
    requests: Counter,
    /// Those of one kind among them, with the word for it.
    of_kind: Option<(&'static str, Counter)>,
}

type Counter = Box<dyn Fn() -> u64 + Send + Sync>;

impl Measured {
    /// Creates a client over an engine that counts its requests.
    pub fn new<E: Engine>(engine: E, lease: Duration, requests: fn(&E) -> u64) -> Self {
        Self::over(&Arc::new(engine), lease, requests)
    }

    /// As [`new`](Self::new), where requests of one kind are counted too.
    pub fn of_kind<E: Engine>(
        engine: E,
        lease: Duration,
        requests: fn(&E) -> u64,
        (word, count): (&'static str, fn(&E) -> u64),
    ) -> Self {
        let engine = Arc::new(engine);
        let measured = Self::over(&engine, lease, requests);
        Self { of_kind: Some((word, Box::new(move || count(&engine)))), ..measured }
    }

    fn over<E: Engine>(engine: &Arc<E>, lease: Duration, requests: fn(&E) -> u64) -> Self {
        let engine = Arc::clone(engine);
        let ylock = Ylock::from_arc(Arc::clone(&engine) as Arc<dyn Engine>);
        Self {
            ylock: ylock.with_options(Options::default().with_lease(lease)),
            requests: Box::new(move || requests(&engine)),
            of_kind: None,
        }
    }

    /// Returns the number of requests so far.
    pub fn requests(&self) -> u64 {
        (self.requests)()
    }

    /// Returns the word for requests of one kind, if they are counted, and the number of them so far.
    pub fn requests_of_kind(&self) -> Option<(&'static str, u64)> {
        self.of_kind.as_ref().map(|(word, count)| (*word, count()))
    }
}

impl fmt::Debug for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Measured").field("requests", &self.requests()).finish_non_exhaustive()
    }
}

/// Returns the name of a group that no other program uses.
pub fn group() -> String {
    format!("bench-{}", ylock_core::Owner::new())
}
