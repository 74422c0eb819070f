//! One acquisition under one session: what is known of its node, and whether it is still wanted.
//!
//! These are two things. What is known is a fact about the store, and no task owns it: whoever is the next to do something for the
//! claim goes on from there, also when the one before was dropped in the middle. That it is not wanted is said once and never taken
//! back: nothing is made for it from then on, and it is removed by whoever comes first.

use std::time::Duration;

use ylock_core::engine::{AcquisitionId, Request};
use ylock_core::environment::Moment;
use ylock_core::{Fairness, Key, StoreToken};

use crate::driver::Session;
use crate::node::{Content, Name, Tag};
use crate::place::Place;
use crate::watch::Watch;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Claim {
    /// Which claim it is: the same acquisition may begin another one when it has ended, and what is still to be said of the first
    /// must not be taken for the second.
    pub(crate) number: u64,
    pub(crate) tag: Tag,
    pub(crate) key: Key,
    pub(crate) place: Place,
    pub(crate) content: Content,
    /// How often the content has been written to since the node was made, as far as is known.
    pub(crate) version: i32,
    pub(crate) node: Node,
    /// It is not wanted any more.
    pub(crate) leaving: Option<Leaving>,
    pub(crate) lease: Duration,
    /// When its caller last showed that it runs, or since when the lease of its grant counts.
    pub(crate) shown: Moment,
    /// Nobody else was there at the last look.
    pub(crate) alone: bool,
    /// Who stands behind this grant, of the same client. The place is the grant's, and goes with it.
    pub(crate) next: Option<AcquisitionId>,
    /// Fires when somebody changes or removes the own node.
    pub(crate) own: Watch,
    /// Fires when somebody comes or leaves.
    pub(crate) others: Watch,
    /// What the last look at the others showed.
    pub(crate) contended: bool,
}

/// What is known of a claim's node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    /// Nobody knows: a request that makes, renames, moves or removes it may be on its way. Or nothing was sent yet.
    Unknown,
    /// It is there, as far as is known.
    At(Name),
}

/// How far the removal of a claim is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leaving {
    /// From when on the cleaner sees to it.
    pub(crate) due: Moment,
    /// How often it was begun.
    pub(crate) attempts: u32,
}

impl Claim {
    pub(crate) fn new(session: &Session, request: &Request, number: u64) -> Self {
        let strict = request.fairness == Fairness::Strict;
        let ticket = request.ticket.filter(|_| strict).map(|ticket| ticket.get());
        let since = session.environment.wall_micros();
        Self {
            number,
            tag: Tag { mode: request.mode, id: request.id, session: session.number, ticket },
            key: request.key.clone(),
            place: Place::of(&session.base, &request.key),
            content: Content {
                owner: request.owner,
                client: request.client.clone(),
                since,
                token: None,
                revoked: false,
            },
            version: 0,
            node: Node::Unknown,
            leaving: None,
            lease: request.lease.min(session.longest_lease()),
            shown: session.now(),
            alone: false,
            next: None,
            own: Watch::default(),
            others: Watch::default(),
            contended: false,
        }
    }

    /// When the lease is over of one that nobody shows any more.
    pub(crate) fn ends(&self) -> Moment {
        self.shown.plus(self.lease)
    }

    /// What it adds to the record of the session's end.
    pub(crate) fn bytes(&self) -> usize {
        const LENGTH_AND_PLACE: usize = 4 + 1 + 10;
        self.place.lock.len() + self.tag.prefix().len() + LENGTH_AND_PLACE
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.leaving.is_none()
    }

    /// Whether it is this claim, and requests for it may be sent: it is wanted, and nobody knows what it has.
    pub(crate) fn is_open(&self, number: u64) -> bool {
        self.number == number && self.is_wanted() && self.node == Node::Unknown
    }

    /// Whether it is wanted and stands there.
    pub(crate) fn stands_at(&self, name: Name) -> bool {
        self.is_wanted() && self.node == Node::At(name)
    }

    /// The node is there.
    pub(crate) fn settle(&mut self, name: Name) {
        (self.node, self.tag, self.version) = (Node::At(name), name.tag, 0);
    }

    /// Its token, once it is known.
    pub(crate) fn token(&self) -> Option<StoreToken> {
        self.content.token
    }
}
