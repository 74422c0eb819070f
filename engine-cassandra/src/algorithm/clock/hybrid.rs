//! Wall clock and logical clock in one number.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use ylock_core::environment::Environment;

use super::micros;

/// A hybrid logical clock in one number: microseconds since 1970 where the wall clock allows it, and always
/// more than everything it has followed before.
///
/// It steps back only where it is further ahead of the wall clock than the *largest lead* (60 s by default): then that has been set back, after it
/// had been wrong, and the places that this client takes would be behind those of all others until it has caught up. After a restart it goes on
/// from the wall clock, or from what it [observes](Self::observe) first, whichever is later.
///
/// # What it does not follow
/// A time that another client wrote and that lies further ahead of the own wall clock than the largest lead: one broken clock must not
/// drag all others along, or their clients would go behind every client that has not met it. How often that happened is counted
/// ([`refused`](Self::refused)).
#[derive(Debug)]
pub(crate) struct HybridClock {
    /// The last time that was returned or followed.
    last: AtomicI64,
    largest_lead: Duration,
    refused: AtomicU64,
}

impl Default for HybridClock {
    fn default() -> Self {
        Self::new(Duration::from_secs(60))
    }
}

impl HybridClock {
    /// Creates a clock that does not follow a time further ahead of its own wall clock than `largest_lead`.
    pub(crate) fn new(largest_lead: Duration) -> Self {
        Self { last: AtomicI64::new(0), largest_lead, refused: AtomicU64::new(0) }
    }

    /// Returns a time later than every one before, unless the clock steps back.
    pub(crate) fn tick(&self, environment: &dyn Environment) -> i64 {
        let (wall, limit) = (environment.wall_micros().max(1), self.limit(environment));
        advance(&self.last, |last| if last > limit { wall } else { wall.max(last.saturating_add(1)) })
    }

    /// Returns the time that it shows now: a tick would be at least as late.
    pub(crate) fn now(&self, environment: &dyn Environment) -> i64 {
        let (wall, last) = (environment.wall_micros(), self.last.load(Ordering::Acquire));
        if last > self.limit(environment) { wall } else { wall.max(last) }
    }

    /// Returns whether one time is ahead of another one by more than clocks may be that are right.
    pub(crate) fn is_far_ahead(&self, time: i64, of: i64) -> bool {
        time > of.saturating_add(micros(self.largest_lead))
    }

    /// Takes note of a time that another client wrote: the next tick is later. Returns `false` if the time is not followed.
    pub(crate) fn observe(&self, seen: i64, environment: &dyn Environment) -> bool {
        let follows = seen <= self.limit(environment);
        if follows {
            self.last.fetch_max(seen, Ordering::AcqRel);
        } else {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        follows
    }

    /// Returns the largest of the times that other clients show, one for each of them, that this clock goes behind. A time that is too
    /// far ahead is left out, unless another client shows about the same: then it is probably our own clock that is slow.
    pub(crate) fn latest_of(
        &self,
        others: impl Iterator<Item = i64>,
        environment: &dyn Environment,
    ) -> Option<i64> {
        let limit = self.limit(environment);
        let mut times: Vec<i64> = others.collect();
        times.sort_unstable_by(|one, other| other.cmp(one));
        let near = |time: i64| time.saturating_sub(micros(self.largest_lead));
        let confirmed = |place: usize| times.get(place + 1).is_some_and(|next| *next >= near(times[place]));
        let found = (0..times.len()).find(|&place| times[place] <= limit || confirmed(place));
        if !times.is_empty() && found != Some(0) {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        found.map(|place| times[place])
    }

    /// Returns how often a time was met that was too far ahead.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn limit(&self, environment: &dyn Environment) -> i64 {
        environment.wall_micros().saturating_add(micros(self.largest_lead))
    }
}

/// Write timestamps: strictly increasing, whatever the wall clock does, so that of two writes of one client the
/// later one always wins, also when they arrive in the other order.
#[derive(Debug, Default)]
pub(crate) struct Stamps(AtomicI64);

impl Stamps {
    /// Returns the next timestamp.
    pub(crate) fn next(&self, environment: &dyn Environment) -> i64 {
        let wall = environment.wall_micros().max(1);
        advance(&self.0, |last| wall.max(last.saturating_add(1)))
    }
}

/// Moves a clock on, and returns the time that it shows then.
fn advance(clock: &AtomicI64, next: impl Fn(i64) -> i64) -> i64 {
    let update = clock.fetch_update(Ordering::AcqRel, Ordering::Acquire, |last| Some(next(last)));
    next(update.unwrap_or_else(|last| last))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};
    use std::time::Duration;

    use ylock_core::environment::{BoxFuture, Environment, Moment};

    use super::{HybridClock, Stamps};

    const SECOND: i64 = 1_000_000;

    /// A wall clock that shows what it is told.
    #[derive(Debug, Default)]
    struct Wall(AtomicI64);

    impl Environment for Wall {
        fn now(&self) -> Moment {
            Moment::ZERO
        }

        fn wall_micros(&self) -> i64 {
            self.0.load(Ordering::Relaxed)
        }

        fn random(&self) -> u64 {
            0
        }

        fn sleep(&self, _: Duration) -> BoxFuture {
            Box::pin(std::future::ready(()))
        }

        fn spawn(&self, _: BoxFuture) {}

        fn enter(&self) -> bool {
            false
        }
    }

    fn at(seconds: i64) -> Arc<Wall> {
        Arc::new(Wall(AtomicI64::new(seconds * SECOND)))
    }

    #[test]
    fn it_steps_back_with_a_wall_clock_that_was_far_ahead_and_stamps_never_do() {
        let (wall, clock, stamps) = (at(1_000), HybridClock::default(), Stamps::default());
        let (first, stamp) = (clock.tick(&*wall), stamps.next(&*wall));
        wall.0.store(941 * SECOND, Ordering::Relaxed);
        assert_eq!((clock.now(&*wall), clock.tick(&*wall)), (first, first + 1));
        wall.0.store(939 * SECOND, Ordering::Relaxed);
        assert_eq!((clock.now(&*wall), clock.tick(&*wall)), (939 * SECOND, 939 * SECOND));
        assert_eq!(clock.tick(&*wall), 939 * SECOND + 1);
        assert_eq!(stamps.next(&*wall), stamp + 1);
    }

    #[test]
    fn it_follows_a_clock_that_is_a_second_ahead_and_not_one_that_is_an_hour_ahead() {
        let (wall, clock) = (at(1_000), HybridClock::default());
        let first = clock.tick(&*wall);
        assert!(clock.observe(first + SECOND, &*wall));
        assert!(clock.tick(&*wall) > first + SECOND);
        assert!(!clock.observe(first + 3_600 * SECOND, &*wall));
        assert_eq!(clock.refused(), 1);
    }

    #[test]
    fn it_goes_on_when_the_wall_clock_has_caught_up() {
        let (wall, clock) = (at(1_000), HybridClock::default());
        assert!(clock.observe(1_030 * SECOND, &*wall));
        wall.0.store(2_000 * SECOND, Ordering::Relaxed);
        assert_eq!(clock.tick(&*wall), 2_000 * SECOND);
    }

    #[test]
    fn one_that_is_far_ahead_is_not_followed_and_counted() {
        let (wall, clock) = (at(1_000), HybridClock::default());
        let latest = clock.latest_of([1_600 * SECOND, 999 * SECOND, 1_001 * SECOND].into_iter(), &*wall);
        assert_eq!((latest, clock.refused()), (Some(1_001 * SECOND), 1));
        assert_eq!((clock.latest_of([1_600 * SECOND].into_iter(), &*wall), clock.refused()), (None, 2));
    }

    /// Then it is our own clock that is slow.
    #[test]
    fn two_that_are_far_ahead_together_are_followed() {
        let (wall, clock) = (at(1_000), HybridClock::default());
        let latest = clock.latest_of([1_600 * SECOND, 999 * SECOND, 1_610 * SECOND].into_iter(), &*wall);
        assert_eq!((latest, clock.refused()), (Some(1_610 * SECOND), 0));
    }
}
