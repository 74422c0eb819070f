//! What the looks of one seat have shown of others.

use std::time::Duration;

use ylock_core::engine::{AcquisitionId, Ticket};
use ylock_core::environment::Moment;

use super::client::Client;
use crate::algorithm::judge;
use crate::algorithm::pace::Learnt;
use crate::algorithm::store::Partition;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The acquisition whose place has stood a look: it is kept from then on.
    pub(super) placed: Option<AcquisitionId>,
    pub(super) largest_ticket: Option<Ticket>,
    /// Whether the last look showed somebody waiting with a ticket that was later than the own clock.
    pub(super) is_slow: bool,
    /// How many others the last look showed.
    pub(super) others: usize,
    /// How fast the queue moves here.
    pub(super) learnt: Learnt,
    /// When a look last showed somebody else.
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

    /// Whether somebody else was seen not longer ago than this.
    pub(super) fn others_within(&self, time: Duration, now: Moment) -> bool {
        self.others_seen.is_some_and(|seen| now.since(seen) < time)
    }
}
