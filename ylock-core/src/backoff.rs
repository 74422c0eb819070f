//! The pauses between attempts.
//!
//! For engines. Not covered by semver.

use std::time::Duration;

use crate::environment::Environment;

/// Pauses that double with each attempt, from the first one to the longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
}

/// More would overflow, or differ in nothing.
const MOST_DOUBLINGS: u32 = 16;

impl Backoff {
    /// Between attempts to release: others may wait for it when the store is back.
    pub const RELEASE: Self = Self::new(Duration::from_millis(20), Duration::from_secs(1));

    /// Creates pauses from the first one to the longest.
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest }
    }

    /// The same, but no pause is longer than this.
    pub fn up_to(self, longest: Duration) -> Self {
        Self { longest: self.longest.min(longest), ..self }
    }

    /// Returns the pause after this many earlier ones, without chance.
    pub fn pause(self, earlier: u32) -> Duration {
        self.first.saturating_mul(1 << earlier.min(MOST_DOUBLINGS)).min(self.longest)
    }

    /// Waits for the pause after this many earlier ones, a little more or less by chance.
    pub async fn wait(self, environment: &dyn Environment, earlier: u32) {
        environment.sleep(environment.jitter(self.pause(earlier))).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pause_is_twice_the_one_before_until_the_longest() {
        let ms = Duration::from_millis;
        let backoff = Backoff::new(ms(20), ms(100));
        assert_eq!(
            [0, 1, 2, 3, u32::MAX].map(|earlier| backoff.pause(earlier)),
            [20, 40, 80, 100, 100].map(ms)
        );
        let steady = Backoff::new(Duration::MAX, Duration::MAX);
        assert_eq!(steady.pause(u32::MAX), Duration::MAX);
    }
}
