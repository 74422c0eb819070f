//! The periods of a job.

use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};

/// The shortest time for which a store keeps the last run.
const LEAST_KEPT: Duration = Duration::from_secs(24 * 3600);

/// The periods of a job that is to be run at most once in each of them. A [`Duration`] is as good, where nothing but the length is to be said.
///
/// Periods follow each other without gaps, counted from 1970 by the wall clock of the client that calls. All replicas name the same.
///
/// # Examples
/// ```
/// # use std::time::Duration;
/// # use ylock::Period;
/// let hour = Duration::from_secs(3600);
/// let nightly = Period::of(24 * hour).with_offset(2 * hour); // each begins at 02:00, UTC
/// let hourly = Period::of(hour).until_done(); // work that has failed is repeated within its hour
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    length: Duration,
    offset: Duration,
    until_done: bool,
}

impl Period {
    /// The shortest period.
    pub const SHORTEST: Duration = Duration::from_millis(1);
    /// The longest period: 366 days.
    pub const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

    /// Creates periods of this length, of which one begins with the year 1970, UTC. Of the length, whole microseconds count.
    pub const fn of(length: Duration) -> Self {
        Self { length, offset: Duration::ZERO, until_done: false }
    }

    /// Returns the same periods, each of which begins so much later.
    #[must_use]
    pub const fn with_offset(self, offset: Duration) -> Self {
        Self { offset, ..self }
    }

    /// Returns the same periods, for work that is begun again within its period if it was not done: because the process died in the middle, the
    /// lock was lost, or the work [says so](crate::Completed). So it is done *at least* once, by one replica at a time. Each call tries once: of
    /// replicas that call at the same time, the next one tries when the one before has failed.
    #[must_use]
    pub const fn until_done(self) -> Self {
        Self { until_done: true, ..self }
    }

    /// Returns the length of a period.
    pub fn length(&self) -> Duration {
        self.length
    }

    /// Returns by how much later than with the year 1970 a period begins.
    pub fn offset(&self) -> Duration {
        self.offset
    }

    /// Returns whether work that was not done is begun again.
    pub fn is_until_done(&self) -> bool {
        self.until_done
    }

    /// Returns how long a store keeps a run: for two periods, and for a day at least. By the end of it no client may take the period of the run for
    /// the present one, unless its clock is behind by as much.
    pub(crate) fn kept(&self) -> Duration {
        (self.length * 2).max(LEAST_KEPT)
    }

    pub(crate) fn check(&self) -> Result<()> {
        if (Self::SHORTEST..=Self::LONGEST).contains(&self.length) {
            return Ok(());
        }
        let (shortest, longest) = (Self::SHORTEST, Self::LONGEST.as_secs() / 24 / 3600);
        let message =
            format!("a period of {:?} is outside its limits: {shortest:?} to {longest} days", self.length);
        Err(Error::new(ErrorKind::Invalid, message))
    }

    /// Returns the microseconds of a period, which has been checked.
    pub(crate) fn micros(&self) -> i64 {
        i64::try_from(self.length.as_micros()).unwrap_or(i64::MAX).max(1)
    }

    /// Returns when the period begins in which this time is. Both are microseconds since 1970.
    ///
    /// # Errors
    /// [`Config`](ErrorKind::Config) for a time before the first period: such a clock was never set.
    pub(crate) fn begin_of(&self, wall_micros: i64) -> Result<i64> {
        let length = self.micros();
        let offset = (self.offset.as_micros() % self.length.as_micros().max(1)) as i64;
        let begins = (wall_micros - offset).div_euclid(length) * length + offset;
        if begins >= 0 {
            return Ok(begins);
        }
        let message = "the wall clock of this machine shows a time before 1970, or in the first period after its beginning: set it";
        Err(Error::new(ErrorKind::Config, message))
    }
}

impl From<Duration> for Period {
    fn from(length: Duration) -> Self {
        Self::of(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_time_is_in_the_period_that_began_last() {
        let period = Period::of(10 * SECOND);
        for (micros, begins) in [(0, 0), (9_999_999, 0), (10_000_000, 10_000_000), (25_000_000, 20_000_000)] {
            assert_eq!(period.begin_of(micros).unwrap(), begins);
        }
        let later = period.with_offset(13 * SECOND);
        for (micros, begins) in [(3_000_000, 3_000_000), (12_999_999, 3_000_000), (13_000_000, 13_000_000)] {
            assert_eq!(later.begin_of(micros).unwrap(), begins);
        }
        assert_eq!(later.begin_of(2_999_999).unwrap_err().kind(), ErrorKind::Config);
        assert_eq!(period.begin_of(-1).unwrap_err().kind(), ErrorKind::Config);
    }

    #[test]
    fn a_run_is_kept_for_two_periods_and_a_day_at_least() {
        assert_eq!(Period::of(SECOND).kept(), 24 * 3600 * SECOND);
        assert_eq!(Period::of(Period::LONGEST).kept(), Period::LONGEST * 2);
    }

    #[test]
    fn a_period_has_limits() {
        for (length, fits) in [
            (Duration::ZERO, false),
            (Period::SHORTEST, true),
            (Period::LONGEST, true),
            (Period::LONGEST + SECOND, false),
        ] {
            assert_eq!(Period::of(length).check().is_ok(), fits, "{length:?}");
        }
    }
}
