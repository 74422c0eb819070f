//! What all clients of a table go by: the table records it, so that a client with another rule is refused by name.

use std::time::Duration;

use super::{CassandraOptions, Expiry, Protocol};

/// How far the clocks of two servers may differ by default where rows go by their TTL: each second is one more after a crash.
const SKEW_OF_TTL: Duration = Duration::from_secs(2);
/// The same where rows are observed, and no waiter waits for it.
const SKEW_OF_OBSERVED: Duration = Duration::from_secs(60);
const TOKEN_TTL: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The rules of one table; see the [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    pub(crate) expiry: Expiry,
    pub(crate) max_clock_skew: Duration,
    pub(crate) token_ttl: Duration,
    pub(crate) protocol: Protocol,
}

impl Rules {
    /// Returns the defaults with this `expiry`: also the rules of a table of an earlier version, which does not record the others.
    pub(crate) fn of(expiry: Expiry) -> Self {
        let max_clock_skew = match expiry {
            Expiry::Ttl => SKEW_OF_TTL,
            Expiry::Observed => SKEW_OF_OBSERVED,
        };
        Self { expiry, max_clock_skew, token_ttl: TOKEN_TTL, protocol: Protocol::default() }
    }

    /// Returns each rule as the option that sets it.
    pub(crate) fn words(self) -> [(&'static str, String); 4] {
        [
            ("expiry", self.expiry.to_string()),
            ("max_clock_skew", exact(self.max_clock_skew)),
            ("token_ttl", exact(self.token_ttl)),
            ("protocol", self.protocol.to_string()),
        ]
    }
}

impl CassandraOptions {
    /// Returns the rules of a table that this client creates.
    pub(crate) fn rules(&self) -> Rules {
        self.rules_beside(Rules::of(self.expiry()))
    }

    /// Returns the rules of a table, with those in place of its own that this client has asked for.
    pub(crate) fn rules_beside(&self, theirs: Rules) -> Rules {
        let expiry = self.expiry.unwrap_or(theirs.expiry);
        let theirs = if expiry == theirs.expiry { theirs } else { Rules { expiry, ..Rules::of(expiry) } };
        Rules {
            expiry,
            max_clock_skew: self.max_clock_skew.unwrap_or(theirs.max_clock_skew),
            token_ttl: self.token_ttl.unwrap_or(theirs.token_ttl),
            protocol: self.protocol.unwrap_or(theirs.protocol),
        }
    }

    /// Takes over the rules of the table.
    #[must_use]
    pub(crate) fn with_rules(self, rules: Rules) -> Self {
        self.with_expiry(rules.expiry)
            .with_max_clock_skew(rules.max_clock_skew)
            .with_token_ttl(rules.token_ttl)
            .with_protocol(rules.protocol)
    }
}

/// Returns a duration in the largest unit of which it is a whole number.
fn exact(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
    let (unit, name) = units.into_iter().find(|(unit, _)| nanos.is_multiple_of(*unit)).unwrap_or((1, "ns"));
    format!("{}{name}", nanos / unit)
}

#[cfg(test)]
mod tests {
    use ylock_core::options::OptionValue;

    use super::*;

    #[test]
    fn durations_are_written_as_they_are_read() {
        for (nanos, text) in
            [(0, "0s"), (90_000_000_000, "90s"), (1_500_000_000, "1500ms"), (1_001, "1001ns")]
        {
            let duration = Duration::from_nanos(nanos);
            assert_eq!((exact(duration).as_str(), Duration::from_text(text)), (text, Ok(duration)));
        }
    }

    #[test]
    fn what_was_not_asked_for_is_as_the_table_has_it() {
        let theirs = Rules {
            token_ttl: Duration::from_secs(9),
            protocol: Protocol::ShadowRows,
            ..Rules::of(Expiry::Ttl)
        };
        let options = CassandraOptions::new("ks");
        assert_eq!(options.rules_beside(theirs), theirs);
        let asked = options.clone().with_token_ttl(Duration::from_secs(8)).rules_beside(theirs);
        assert_eq!(asked, Rules { token_ttl: Duration::from_secs(8), ..theirs });
        // The others would not fit another expiry.
        assert_eq!(options.with_expiry(Expiry::Observed).rules_beside(theirs), Rules::of(Expiry::Observed));
    }
}
