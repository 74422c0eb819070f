//! The values of options that are one of a few words, or several options together.

use std::time::Duration;

use ylock_core::option_words;

/// The way in which a waiter learns that its turn has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notify {
    /// As with [`On`](Self::On), if messages arrive, which the client finds out when it waits for the first time: through a pooler in transaction mode
    /// none does. Otherwise the waiter asks, again and again.
    #[default]
    Auto,
    /// The server tells the waiter, by `NOTIFY`. Should a message get lost, the waiter asks by itself a moment later.
    On,
    /// The waiter asks, again and again.
    Off {
        /// The first pause.
        poll: Duration,
        /// The longest pause: each is about twice as long as the one before, up to this. Equal to `poll` for a constant pause.
        poll_longest: Duration,
    },
}

/// The option `notify`, without those that say how often to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotifyWord {
    Auto,
    On,
    Off,
}

option_words!(NotifyWord: Auto = "auto", On = "on", Off = "off");

/// The treatment of tables and functions when a client connects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaMode {
    /// Create them if there are none, then check.
    #[default]
    Create,
    /// They must be there and fit.
    Check,
}

option_words!(SchemaMode: Create = "create", Check = "check");

/// The demands on standbys, which may take over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standby {
    /// Where there are standbys, also one that is away and has a replication slot, the server must wait for one of them before it confirms a commit. Otherwise
    /// connecting is refused, and so are acquisitions if a standby comes later.
    #[default]
    Synchronous,
    /// A standby that takes over may lack the last writes. Locks that were granted in them are granted again: so there are no tokens.
    LostWritesAccepted,
}

option_words!(Standby: Synchronous = "synchronous", LostWritesAccepted = "lost_writes_accepted");
