//! The claims of a client, to all that it has in the store or may have: one [claim](super::claim) per acquisition, from before its first
//! request is sent until its key is known to be gone.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use ylock_core::engine::{AcquisitionId, Request};
use ylock_core::environment::Moment;

use super::claim::{Begin, Claim, Removal};
use super::kept::Kept;
use super::session::Session;

/// The claims of a client; see the [module](self).
#[derive(Default)]
pub(crate) struct Claims {
    inner: Mutex<Inner>,
    /// Rung when there is something to look after.
    pub(crate) work: Arc<Notify>,
}

#[derive(Default)]
struct Inner {
    claims: BTreeMap<AcquisitionId, Claim>,
    /// The claims that are being removed, in the order in which the cleaner takes them over.
    removals: BTreeSet<(Moment, AcquisitionId)>,
    begun: u64,
    /// The keys that claims have in the store, or may have.
    taken: HashSet<Vec<u8>>,
    /// The acquisitions that stand behind a grant of this client: their places end with that grant.
    announced: BTreeSet<AcquisitionId>,
    /// The former claim of each acquisition that gives its place up and whose key may still be there.
    former: BTreeMap<AcquisitionId, AcquisitionId>,
}

/// What is known of an acquisition.
#[derive(Clone, Debug)]
pub(crate) enum Known {
    /// Nothing: no claim was begun.
    Nothing,
    /// Whether the key is there is not known.
    Unknown(Begun),
    /// The key is there.
    At(Begun),
    /// The claim is being removed.
    BeingRemoved,
}

/// A claim that was begun.
#[derive(Clone, Debug)]
pub(crate) struct Begun {
    pub(crate) session: Arc<Session>,
    pub(crate) number: u64,
}

/// A request that is about to make a claim's key.
#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) stored_at: Vec<u8>,
    pub(crate) value: Vec<u8>,
}

/// A claim that is to be removed.
#[derive(Debug)]
pub(crate) struct GivenUp {
    pub(crate) id: AcquisitionId,
    pub(crate) number: u64,
    pub(crate) begun_in: Arc<Session>,
    pub(crate) session: Arc<Session>,
    pub(crate) stored_at: Vec<u8>,
    pub(crate) place: Option<i64>,
    /// True if a request that makes the key may still arrive.
    pub(crate) is_in_doubt: bool,
    /// The number of times that its removal was begun before.
    pub(crate) attempts: u32,
}

impl Claims {
    /// Returns what is known of an acquisition, whose caller runs. Its claim is the caller's from now on.
    pub(crate) fn known(&self, id: AcquisitionId, now: Moment) -> Known {
        let mut inner = self.inner.lock();
        inner.announced.remove(&id);
        let Some(claim) = inner.claims.get_mut(&id) else { return Known::Nothing };
        if !claim.is_wanted() {
            return Known::BeingRemoved;
        }
        claim.shown = now.max(claim.shown);
        let begun = Begun { session: Arc::clone(&claim.session), number: claim.number };
        if claim.place.is_some() { Known::At(begun) } else { Known::Unknown(begun) }
    }

    /// Makes a claim for a request that has none. Returns its number; `None` if it has one.
    pub(crate) fn begin(&self, begin: Begin<'_>, request: &Request) -> Option<u64> {
        self.inner.lock().begin(begin, request)
    }

    /// Makes a claim for a request that stands behind a grant of this client, in one step with the look at the grant: a task that gives the grant
    /// up gives up all that stands behind it. Returns it, with the session in which all requests are sent that make its key: the mark that forbids them is
    /// under that lease. `None` if the grant is not wanted any more, the request has its place, or the session is not one for its lease.
    pub(crate) fn begin_behind(
        &self,
        begin: Begin<'_>,
        grant: AcquisitionId,
        next: &Request,
    ) -> Option<Begun> {
        let mut inner = self.inner.lock();
        if !inner.claims.get(&grant).is_some_and(Claim::is_wanted) {
            return None;
        }
        let known = inner.claims.get(&next.id).map(|claim| {
            let begun = Begun { session: Arc::clone(&claim.begun_in), number: claim.number };
            (begun, claim.is_wanted() && claim.place.is_none())
        });
        let begun = match known {
            Some((begun, true)) => begun,
            Some((_, false)) => return None,
            // A waiter that asks for another lease takes its place when it comes itself.
            None if !begin.session.serves(next.lease) => return None,
            None => Begun { session: Arc::clone(begin.session), number: inner.begin(begin, next)? },
        };
        if let Some(claim) = inner.claims.get_mut(&grant) {
            claim.next = Some(next.id);
        }
        inner.announced.insert(next.id);
        Some(begun)
    }

    /// Notes that a request is about to be sent that makes the claim's key. `None` if the claim is not wanted any more: then nothing may be
    /// sent. What is sent after all that was said here is found by the mark of the task that removes the claim.
    pub(crate) fn send(&self, id: AcquisitionId, number: u64) -> Option<Sending> {
        let mut inner = self.inner.lock();
        let claim = inner.claims.get_mut(&id).filter(|claim| claim.number == number && claim.is_wanted())?;
        claim.unanswered += 1;
        Some(Sending { stored_at: claim.stored_at.clone(), value: claim.content.write() })
    }

    /// Notes that such a request was answered, or has had no effect, and where the key is if that is known. Returns whether the claim is still
    /// wanted.
    pub(crate) fn answered(&self, id: AcquisitionId, number: u64, place: Option<i64>) -> bool {
        let noted = self.with(id, number, |claim| {
            claim.unanswered -= 1;
            claim.place = place.or(claim.place);
            claim.changed = claim.changed.max(place.unwrap_or(0));
            claim.is_wanted()
        });
        noted == Some(true)
    }

    /// Returns the key of a claim as it was stored last, if the claim is wanted and its place known.
    pub(crate) fn kept(&self, id: AcquisitionId, number: u64) -> Option<Kept> {
        let kept = self.with(id, number, |claim| {
            let place = claim.place.filter(|_| claim.is_wanted())?;
            let (session, stored_at) = (Arc::clone(&claim.session), claim.stored_at.clone());
            Some(Kept {
                id,
                number,
                session,
                stored_at,
                place,
                changed: claim.changed,
                content: claim.content.clone(),
            })
        });
        kept.flatten()
    }

    /// Notes that the key of a claim was put under the lease of another session, at this revision. What was done before that, and is told later, says
    /// nothing any more. Returns whether the claim is still wanted.
    pub(crate) fn moved(&self, kept: &Kept, session: &Arc<Session>, revision: i64) -> bool {
        let noted = self.with(kept.id, kept.number, |claim| {
            if revision > claim.changed {
                session.note_claim();
                claim.session.forget_claim();
                claim.session = Arc::clone(session);
                claim.changed = revision;
                claim.content = kept.content.clone();
            }
            claim.is_wanted()
        });
        noted == Some(true)
    }

    /// Notes that the claim was let in. Returns `false` if it has been given up. In one step with the look at the claim: other tasks give up a claim
    /// whose lease has ended, and must not give up this one from now on.
    pub(crate) fn enter(&self, id: AcquisitionId, number: u64, sent: Moment, contended: bool) -> bool {
        let entered = self.with(id, number, |claim| {
            if claim.is_wanted() {
                (claim.shown, claim.contended) = (sent, contended);
            }
            claim.is_wanted()
        });
        entered == Some(true)
    }

    /// Looks at this claim of an acquisition, or changes it. Returns `None` if there is no such claim.
    pub(crate) fn with<T>(
        &self,
        id: AcquisitionId,
        number: u64,
        work: impl FnOnce(&mut Claim) -> T,
    ) -> Option<T> {
        let mut inner = self.inner.lock();
        inner.claims.get_mut(&id).filter(|claim| claim.number == number).map(work)
    }

    /// Looks at whatever claim an acquisition has, or changes it.
    pub(crate) fn with_any<T>(&self, id: AcquisitionId, work: impl FnOnce(&mut Claim) -> T) -> Option<T> {
        self.inner.lock().claims.get_mut(&id).map(work)
    }

    /// Gives up the claim that stands behind a grant, unless it is the one that stays.
    pub(crate) fn withdraw(&self, grant: AcquisitionId, stays: Option<AcquisitionId>) {
        let mut inner = self.inner.lock();
        if inner.claims.get(&grant).is_some_and(|claim| claim.next == stays) {
            return;
        }
        let is_left = inner.remove_behind(grant, None);
        drop(inner);
        self.ring(is_left);
    }

    /// Gives a claim up: nothing is sent for it from now on. The claim that stands behind it goes as well, unless it is to `stay`, on its own from
    /// that moment on. The cleaner removes the claim from `due` on, unless it is gone by then.
    pub(crate) fn give_up(
        &self,
        id: AcquisitionId,
        stay: Option<(AcquisitionId, Moment)>,
        due: Moment,
    ) -> Option<GivenUp> {
        let mut inner = self.inner.lock();
        let is_left = inner.remove_behind(id, stay);
        let given_up = inner.give_up(id, due);
        drop(inner);
        self.ring(is_left);
        given_up
    }

    /// Gives up the place of an acquisition that goes on at another one. The claim is that of a removal alone from now on, `as_other`: the acquisition
    /// may begin its next claim before the key of this one has gone, and is told of its [`former`](Self::former) claim until then. `None` if the claim
    /// is not wanted any more; or if a request that makes its key may still arrive, because the mark that forbids that has the name of the acquisition.
    pub(crate) fn depart(
        &self,
        (id, number): (AcquisitionId, u64),
        as_other: AcquisitionId,
        due: Moment,
    ) -> Option<GivenUp> {
        let mut inner = self.inner.lock();
        let claim = inner.claims.get(&id).filter(|claim| claim.number == number && claim.is_wanted())?;
        let has_former = inner.former.contains_key(&id);
        if has_former || claim.unanswered > 0 || claim.place.is_none() || claim.next.is_some() {
            return None;
        }
        let claim = inner.claims.remove(&id)?;
        inner.announced.remove(&id);
        inner.claims.insert(as_other, claim);
        inner.former.insert(id, as_other);
        inner.give_up(as_other, due)
    }

    /// Returns the former claim of an acquisition whose key may still be there. It has the acquisition's id, and goes first: before the acquisition
    /// takes its next place, enters there, or is said to be released.
    pub(crate) fn former(&self, id: AcquisitionId) -> Option<AcquisitionId> {
        self.inner.lock().former.get(&id).copied()
    }

    /// Gives up the claims whose lease has ended because no caller showed that they are still wanted. The cleaner removes them. Returns when the
    /// next lease ends. It looks at every claim, so it is not for every occasion.
    pub(crate) fn give_up_lapsed(&self, now: Moment) -> Option<Moment> {
        let mut inner = self.inner.lock();
        let (mut lapsed, mut next) = (Vec::new(), None::<Moment>);
        for (id, claim) in inner.lapsing() {
            match claim.ends() {
                ends if ends <= now => lapsed.push(*id),
                ends => next = Some(next.map_or(ends, |next| next.min(ends))),
            }
        }
        for id in lapsed {
            inner.remove_behind(id, None);
            inner.begin_removal(id);
        }
        next
    }

    /// Returns claims whose removal is due. The task that asks has the time until `next` to remove them.
    pub(crate) fn due(&self, now: Moment, most: usize, next: Moment) -> Vec<GivenUp> {
        let mut inner = self.inner.lock();
        let due = inner.removals.iter().take_while(|(due, _)| *due <= now);
        let due: Vec<_> = due.map(|(_, id)| *id).take(most).collect();
        due.into_iter().filter_map(|id| inner.give_up(id, next)).collect()
    }

    /// Returns when the next removal is due.
    pub(crate) fn next_due(&self) -> Option<Moment> {
        self.inner.lock().removals.first().map(|(due, _)| *due)
    }

    /// Notes that a removal was not finished, and is due at `due`.
    pub(crate) fn postpone(&self, id: AcquisitionId, number: u64, due: Moment) {
        let mut inner = self.inner.lock();
        let claim = inner.claims.get(&id).filter(|claim| claim.number == number);
        if let Some(removal) = claim.and_then(|claim| claim.removal) {
            inner.schedule(id, Removal { due, ..removal });
        }
        drop(inner);
        self.work.notify_one();
    }

    /// Ends a claim of which nothing is left in the store.
    pub(crate) fn end(&self, id: AcquisitionId, number: u64) {
        let mut inner = self.inner.lock();
        let ends = inner.claims.get(&id).is_some_and(|claim| claim.number == number);
        let is_left = ends && inner.remove(id);
        drop(inner);
        self.ring(is_left);
    }

    /// Ends a claim after the lease has ended under which its key was to be made: nothing is there, and nothing can come. Not one whose place is known: another
    /// request has made its key meanwhile, and it may have gone to a younger lease.
    pub(crate) fn lease_gone(&self, id: AcquisitionId, number: u64) {
        let is_placed = self.with(id, number, |claim| {
            claim.unanswered -= 1;
            claim.place.is_some()
        });
        if is_placed == Some(false) {
            self.end(id, number);
        }
    }

    /// Ends a claim of whose requests nothing came, and for which none was sent whose outcome is unknown.
    pub(crate) fn end_unsent(&self, id: AcquisitionId, number: u64) {
        let unsent = |claim: &mut Claim| claim.is_wanted() && claim.place.is_none() && claim.unanswered == 0;
        if self.with(id, number, unsent) == Some(true) {
            self.end(id, number);
        }
    }

    /// Returns how many claims there are, and how many of them are being removed.
    pub(crate) fn count(&self) -> (usize, usize) {
        let inner = self.inner.lock();
        (inner.claims.len(), inner.removals.len())
    }

    /// Returns how many claims stand behind a grant.
    pub(crate) fn announced(&self) -> usize {
        self.inner.lock().announced.len()
    }

    /// Tells the cleaner that there is something to remove.
    fn ring(&self, is_left: bool) {
        if is_left {
            self.work.notify_one();
        }
    }
}

impl Inner {
    fn begin(&mut self, begin: Begin<'_>, request: &Request) -> Option<u64> {
        if self.claims.contains_key(&request.id) {
            return None;
        }
        self.begun += 1;
        let key = |slot| begin.names.contender(&request.key, request.mode, begin.session.name, slot);
        let stored_at = (0..).map(key).find(|key| !self.taken.contains(key))?;
        self.taken.insert(stored_at.clone());
        let claim = Claim::new(begin, request, self.begun, stored_at);
        begin.session.note_claim();
        self.claims.insert(request.id, claim);
        Some(self.begun)
    }

    /// Returns the claims whose leases end by themselves: not those that end with a grant, and not those that are being removed.
    fn lapsing(&self) -> impl Iterator<Item = (&AcquisitionId, &Claim)> {
        self.claims.iter().filter(|(id, claim)| claim.is_wanted() && !self.announced.contains(id))
    }

    /// Says that a claim is not wanted any more, and is to be removed now. Returns `false` if there is none, or that was said before.
    fn begin_removal(&mut self, id: AcquisitionId) -> bool {
        let begins = self.claims.get(&id).is_some_and(Claim::is_wanted);
        if begins {
            self.schedule(id, Removal { due: Moment::ZERO, attempts: 0 });
        }
        begins
    }

    fn schedule(&mut self, id: AcquisitionId, removal: Removal) {
        let Some(claim) = self.claims.get_mut(&id) else { return };
        let before = claim.removal.replace(removal);
        if let Some(before) = before {
            self.removals.remove(&(before.due, id));
        }
        self.removals.insert((removal.due, id));
    }

    /// Says that the claim that stands behind a grant is not wanted any more: its place is the grant's, unless its caller has come meanwhile. A
    /// claim that stays is on its own from that moment on, and has a whole lease: it was last shown with the grant, whose lease may be longer.
    fn remove_behind(&mut self, grant: AcquisitionId, stays: Option<(AcquisitionId, Moment)>) -> bool {
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

    fn give_up(&mut self, id: AcquisitionId, due: Moment) -> Option<GivenUp> {
        let attempts = self.claims.get(&id)?.removal.map_or(0, |removal| removal.attempts);
        self.schedule(id, Removal { due, attempts: attempts + 1 });
        let claim = self.claims.get(&id)?;
        Some(GivenUp {
            id,
            number: claim.number,
            begun_in: Arc::clone(&claim.begun_in),
            session: Arc::clone(&claim.session),
            stored_at: claim.stored_at.clone(),
            place: claim.place,
            is_in_doubt: claim.unanswered > 0,
            attempts,
        })
    }

    /// Forgets a claim. Returns whether another claim is to be removed with it.
    fn remove(&mut self, id: AcquisitionId) -> bool {
        let is_left = self.remove_behind(id, None);
        self.announced.remove(&id);
        self.former.retain(|_, former| *former != id);
        if let Some(claim) = self.claims.remove(&id) {
            if let Some(removal) = claim.removal {
                self.removals.remove(&(removal.due, id));
            }
            claim.session.forget_claim();
            self.taken.remove(&claim.stored_at);
        }
        is_left
    }
}

impl fmt::Debug for Claims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Claims").field(&self.inner.lock().claims.len()).finish()
    }
}
