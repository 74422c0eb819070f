//! The promises of an engine, as a value.

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
    /// All promises.
    pub const ALL: Self = Self {
        exclusive: true,
        fair: true,
        fencing: true,
        shared_reads: true,
        durable: true,
        exclusive_after_failover: true,
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
