//! Lease, fairness, hand-over, wait and the longest hold: what a user may choose, with the limits.

use std::str::FromStr;
use std::time::Duration;

use crate::engine::Engine;
use crate::error::{Error, ErrorKind, Result};
use crate::token::MAX_HAND_OVERS;

mod define;
#[cfg(feature = "rustls")]
mod encryption;
mod longest;
mod reach;
#[cfg(feature = "serde")]
mod serialization;
mod value;

pub use define::Definition;
use longest::Longest;
pub use reach::{ClientCertificate, Login, Reach, Tls, ended_handshake};
#[cfg(feature = "serde")]
pub use serialization::Values;
pub use value::{OptionValue, read};
#[doc(hidden)]
pub use value::{one_of, preset};

/// The order in which waiters are served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fairness {
    /// The waiters of one process are served in the order of their arrival, and processes in the order in which they
    /// joined the queue. A process may hand the lock to its own next waiter, up to [`HandOver`].
    #[default]
    Fair,
    /// One order of arrival over all processes. Nothing is handed over inside a process, so every acquisition
    /// costs a trip to the store. Arrivals in two processes are compared by clocks: arrivals that are closer together than the
    /// clocks agree (with Redis half of a round trip; else the clocks of the machines) may be served in either order.
    Strict,
    /// A newcomer may overtake waiters. The highest throughput, and no promise of a turn to any waiter.
    Unfair,
}

crate::option_words!(Fairness: Fair = "fair", Strict = "strict", Unfair = "unfair");

impl FromStr for Fairness {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        read("fairness", text)
    }
}

/// The limits within which one process may pass a lock from task to task before it lets other processes have their turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandOver {
    count: u32,
    time: Duration,
}

impl HandOver {
    /// The most hand-overs that may be allowed: the token counts them in ten bits, and one number is kept for readers that
    /// join a writer which has become a reader.
    pub const MAX_COUNT: u32 = MAX_HAND_OVERS - 1;

    /// Allows at most `count` hand-overs within `time` of getting the lock from the store. Zero hands nothing over.
    pub fn up_to(count: u32, time: Duration) -> Self {
        Self { count, time }
    }

    /// Returns the most hand-overs under one grant.
    pub fn count(self) -> u32 {
        self.count
    }

    /// Returns how long after the grant the last hand-over may happen.
    pub fn time(self) -> Duration {
        self.time
    }
}

impl Default for HandOver {
    /// Returns 1000 hand-overs within 100 ms: a store trip per 100 ms is cheap, and a waiter elsewhere waits no longer.
    fn default() -> Self {
        Self { count: 1000, time: Duration::from_millis(100) }
    }
}

crate::define_options! {
    /// The options of locks. Given to a client, and changed for some locks with [`Locks::with_options`](crate::Locks::with_options).
    ///
    /// Options are layers: what they leave open comes from the layer below, which is that of the group, the client, or its URL, and at last
    /// from the defaults.
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// # use ylock::{Fairness, Options, Ylock};
    /// let ylock = Ylock::in_memory().with_options(Options::default().with_lease(Duration::from_secs(30)));
    /// let orders = ylock.locks("orders").with_options(Options::default().with_fairness(Fairness::Strict));
    /// assert_eq!(orders.options().lease(), Duration::from_secs(30));
    /// ```
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Options {}

    /// How long the store keeps a lock whose holder does not renew it any more: 100 ms to 24 h. It is renewed three times per lease.
    ///
    /// A long lease survives longer pauses and store outages; a short one frees the locks of a crashed process
    /// sooner. A waiter that gets the lock from another task of its process, or shares it with that task,
    /// has the lease of that task, which is at least as long as its own.
    lease / with_lease: Duration or "`10s`";

    /// Who is served first: `fair`, `strict` or `unfair`; see [`Fairness`].
    fairness / with_fairness: Fairness or "`fair`";

    /// How often a process may pass a lock from task to task before the store is asked again; at most 1022.
    hand_over: u32 or "`1000`";

    /// How long after the grant of the store a process may still pass the lock on.
    hand_over_time: Duration or "`100ms`";

    /// How long an acquisition waits at most before it fails with `TimedOut`.
    max_wait: Longest or "`none`";

    /// How long a holder may have a lock at most: when it has had it for so long it is lost, and
    /// the next waiter gets it.
    max_hold: Longest or "`none`";
}

impl Default for Options {
    fn default() -> Self {
        Self::with_defaults()
    }
}

impl Options {
    /// The lease of locks for which none is chosen.
    pub const DEFAULT_LEASE: Duration = Duration::from_secs(10);
    /// The shortest lease: below it the renewals of a busy machine come too late. An engine may demand more.
    pub const MIN_LEASE: Duration = Duration::from_millis(100);
    /// The longest lease.
    pub const MAX_LEASE: Duration = Duration::from_secs(24 * 60 * 60);

    /// Limits how long a process may keep a lock among its own tasks: the options `hand_over` and `hand_over_time`.
    #[must_use]
    pub fn with_hand_over(mut self, hand_over: HandOver) -> Self {
        (self.hand_over, self.hand_over_time) = (Some(hand_over.count), Some(hand_over.time));
        self
    }

    /// Bounds how long an acquisition that is awaited waits for other owners: after `longest` it fails
    /// with [`TimedOut`](crate::ErrorKind::TimedOut). Zero waits for none of them. The option
    /// `max_wait`, by default `none`. [`now`](crate::Acquire::now) and [`within`](crate::Acquire::within)
    /// say it for one call, and return `None` instead of an error.
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// # use ylock::{ErrorKind, Options, Ylock};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let impatient = Options::default().with_max_wait(Duration::from_millis(50));
    /// let users = Ylock::in_memory().locks("users").with_options(impatient);
    /// let alice = users.write("alice").await?;
    /// let other = users.write("alice").await.unwrap_err();
    /// assert_eq!(other.kind(), ErrorKind::TimedOut);
    /// # drop(alice); Ok(()) }
    /// ```
    #[must_use]
    pub fn with_max_wait(mut self, longest: Duration) -> Self {
        self.max_wait = Some(Longest(Some(longest)));
        self
    }

    /// Lets an acquisition wait for as long as it takes, whatever the layers below say: the option
    /// `max_wait=none`.
    #[must_use]
    pub fn without_max_wait(mut self) -> Self {
        self.max_wait = Some(Longest(None));
        self
    }

    /// Bounds how long a holder has the lock: a hold that has lasted for `longest` is lost with the
    /// reason [`HeldTooLong`](crate::LossReason::HeldTooLong), and the lock is given back at once,
    /// so that the next waiter gets it. The option `max_hold`, by default `none`.
    ///
    /// A lease ends when its process dies or stands still. It does not end when the work hangs: the
    /// client renews all the same. This bound ends such a hold.
    ///
    /// The time counts from the grant to this holder, on the clock of the lease:
    /// - Readers that share a lock in one process have an end each, and the others read on. A
    ///   downgrade does not begin the time anew.
    /// - Each lock of a set counts for itself. A set that waits for longer for one of its locks
    ///   gives back those that it has, and begins anew.
    /// - A permit of a semaphore is a hold as well, and so are the lead of an election and the
    ///   lock of a job that runs once per period. A leader that is to lead for as long as its
    ///   process lives has [none](Self::without_max_hold).
    ///
    /// # Reentrancy
    /// An owner that acquires the lock again has one hold, which lasts no longer for that. The
    /// bound of its first acquisition counts.
    ///
    /// # If the lock is lost
    /// `run` stops its work, and a guard says so from that moment on. As with every loss, work that
    /// is not stopped may still be at it when the next holder begins.
    ///
    /// # Errors
    /// Zero is refused with [`Config`](crate::ErrorKind::Config) by whatever takes the options.
    ///
    /// # Examples
    /// A report that takes minutes does not keep the next one out when it hangs:
    /// ```
    /// # use std::time::Duration;
    /// # use ylock::{Options, Ylock};
    /// # async fn write_report() {}
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
    /// let hour = Options::default().with_max_hold(Duration::from_secs(3600));
    /// let report = Ylock::in_memory().lock("reports", "2026").with_options(hour);
    /// report.write().run(|_| write_report()).await?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn with_max_hold(mut self, longest: Duration) -> Self {
        self.max_hold = Some(Longest(Some(longest)));
        self
    }

    /// Lets a hold last for as long as its holder wants it to, whatever the layers below say: the
    /// option `max_hold=none`.
    #[must_use]
    pub fn without_max_hold(mut self) -> Self {
        self.max_hold = Some(Longest(None));
        self
    }

    /// Returns these options, with what they leave open from `below`.
    #[must_use]
    pub fn over(&self, below: &Self) -> Self {
        Self {
            lease: self.lease.or(below.lease),
            fairness: self.fairness.or(below.fairness),
            hand_over: self.hand_over.or(below.hand_over),
            hand_over_time: self.hand_over_time.or(below.hand_over_time),
            max_wait: self.max_wait.or(below.max_wait),
            max_hold: self.max_hold.or(below.max_hold),
        }
    }

    /// Returns what [`over`](Self::over) does, if the engine supports it. A lease that comes from below was checked there, or is shortened
    /// by the engine.
    pub(crate) fn checked_over(&self, below: &Self, engine: &dyn Engine) -> Result<Self> {
        let options = self.over(below);
        options.check()?;
        if self.lease.is_some() {
            engine.check(&options)?;
        }
        Ok(options)
    }

    /// Returns the lease; see [`with_lease`](Self::with_lease).
    pub fn lease(&self) -> Duration {
        self.lease.unwrap_or(Self::DEFAULT_LEASE)
    }

    /// Returns the order in which waiters are served; see [`with_fairness`](Self::with_fairness).
    pub fn fairness(&self) -> Fairness {
        self.fairness.unwrap_or_default()
    }

    /// Returns the limits of hand-overs; see [`with_hand_over`](Self::with_hand_over).
    pub fn hand_over(&self) -> HandOver {
        let HandOver { count, time } = HandOver::default();
        HandOver { count: self.hand_over.unwrap_or(count), time: self.hand_over_time.unwrap_or(time) }
    }

    /// Returns how long an acquisition waits at most; `None` if that is for as long as it takes. See
    /// [`with_max_wait`](Self::with_max_wait).
    pub fn max_wait(&self) -> Option<Duration> {
        self.max_wait.unwrap_or_default().0
    }

    /// Returns how long a hold may last; `None` if that is for as long as its holder wants it to.
    /// See [`with_max_hold`](Self::with_max_hold).
    pub fn max_hold(&self) -> Option<Duration> {
        self.max_hold.unwrap_or_default().0
    }

    /// Returns how much earlier than the store a holder treats its lease as over: a tenth of the lease, but at least 100 ms
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
        if self.max_hold().is_some_and(|longest| longest.is_zero()) {
            let message = "a max_hold of zero would end every hold at once: it is a longer time, or none";
            return Err(invalid(message.to_owned()));
        }
        Ok(())
    }
}

/// Returns the margin of a lease; see [`Options::margin`].
pub(crate) fn margin(lease: Duration) -> Duration {
    (lease / 10).max(Duration::from_millis(100)).min(lease / 4)
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
        "a lease of {lease:?} is too short for a request timeout of {request_timeout:?}: it must be more than three times as long. \
         Connect with a shorter request_timeout=…, or with lease={lease:?} in the URL, which the default timeout follows"
    )))
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
        for (name, value) in [
            ("lease", "1500ms"),
            ("fairness", "strict"),
            ("hand_over", "7"),
            ("max_wait", "3s"),
            ("max_hold", "10m"),
        ] {
            assert!(options.set(name, value).unwrap());
        }
        assert!(!options.set("keyspace", "x").unwrap());
        assert_eq!(options.lease(), Duration::from_millis(1500));
        assert_eq!(options.fairness(), Fairness::Strict);
        assert_eq!(options.hand_over().count(), 7);
        assert_eq!(options.max_wait(), Some(Duration::from_secs(3)));
        assert_eq!(options.max_hold(), Some(Duration::from_secs(600)));
    }

    #[test]
    fn the_defaults_are_those_of_the_definition() {
        let mut said = Options::default();
        for option in Options::definitions() {
            assert!(said.set(option.name, option.default.trim_matches('`')).unwrap(), "{option:?}");
        }
        let open = Options::default();
        assert_eq!(
            (said.lease(), said.fairness(), said.max_wait()),
            (open.lease(), open.fairness(), open.max_wait())
        );
        assert_eq!((said.hand_over(), said.max_hold()), (open.hand_over(), open.max_hold()));
        assert_eq!(said.over(&open), said, "each was said");
    }

    #[test]
    fn what_is_left_open_comes_from_below() {
        let below = Options::default().with_lease(Duration::from_secs(5)).with_max_wait(Duration::ZERO);
        let above = Options::default().with_fairness(Fairness::Strict).without_max_wait().over(&below);
        assert_eq!(above.lease(), Duration::from_secs(5));
        assert_eq!((above.fairness(), above.max_wait()), (Fairness::Strict, None));
        assert_eq!(above.hand_over(), HandOver::default());
    }

    #[test]
    fn a_bound_on_holds_from_below_is_lifted_and_replaced() {
        let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(3600));
        let below = Options::default().with_max_hold(minute);
        assert_eq!(Options::default().over(&below).max_hold(), Some(minute));
        assert_eq!(Options::default().with_max_hold(hour).over(&below).max_hold(), Some(hour));
        assert_eq!(Options::default().without_max_hold().over(&below).max_hold(), None);
    }

    #[test]
    fn bad_values_name_the_option() {
        let mut options = Options::default();
        for (name, value) in [
            ("lease", "soon"),
            ("hand_over", "-1"),
            ("fairness", "very"),
            ("max_wait", ""),
            ("max_hold", "long"),
        ] {
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

    #[test]
    fn a_hold_of_no_time_is_refused() {
        let error = Options::default().with_max_hold(Duration::ZERO).check().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains("max_hold"), "{error}");
        assert!(Options::default().with_max_hold(Duration::from_nanos(1)).check().is_ok());
        assert!(Options::default().without_max_hold().check().is_ok());
    }
}
