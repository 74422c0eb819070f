//! The availability of the store for a client, told in the log when it changes.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::client_name::SharedName;
use crate::environment::Moment;
use crate::error::ErrorKind;
use crate::foreign::tell;

/// The time without any answer after which a failure is an outage. A request that fails while others are answered is none: one of several
/// servers may be down, whose locks wait.
const ALONE: Duration = Duration::from_secs(1);

/// The availability of the store for one client; see the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Availability {
    engine: &'static str,
    address: String,
    client: OnceLock<SharedName>,
    /// The moment of the last answer, in nanoseconds.
    answered: AtomicU64,
    /// The moment since which the store is away; zero while it is not.
    away: AtomicU64,
}

impl Availability {
    pub(crate) fn of(engine: &'static str, address: String) -> Self {
        Self { engine, address, ..Self::default() }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Makes the log name this client from now on.
    pub(crate) fn belongs_to(&self, client: &SharedName) {
        // An engine that several clients share is named after the first.
        drop(self.client.set(client.clone()));
    }

    /// Notes that a request has ended now.
    pub(crate) fn learn(&self, failure: Option<ErrorKind>, now: Moment) {
        // An answer that says no is an answer.
        if failure.is_some_and(ErrorKind::is_silence) { self.failed(now) } else { self.answered(now) }
    }

    fn failed(&self, now: Moment) {
        let silent = now.since(Moment::from_nanos(self.answered.load(Ordering::Relaxed)));
        let began = now.as_nanos().max(1);
        if silent >= ALONE
            && self.away.compare_exchange(0, began, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            tell!(
                warn,
                client = self.client.get().map(SharedName::to_string),
                engine = self.engine,
                address = self.address,
                "the store does not answer"
            );
        }
    }

    fn answered(&self, now: Moment) {
        self.answered.fetch_max(now.as_nanos(), Ordering::Relaxed);
        if self.away.load(Ordering::Relaxed) == 0 {
            return;
        }
        let began = self.away.swap(0, Ordering::Relaxed);
        if began != 0 {
            let seconds = now.since(Moment::from_nanos(began)).as_secs_f64();
            tell!(
                info,
                client = self.client.get().map(SharedName::to_string),
                engine = self.engine,
                address = self.address,
                seconds,
                "the store answers again"
            );
        }
    }
}
