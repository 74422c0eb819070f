//! The promises of an engine, as a value.

use std::fmt;

/// The promises of an engine. Each field that is `false` leaves out the conformance cases that need it, and the run
/// says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Guarantees {
    /// The store keeps a grant for its whole lease, and so nothing but a loss of data or a wrong clock lets another holder in beside it.
    /// Otherwise the store may throw the grant away while its holder still believes in it, and then its key may be granted again.
    pub exclusive: bool,
    /// There is a queue: clients that wait are served in the order in which they joined it, and can be seen in it; of several
    /// that try at once one gets the key.
    pub fair: bool,
    /// Grants carry a token that grows along the order of entries.
    pub fencing: bool,
    /// Readers share a key.
    pub shared_reads: bool,
    /// A grant outlives a restart of the store.
    pub durable: bool,
    /// A grant stays exclusive when another server of the store takes over. Otherwise its key may be granted again then, while its holder
    /// still believes in it, and there is no token to tell the two grants apart.
    pub exclusive_after_failover: bool,
}

impl Guarantees {
    /// No promise. An engine adds what it keeps; what a later version of ylock adds to the list, an engine does not promise before it says so.
    pub const NONE: Self = Self {
        exclusive: false,
        fair: false,
        fencing: false,
        shared_reads: false,
        durable: false,
        exclusive_after_failover: false,
    };

    /// Returns the same promises, with or without grants that the store keeps.
    #[must_use]
    pub const fn with_exclusive(mut self, exclusive: bool) -> Self {
        self.exclusive = exclusive;
        self
    }

    /// Returns the same promises, with or without grants that stay exclusive when another server takes over.
    #[must_use]
    pub const fn with_exclusive_after_failover(mut self, exclusive: bool) -> Self {
        self.exclusive_after_failover = exclusive;
        self
    }

    /// Returns the same promises, with or without fairness.
    #[must_use]
    pub const fn with_fair(mut self, fair: bool) -> Self {
        self.fair = fair;
        self
    }

    /// Returns the same promises, with or without fencing tokens.
    #[must_use]
    pub const fn with_fencing(mut self, fencing: bool) -> Self {
        self.fencing = fencing;
        self
    }

    /// Returns the same promises, with or without shared reads.
    #[must_use]
    pub const fn with_shared_reads(mut self, shared_reads: bool) -> Self {
        self.shared_reads = shared_reads;
        self
    }

    /// Returns the same promises, with or without grants that outlive a restart of the store.
    #[must_use]
    pub const fn with_durable(mut self, durable: bool) -> Self {
        self.durable = durable;
        self
    }
}

/// Writes which promises are kept, and which are not.
impl fmt::Display for Guarantees {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [
            ("exclusive", self.exclusive),
            ("fair", self.fair),
            ("fencing", self.fencing),
            ("shared reads", self.shared_reads),
            ("durable", self.durable),
            ("exclusive after a failover", self.exclusive_after_failover),
        ];
        let words = |kept: bool| {
            let words: Vec<_> = all.iter().filter(|one| one.1 == kept).map(|one| one.0).collect();
            words.join(", ")
        };
        match (words(true), words(false)) {
            (kept, not) if not.is_empty() => f.write_str(&kept),
            (kept, not) if kept.is_empty() => write!(f, "not {not}"),
            (kept, not) => write!(f, "{kept}; not {not}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Guarantees;

    #[test]
    fn promises_are_written_with_those_that_are_not_kept() {
        let some = Guarantees::NONE.with_exclusive(true).with_shared_reads(true);
        let words = "exclusive, shared reads; not fair, fencing, durable, exclusive after a failover";
        assert_eq!(some.to_string(), words);
        let none = "not exclusive, fair, fencing, shared reads, durable, exclusive after a failover";
        assert_eq!(Guarantees::NONE.to_string(), none);
    }
}
