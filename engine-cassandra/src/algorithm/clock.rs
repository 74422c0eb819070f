//! The two clocks of a client: one for places in the queue and tokens, one for write timestamps.
//!
//! Neither decides who may enter. A wrong wall clock costs fairness, never exclusion.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use ylock_core::StoreToken;
use ylock_core::engine::Ticket;
use ylock_core::environment::Environment;

/// A time that somebody else wrote and that is further ahead than this is not believed: one broken clock must not drag all
/// others along.
const LARGEST_LEAD: Duration = Duration::from_secs(60);

/// A hybrid logical clock in one number: microseconds since 1970 where the wall clock allows it, and always
/// more than everything seen before. Unlike a time server that keeps the largest time it was told, it goes on counting when
/// a clock ran ahead and died.
#[derive(Debug, Default)]
pub struct HybridClock(AtomicI64);

impl HybridClock {
    /// A time later than every one before.
    pub fn tick(&self, environment: &dyn Environment) -> i64 {
        let wall = environment.wall_micros().max(1);
        let next = |last: i64| wall.max(last.saturating_add(1));
        let update = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |last| Some(next(last)));
        next(update.unwrap_or_else(|last| last))
    }

    /// Takes note of a time that somebody else wrote.
    pub fn observe(&self, seen: i64, environment: &dyn Environment) {
        let lead = i64::try_from(LARGEST_LEAD.as_micros()).unwrap_or(i64::MAX);
        if seen <= environment.wall_micros().saturating_add(lead) {
            self.0.fetch_max(seen, Ordering::AcqRel);
        }
    }

    /// A place in the queue behind everybody seen.
    pub fn ticket_after(&self, largest: Option<Ticket>, environment: &dyn Environment) -> Ticket {
        let tick = self.tick(environment);
        Ticket::from_number(largest.map_or(tick, |largest| tick.max(largest.get().saturating_add(1))))
    }

    /// A token larger than `largest`; nothing if there is none left.
    pub fn token_after(
        &self,
        largest: Option<StoreToken>,
        environment: &dyn Environment,
    ) -> Option<StoreToken> {
        let tick = u64::try_from(self.tick(environment)).unwrap_or(1);
        StoreToken::new(largest.map_or(tick, |largest| tick.max(largest.get() + 1)))
    }
}

/// Write timestamps: strictly increasing, whatever the wall clock does, so that of two writes of this client the
/// later one always wins, also when they arrive in the other order.
#[derive(Debug, Default)]
pub struct Stamps(HybridClock);

impl Stamps {
    /// The next timestamp.
    pub fn next(&self, environment: &dyn Environment) -> i64 {
        self.0.tick(environment)
    }
}
