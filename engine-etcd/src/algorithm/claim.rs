//! One acquisition at one place: what is known of its key, and whether it is still wanted.
//!
//! These are two things. What is known of the key is a fact about the store, and no task owns it: the next task that does something for the
//! claim goes on from there, also when the task before was dropped in the middle. That the claim is not wanted is said once and never taken
//! back: the first task that comes removes it.

use std::sync::Arc;
use std::time::Duration;

use ylock_core::engine::{AcquisitionId, Request};
use ylock_core::environment::Moment;
use ylock_core::{Fairness, Mode};

use super::contender::{Contender, Content};
use super::names::Names;
use super::session::Session;

/// What a claim has when it begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begin<'a> {
    pub(crate) names: &'a Names,
    pub(crate) session: &'a Arc<Session>,
    pub(crate) now: Moment,
    /// The same moment by the wall clock.
    pub(crate) since: i64,
}

/// The claim of an acquisition; see the [module](self).
#[derive(Debug)]
pub(crate) struct Claim {
    /// The number of this claim among all of the client: the same acquisition may begin another one when this one has ended, whose key must
    /// have another name.
    pub(crate) number: u64,
    /// The session in which its requests were sent that make the key, and may still arrive.
    pub(crate) begun_in: Arc<Session>,
    /// The session in which the key is, or a younger one if the answer was lost to what has moved it.
    pub(crate) session: Arc<Session>,
    /// The contender's key in the store. No other claim has it until this one is known to be gone.
    pub(crate) stored_at: Vec<u8>,
    pub(crate) content: Content,
    pub(crate) lease: Duration,
    /// The moment at which the caller last showed that it runs, or from which the lease of the grant counts.
    pub(crate) shown: Moment,
    /// The revision that made the key, once that is known.
    pub(crate) place: Option<i64>,
    /// The revision at which this client has changed the key last, as far as it knows.
    pub(crate) changed: i64,
    /// The number of requests that could make the key and were not answered: as long as there are any, a copy of one may still arrive.
    pub(crate) unanswered: usize,
    /// Set once the claim is not wanted any more; changed by what keeps the order of removals alone.
    pub(crate) removal: Option<Removal>,
    /// The acquisition of the same client that stands behind this grant. Its place is the grant's, and goes with it.
    pub(crate) next: Option<AcquisitionId>,
    /// True if the last look at the other contenders showed one that conflicts.
    pub(crate) contended: bool,
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
    pub(super) fn new(begin: Begin<'_>, request: &Request, number: u64, stored_at: Vec<u8>) -> Self {
        let strict = request.fairness == Fairness::Strict;
        let content = Content {
            id: request.id,
            number,
            owner: request.owner,
            client: request.client.clone(),
            since: begin.since,
            mode: request.mode,
            ticket: request.ticket.filter(|_| strict).map(|ticket| ticket.get()),
            revoked: false,
        };
        Self {
            number,
            begun_in: Arc::clone(begin.session),
            session: Arc::clone(begin.session),
            stored_at,
            content,
            lease: request.lease,
            shown: begin.now,
            place: None,
            changed: 0,
            unanswered: 0,
            removal: None,
            next: None,
            contended: false,
        }
    }

    /// Returns when the lease is over, if the caller does not show any more that it runs.
    pub(crate) fn ends(&self) -> Moment {
        self.shown.plus(self.lease)
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.removal.is_none()
    }

    /// Returns the contender at its place, if that is known.
    pub(crate) fn contender(&self, id: AcquisitionId) -> Option<Contender> {
        let (key, ticket) = (self.stored_at.clone(), self.content.ticket);
        self.place.map(|place| Contender { key, id, place, mode: self.mode(), ticket })
    }

    /// Returns the mode that the claim has now.
    pub(crate) fn mode(&self) -> Mode {
        self.content.mode
    }
}
