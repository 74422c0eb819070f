//! Lease, fairness, hand-over and wait: what a user may choose, with the limits.

use std::str::FromStr;
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::mode::Wait;
use crate::token::MAX_HAND_OVERS;

mod reach;

pub use reach::{Login, Reach, Tls};

/// Who is served first when several wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fairness {
    /// Those of one process are served in the order of their arrival, and processes in the order in which they
    /// joined the queue. A process may hand the lock to its own next waiter, up to [`HandOver`].
    #[default]
    Fair,
    /// One order of arrival over all processes. Nothing is handed over inside a process, so every acquisition
    /// costs a trip to the store.
    Strict,
    /// A newcomer may overtake those who wait. The highest throughput, and no promise to anybody.
    Unfair,
}

impl FromStr for Fairness {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "fair" => Ok(Self::Fair),
            "strict" => Ok(Self::Strict),
            "unfair" => Ok(Self::Unfair),
            _ => Err(invalid(format!("fairness is fair, strict or unfair, not {text:?}"))),
        }
    }
}

/// How long one process may pass a lock from task to task before it lets the others have their turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandOver {
    count: u32,
    time: Duration,
}

impl HandOver {
    /// The most hand-overs that may be allowed: the token counts them in ten bits, and one number is kept for readers that
    /// join a writer which has become a reader.
    pub const MAX_COUNT: u32 = MAX_HAND_OVERS - 1;

    /// At most `count` hand-overs within `time` of getting the lock from the store. Zero hands nothing over.
    pub fn up_to(count: u32, time: Duration) -> Self {
        Self { count, time }
    }

    /// The most hand-overs under one grant.
    pub fn count(self) -> u32 {
        self.count
    }

    /// How long after the grant the last hand-over may happen.
    pub fn time(self) -> Duration {
        self.time
    }
}

impl Default for HandOver {
    /// 1000 hand-overs within 100 ms: a store trip per 100 ms is cheap, and a waiter elsewhere waits no longer.
    fn default() -> Self {
        Self { count: 1000, time: Duration::from_millis(100) }
    }
}

/// How locks behave. Given to a client, and changed for some locks with [`Locks::with_options`](crate::Locks::with_options).
///
/// Options are layers: what they leave open comes from the layer below, which is that of the group, the client, or its URL, and at last
/// from the defaults: a lease of 10 s, fair, with local hand-over, waiting for ever.
///
/// # Examples
/// ```
/// # use std::time::Duration;
/// # use ylock_core::{Fairness, Options, Ylock};
/// let ylock = Ylock::in_memory().with_options(Options::default().with_lease(Duration::from_secs(30)));
/// let orders = ylock.locks("orders").with_options(Options::default().with_fairness(Fairness::Strict));
/// assert_eq!(orders.options().lease(), Duration::from_secs(30));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    lease: Option<Duration>,
    fairness: Option<Fairness>,
    hand_over: Option<u32>,
    hand_over_time: Option<Duration>,
    wait: Option<Wait>,
}

impl Options {
    /// The lease of those who do not choose one.
    pub const DEFAULT_LEASE: Duration = Duration::from_secs(10);
    /// The shortest lease: below it the renewals of a busy machine come too late. An engine may demand more.
    pub const MIN_LEASE: Duration = Duration::from_millis(100);
    /// The longest lease.
    pub const MAX_LEASE: Duration = Duration::from_secs(24 * 60 * 60);

    /// How long the store keeps a lock whose holder does not renew it any more; 10 s by default.
    ///
    /// A long lease survives longer pauses and store outages; a short one frees the locks of a crashed process
    /// sooner. Renewals are sent three times per lease. A waiter that gets the lock from another task of its process, or shares it with one,
    /// has the lease of that one, which is at least as long as its own.
    #[must_use]
    pub fn with_lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    /// Who is served first; [`Fairness::Fair`] by default.
    #[must_use]
    pub fn with_fairness(mut self, fairness: Fairness) -> Self {
        self.fairness = Some(fairness);
        self
    }

    /// How long a process may keep a lock among its own tasks.
    #[must_use]
    pub fn with_hand_over(mut self, hand_over: HandOver) -> Self {
        (self.hand_over, self.hand_over_time) = (Some(hand_over.count), Some(hand_over.time));
        self
    }

    /// How long `read` and `write` wait before they fail with [`ErrorKind::TimedOut`]; for ever by default.
    #[must_use]
    pub fn with_wait(mut self, wait: Wait) -> Self {
        self.wait = Some(wait);
        self
    }

    /// These options, with what they leave open from `below`.
    #[must_use]
    pub fn over(&self, below: &Self) -> Self {
        Self {
            lease: self.lease.or(below.lease),
            fairness: self.fairness.or(below.fairness),
            hand_over: self.hand_over.or(below.hand_over),
            hand_over_time: self.hand_over_time.or(below.hand_over_time),
            wait: self.wait.or(below.wait),
        }
    }

    /// See [`with_lease`](Self::with_lease).
    pub fn lease(&self) -> Duration {
        self.lease.unwrap_or(Self::DEFAULT_LEASE)
    }

    /// See [`with_fairness`](Self::with_fairness).
    pub fn fairness(&self) -> Fairness {
        self.fairness.unwrap_or_default()
    }

    /// See [`with_hand_over`](Self::with_hand_over).
    pub fn hand_over(&self) -> HandOver {
        let HandOver { count, time } = HandOver::default();
        HandOver { count: self.hand_over.unwrap_or(count), time: self.hand_over_time.unwrap_or(time) }
    }

    /// See [`with_wait`](Self::with_wait).
    pub fn wait(&self) -> Wait {
        self.wait.unwrap_or(Wait::Forever)
    }

    /// How much earlier than the store a holder treats its lease as over: a tenth of the lease, but at least 100 ms
    /// (or a quarter of a very short lease). It covers the difference in speed between two clocks, and leaves the
    /// holder time to stop.
    pub fn margin(&self) -> Duration {
        margin(self.lease())
    }

    /// Checks that every value is within its limits.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] that names the value and the limit.
    pub fn check(&self) -> Result<()> {
        let (lease, count) = (self.lease(), self.hand_over().count);
        if lease < Self::MIN_LEASE || lease > Self::MAX_LEASE {
            return Err(invalid(format!("a lease is between 100ms and 24h, not {lease:?}")));
        }
        if count > HandOver::MAX_COUNT {
            let most = HandOver::MAX_COUNT;
            return Err(invalid(format!("at most {most} hand-overs can be counted, not {count}")));
        }
        Ok(())
    }

    /// The options that every engine's URL may carry.
    pub const NAMES: [&'static str; 5] = ["lease", "fairness", "hand_over", "hand_over_time", "wait"];

    /// Takes one option of a URL. Answers whether its name is one of [`NAMES`](Self::NAMES).
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the value cannot be read.
    pub fn set(&mut self, name: &str, value: &str) -> Result<bool> {
        match name {
            "lease" => self.lease = Some(duration(name, value)?),
            "fairness" => self.fairness = Some(value.parse()?),
            "hand_over" => self.hand_over = Some(number(name, value)?),
            "hand_over_time" => self.hand_over_time = Some(duration(name, value)?),
            "wait" if value == "forever" => self.wait = Some(Wait::Forever),
            "wait" => self.wait = Some(Wait::For(duration(name, value)?)),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// See [`Options::margin`].
pub(crate) fn margin(lease: Duration) -> Duration {
    (lease / 10).max(Duration::from_millis(100)).min(lease / 4)
}

/// Reads an option that is a duration, such as `10s` or `500ms`.
///
/// # Errors
/// [`ErrorKind::Config`] that names the option.
pub fn duration(name: &str, value: &str) -> Result<Duration> {
    humantime::parse_duration(value)
        .map_err(|_| invalid(format!("option {name}={value}: not a duration such as 10s or 500ms")))
}

/// Reads an option that is a whole number.
///
/// # Errors
/// [`ErrorKind::Config`] that names the option.
pub fn number<N: FromStr>(name: &str, value: &str) -> Result<N> {
    value.parse().map_err(|_| invalid(format!("option {name}={value}: not a whole number within its limits")))
}

/// Checks the lease of a grant against how long one request of the engine may take: a renewal that gets no answer must leave time for
/// another one.
///
/// # Errors
/// [`Config`](ErrorKind::Config) if it is too short.
pub fn check_lease(lease: Duration, request_timeout: Duration) -> Result<()> {
    if lease > request_timeout.saturating_mul(3) {
        return Ok(());
    }
    Err(invalid(format!(
        "a lease of {lease:?} is too short for a request timeout of {request_timeout:?}: it must be more than three times as long"
    )))
}

/// Reads an option that is `on` or `off`.
///
/// # Errors
/// [`Config`](ErrorKind::Config) that names the option.
pub fn switch(name: &str, value: &str) -> Result<bool> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(invalid(format!("option {name} is on or off, not {value:?}"))),
    }
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::Config, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_from_text() {
        let mut options = Options::default();
        for (name, value) in [("lease", "1500ms"), ("fairness", "strict"), ("hand_over", "7"), ("wait", "3s")]
        {
            assert!(options.set(name, value).unwrap());
        }
        assert!(!options.set("keyspace", "x").unwrap());
        assert_eq!(options.lease(), Duration::from_millis(1500));
        assert_eq!(options.fairness(), Fairness::Strict);
        assert_eq!(options.hand_over().count(), 7);
        assert_eq!(options.wait(), Wait::For(Duration::from_secs(3)));
    }

    #[test]
    fn what_is_left_open_comes_from_below() {
        let below =
            Options::default().with_lease(Duration::from_secs(5)).with_wait(Wait::For(Duration::ZERO));
        let above = Options::default().with_fairness(Fairness::Strict).with_wait(Wait::Forever).over(&below);
        assert_eq!(above.lease(), Duration::from_secs(5));
        assert_eq!((above.fairness(), above.wait()), (Fairness::Strict, Wait::Forever));
        assert_eq!(above.hand_over(), HandOver::default());
    }

    #[test]
    fn bad_values_name_the_option() {
        let mut options = Options::default();
        for (name, value) in [("lease", "soon"), ("hand_over", "-1"), ("fairness", "very"), ("wait", "")] {
            let error = options.set(name, value).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config);
            assert!(error.to_string().contains(name), "{error}");
        }
    }

    #[test]
    fn leases_have_limits() {
        for lease in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
            assert!(Options::default().with_lease(lease).check().is_err());
        }
        assert!(Options::default().with_lease(Options::MIN_LEASE).check().is_ok());
    }
}
