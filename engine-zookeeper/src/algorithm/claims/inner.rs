//! The collection itself: what holds while it is locked.

use std::collections::{BTreeMap, BTreeSet};

use ylock_core::engine::{AcquisitionId, Request};
use ylock_core::environment::Moment;
use ylock_core::{Error, ErrorKind, Result};

use super::{Begun, GivenUp, MOST_BYTES};
use crate::algorithm::claim::{Begin, Claim, Node, Removal};

#[derive(Default)]
pub(super) struct Inner {
    pub(super) claims: BTreeMap<AcquisitionId, Claim>,
    begun: u64,
    pub(super) bytes: usize,
    /// The acquisitions that stand behind a grant of this client: their places end with that grant.
    pub(super) announced: BTreeSet<AcquisitionId>,
}

impl Inner {
    pub(super) fn begin(&mut self, begin: Begin<'_>, request: &Request) -> Result<Begun> {
        if let Some(claim) = self.claims.get_mut(&request.id) {
            if !claim.is_wanted() {
                return Ok(Begun::BeingRemoved);
            }
            claim.shown = begin.now.max(claim.shown);
            return Ok(Begun::Old(claim.node));
        }
        let claim = Claim::new(begin, request, self.next_number());
        self.insert(request.id, claim)
    }

    /// Returns a number that no claim has had.
    pub(super) fn next_number(&mut self) -> u64 {
        self.begun += 1;
        self.begun
    }

    /// Takes a new claim up, unless the session could not be ended then.
    pub(super) fn insert(&mut self, id: AcquisitionId, claim: Claim) -> Result<Begun> {
        let (number, bytes) = (claim.number, claim.bytes());
        if self.bytes + bytes > MOST_BYTES {
            return Err(too_many());
        }
        self.bytes += bytes;
        self.claims.insert(id, claim);
        Ok(Begun::New(number))
    }

    /// Returns the claims whose leases end by themselves: not those that end with a grant, and not those that are being removed.
    pub(super) fn lapsing(&self) -> impl Iterator<Item = (&AcquisitionId, &Claim)> {
        let ends_alone =
            |(id, claim): &(&AcquisitionId, &Claim)| claim.is_wanted() && !self.announced.contains(id);
        self.claims.iter().filter(ends_alone)
    }

    /// Says that a claim is not wanted any more, and is to be removed now. Returns `false` if there is none, or that was said before.
    pub(super) fn begin_removal(&mut self, id: AcquisitionId) -> bool {
        let claim = self.claims.get_mut(&id).filter(|claim| claim.is_wanted());
        claim.map(|claim| claim.removal = Some(Removal { due: Moment::ZERO, attempts: 0 })).is_some()
    }

    /// Says that the claim that stands behind a grant is not wanted any more: its place is the grant's, unless its caller has come
    /// meanwhile. A claim that stays is on its own from that moment on, and has a whole lease: it was last shown with the grant, whose
    /// lease may be longer.
    pub(super) fn remove_behind(
        &mut self,
        grant: AcquisitionId,
        stays: Option<(AcquisitionId, Moment)>,
    ) -> bool {
        let behind = self.claims.get_mut(&grant).and_then(|claim| claim.next.take());
        let announced = behind.filter(|behind| self.announced.remove(behind));
        match (announced, stays) {
            (Some(behind), Some((stays, now))) if behind == stays => {
                if let Some(claim) = self.claims.get_mut(&behind) {
                    claim.shown = now.max(claim.shown);
                }
                false
            }
            (Some(behind), _) => self.begin_removal(behind),
            (None, _) => false,
        }
    }

    pub(super) fn give_up(&mut self, id: AcquisitionId, due: Moment) -> Option<GivenUp> {
        let claim = self.claims.get_mut(&id)?;
        let attempts = claim.removal.map_or(0, |removal| removal.attempts);
        claim.removal = Some(Removal { due, attempts: attempts + 1 });
        let node = std::mem::replace(&mut claim.node, Node::Unknown);
        let place = claim.place.clone();
        Some(GivenUp { id, number: claim.number, place, node, alone: claim.alone, attempts })
    }

    /// Forgets a claim. Returns whether another claim is to be removed with it.
    pub(super) fn remove(&mut self, id: AcquisitionId) -> bool {
        let is_left = self.remove_behind(id, None);
        self.announced.remove(&id);
        if let Some(claim) = self.claims.remove(&id) {
            self.bytes = self.bytes.saturating_sub(claim.bytes());
        }
        is_left
    }
}

fn too_many() -> Error {
    let message =
        "this client holds so many locks that the server could not end its session: use several clients";
    Error::new(ErrorKind::Unsupported, message)
}
