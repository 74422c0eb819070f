//! What a store tells of itself, for those who look after it.

use std::time::Duration;

/// The answer to [`Ylock::diagnose`](crate::Ylock::diagnose): what the servers tell of themselves. What an engine is not told, or does not ask for,
/// is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostics {
    /// The servers that the client knows, those included that do not answer.
    pub servers: Vec<ServerReport>,
    /// What is so of the store as a whole: what it is, in a word or two, and what it is like.
    pub facts: Vec<(&'static str, String)>,
    /// What breaks a promise of the engine, or may.
    pub findings: Vec<Finding>,
}

/// What one server tells of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerReport {
    /// Its address, as the client reaches it.
    pub address: String,
    /// Why it is of no use now; `None` if it answers.
    pub fault: Option<String>,
    /// Its version, in its own words.
    pub version: Option<String>,
    /// Its part among the servers, such as the one that leads.
    pub role: Option<String>,
    /// The user that the client is logged in as.
    pub login: Option<String>,
    /// True if the connection is encrypted.
    pub encrypted: Option<bool>,
    /// The difference between its clock and that of this machine.
    pub clock: Option<ClockReading>,
    /// The time from a question to its answer.
    pub round_trip: Option<Duration>,
}

/// A setting of the store, or its state, that breaks a promise, or may.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What is wrong, and what comes of it.
    pub what: String,
    /// What mends it: a line to run or to write, where there is one.
    pub remedy: String,
}

/// By how much the clock of a server is ahead of the wall clock of this machine, in microseconds; behind it where that is negative. It is between
/// the two: an answer does not tell when it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClockReading {
    /// By so much at least.
    pub least: i64,
    /// By so much at most.
    pub most: i64,
}

impl ServerReport {
    /// Creates the facts of a server of which nothing is known but that it answers.
    pub fn new(address: impl Into<String>) -> Self {
        Self { address: address.into(), ..Self::default() }
    }

    /// Creates the facts of a server that is of no use, for this reason.
    pub fn failed(address: impl Into<String>, fault: impl Into<String>) -> Self {
        Self { address: address.into(), fault: Some(fault.into()), ..Self::default() }
    }
}

impl Finding {
    /// Creates a risk from what is wrong and what mends it.
    pub fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: remedy.into() }
    }
}

impl ClockReading {
    /// Creates what an answer tells: `shown` is the time in it, true to within `grain`; `before` and `after` are the times of this machine around the
    /// question. All in microseconds.
    pub fn of(before: i64, shown: i64, after: i64, grain: i64) -> Self {
        let least = shown.saturating_sub(after).saturating_sub(grain);
        Self { least, most: shown.saturating_sub(before).saturating_add(grain) }
    }

    /// Returns by how much the two clocks differ for certain, whichever is ahead.
    pub fn apart(self) -> Duration {
        Duration::from_micros(self.least.max(-self.most).try_into().unwrap_or(0))
    }
}

impl Diagnostics {
    /// Returns the two servers whose clocks differ most for certain, the slower one first, and by how much they do. `None` if none do.
    pub fn clocks_apart(&self) -> Option<(&ServerReport, &ServerReport, Duration)> {
        let told = || self.servers.iter().filter_map(|server| Some((server, server.clock?)));
        let (slow, slow_clock) = told().min_by_key(|(_, clock)| clock.most)?;
        let (fast, fast_clock) = told().max_by_key(|(_, clock)| clock.least)?;
        let apart = fast_clock.least.saturating_sub(slow_clock.most).try_into().ok()?;
        Some((slow, fast, Duration::from_micros(apart)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(address: &str, least: i64, most: i64) -> ServerReport {
        ServerReport { clock: Some(ClockReading { least, most }), ..ServerReport::new(address) }
    }

    #[test]
    fn only_what_is_certain_counts_as_a_difference_of_clocks() {
        let seen =
            |servers: &[ServerReport]| Diagnostics { servers: servers.into(), ..Diagnostics::default() };
        assert!(
            seen(&[server("a", -900, 100), server("b", -50, 950), ServerReport::new("c")])
                .clocks_apart()
                .is_none()
        );
        assert!(seen(&[]).clocks_apart().is_none());
        let seen = seen(&[server("a", 0, 5), server("b", -4_005, -4_000), server("c", 2, 9)]);
        let (slow, fast, apart) = seen.clocks_apart().unwrap();
        assert_eq!((&*slow.address, &*fast.address, apart), ("b", "c", Duration::from_micros(4_002)));
    }

    #[test]
    fn a_slow_answer_says_less_about_a_clock() {
        let quick = ClockReading::of(1_000, 6_000, 1_002, 1);
        assert_eq!((quick.least, quick.most), (4_997, 5_001));
        assert_eq!(quick.apart(), Duration::from_micros(4_997));
        assert_eq!(ClockReading::of(10_000, 5_000, 11_000, 0).apart(), Duration::from_micros(5_000));
        assert_eq!(ClockReading::of(1_000, 6_000, 11_000, 0).apart(), Duration::ZERO);
        assert_eq!(ClockReading::of(0, i64::MIN, i64::MAX, 1).least, i64::MIN);
    }
}
