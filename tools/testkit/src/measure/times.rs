//! Durations, and the way in which they are shown.

use std::time::Duration;

/// Durations of one kind.
#[derive(Debug, Default)]
pub struct Times(Vec<Duration>);

impl From<Vec<Duration>> for Times {
    fn from(times: Vec<Duration>) -> Self {
        Self(times)
    }
}

impl Times {
    /// Adds one more.
    pub fn push(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// Adds all of the others.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Returns how many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the time that this part of all does not exceed; zero if there are none.
    pub fn quantile(&mut self, part: f64) -> Duration {
        self.0.sort_unstable();
        let last = self.0.len().saturating_sub(1);
        self.0.get((part * last as f64).round() as usize).copied().unwrap_or_default()
    }
}

/// Returns the time in milliseconds, as text.
pub fn ms(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1e3)
}

/// Returns how many times as long as `other` the first time is.
pub fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}
