//! One acquisition under one session: what is known of its node, and whether it is still wanted.
//!
//! These are two things. What is known of the node is a fact about the store, and no task owns it: the next task that does something for
//! the claim goes on from there, also when the task before was dropped in the middle. That the claim is not wanted is said once and never
//! taken back: from then on nothing is made for it, and the first task that comes removes it.

use std::time::Duration;

use ylock_core::engine::{AcquisitionId, Request};
use ylock_core::environment::Moment;
use ylock_core::{Fairness, Key, StoreToken};

use super::node::{Content, Name, Tag};
use super::place::Place;
use super::watch::Watch;

/// What a claim has of its session when it begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begin<'a> {
    /// The number of the session among all of this client.
    pub(crate) session: u64,
    pub(crate) base: &'a str,
    /// The longest lease that can be given.
    pub(crate) longest_lease: Duration,
    pub(crate) now: Moment,
    /// The same moment by the wall clock.
    pub(crate) since: i64,
}

/// The claim of an acquisition; see the [module](self).
#[derive(Debug)]
pub(crate) struct Claim {
    /// The number of this claim: the same acquisition may begin another one when this one has ended, and what is still to be said of the
    /// first must not be taken for the second.
    pub(crate) number: u64,
    pub(crate) tag: Tag,
    pub(crate) key: Key,
    pub(crate) place: Place,
    pub(crate) content: Content,
    /// The number of writes to the content since the node was made, as far as is known.
    pub(crate) version: i64,
    pub(crate) node: Node,
    /// Set once the claim is not wanted any more.
    pub(crate) removal: Option<Removal>,
    pub(crate) lease: Duration,
    /// The moment at which the caller last showed that it runs, or from which the lease of the grant counts.
    pub(crate) shown: Moment,
    /// True if no other contender was there at the last look.
    pub(crate) alone: bool,
    /// The acquisition of the same client that stands behind this grant. Its place is the grant's, and goes with it.
    pub(crate) next: Option<AcquisitionId>,
    /// Fires when the claim's node is changed or removed.
    pub(crate) own: Watch,
    /// Fires when a contender comes or leaves.
    pub(crate) others: Watch,
    /// True if the last look at the other contenders showed one that conflicts.
    pub(crate) contended: bool,
}

/// The state of a claim's node, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    /// Not known: a request that makes, renames, moves or removes the node may be on its way. Or nothing was sent yet.
    Unknown,
    /// The node is there.
    At(Name),
}

/// The progress of a claim's removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Removal {
    /// The moment from which on the cleaner removes the claim.
    pub(crate) due: Moment,
    /// The number of times that the removal was begun.
    pub(crate) attempts: u32,
}

impl Claim {
    pub(crate) fn new(begin: Begin<'_>, request: &Request, number: u64) -> Self {
        let strict = request.fairness == Fairness::Strict;
        let ticket = request.ticket.filter(|_| strict).map(|ticket| ticket.get());
        Self {
            number,
            tag: Tag { mode: request.mode, id: request.id, session: begin.session, ticket },
            key: request.key.clone(),
            place: Place::of(begin.base, &request.key),
            content: Content {
                owner: request.owner,
                client: request.client.clone(),
                since: begin.since,
                token: None,
                revoked: false,
            },
            version: 0,
            node: Node::Unknown,
            removal: None,
            lease: request.lease.min(begin.longest_lease),
            shown: begin.now,
            alone: false,
            next: None,
            own: Watch::default(),
            others: Watch::default(),
            contended: false,
        }
    }

    /// Returns when the lease is over, if the caller does not show any more that it runs.
    pub(crate) fn ends(&self) -> Moment {
        self.shown.plus(self.lease)
    }

    /// Returns the number of bytes that the claim adds to the record of the session's end.
    pub(crate) fn bytes(&self) -> usize {
        const LENGTH_AND_PLACE: usize = 4 + 1 + 10;
        self.place.lock.len() + self.tag.prefix().len() + LENGTH_AND_PLACE
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.removal.is_none()
    }

    /// Returns whether this is the claim with that number, and requests for it may be sent: it is wanted, and what it has is not known.
    pub(crate) fn is_open(&self, number: u64) -> bool {
        self.number == number && self.is_wanted() && self.node == Node::Unknown
    }

    /// Returns whether the claim is wanted and its node has this name.
    pub(crate) fn stands_at(&self, name: Name) -> bool {
        self.is_wanted() && self.node == Node::At(name)
    }

    /// Notes that the node is there.
    pub(crate) fn settle(&mut self, name: Name) {
        (self.node, self.tag, self.version) = (Node::At(name), name.tag, 0);
    }

    /// Returns the claim's token, once it is known.
    pub(crate) fn token(&self) -> Option<StoreToken> {
        self.content.token
    }
}
