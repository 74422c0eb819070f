//! Remembers what the looks made for one own row have shown of other clients.

use std::time::Duration;

use ylock_core::engine::{AcquisitionId, Ticket};
use ylock_core::environment::Moment;

use super::client::Client;
use crate::algorithm::judge;
use crate::algorithm::mute::Mute;
use crate::algorithm::pace::Estimates;
use crate::algorithm::store::Partition;
use crate::algorithm::told::Told;

/// What was seen for one own row; see the [module](self).
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The acquisition whose place was checked against a look: the place is kept from then on.
    pub(super) placed: Option<AcquisitionId>,
    pub(super) largest_ticket: Option<Ticket>,
    /// True if the last look showed a waiter with a ticket that is later than the own clock and that the clock follows.
    pub(super) is_slow: bool,
    /// The number of other clients that the last look showed taking part.
    pub(super) others: usize,
    /// The times from which a waiter's pauses are derived.
    pub(super) estimates: Estimates,
    /// Whether hints tell of turns here.
    pub(super) told: Told,
    /// Which clients do not, where others do.
    pub(super) mute: Mute,
    /// The moment at which a look last showed another client.
    others_seen: Option<Moment>,
}

impl Seen {
    /// Remembers what a look shows.
    pub(super) fn take_note(&mut self, look: &Partition, client: &Client) {
        let now = client.clock.now(&*client.environment);
        let latest = client.clock.latest_of(judge::tickets(look, client.slot), &*client.environment);
        // Not the largest ever: a place that was far ahead, and is gone, must not be followed any longer.
        self.largest_ticket = latest.map(Ticket::from_number);
        self.is_slow = judge::waiting(look, client.slot)
            .any(|ticket| now < ticket.get() && Some(ticket.get()) <= latest);
        self.others = judge::others(look, client.slot);
        if self.others > 0 {
            self.others_seen = Some(client.now());
        }
        if let Some(latest) = latest {
            client.clock.observe(latest, &*client.environment);
        }
    }

    /// Returns whether another client was seen not longer ago than `time`.
    pub(super) fn others_within(&self, time: Duration, now: Moment) -> bool {
        self.others_seen.is_some_and(|seen| now.since(seen) < time)
    }
}
