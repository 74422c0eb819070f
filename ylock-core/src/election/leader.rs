//! Who leads, as the store shows it.

use std::time::SystemTime;

use crate::client_name::ClientName;
use crate::engine::{Holder, Inspection};
use crate::mode::Mode;
use crate::owner::Owner;
use crate::token::Token;

/// The leader of an election, as the store shows it.
#[derive(Clone, Debug)]
pub struct Leader(Holder);

impl Leader {
    /// Returns the leader in this view of the lock. A reader does not lead.
    pub(super) fn in_view(seen: Inspection) -> Option<Self> {
        seen.holders.into_iter().find(|holder| holder.mode == Mode::Write).map(Self)
    }

    /// Returns the name of its client.
    pub fn client(&self) -> &ClientName {
        &self.0.client
    }

    /// Returns the owner that leads.
    pub fn owner(&self) -> Owner {
        self.0.owner
    }

    /// Returns its term; `None` if the engine gives no tokens. Of another client it is that of the first candidate to which the store gave the
    /// lead: one that a task of that client has handed on to the next has a larger term, and the store does not know it.
    /// Cassandra shows also a candidate that is about to lead and may still give way: the term that is shown next is smaller then.
    pub fn term(&self) -> Option<Token> {
        self.0.token
    }

    /// Returns since when it leads, by the wall clock of its client.
    pub fn since(&self) -> SystemTime {
        self.0.since
    }

    /// Returns whether both are the same lead of the same candidate. The time is left out: a store may tell it a little later than it shows the
    /// holder.
    pub fn is_same_lead(&self, other: &Self) -> bool {
        let of = |leader: &Self| (leader.0.id, leader.0.owner, leader.0.token);
        of(self) == of(other)
    }
}
