//! What this client has in the store under one session, or may have: one claim per acquisition, from before its first request is
//! sent until its node is known to be gone.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use ylock_core::engine::{AcquisitionId, Request};
use ylock_core::environment::Moment;
use ylock_core::{Error, ErrorKind, Fairness, Key, Result, StoreToken};

use crate::driver::{Made, Sent, Session};
use crate::node::{Content, Name, Tag};
use crate::place::Place;
use crate::watch::Watch;

/// The most bytes of paths that one session may have. The server writes all of them into one record when the session ends, and cannot
/// start again if it is longer than about 2 MiB (`jute.maxbuffer`, twice).
const MOST_BYTES: usize = 1 << 20;
/// After so many another session is begun. The rest is for those who join a queue behind one that has its place already.
pub(crate) const ENOUGH_BYTES: usize = MOST_BYTES / 8 * 7;

/// How many busy locks are remembered.
const MOST_BUSY: usize = 1_000;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Claims {
    inner: Mutex<Inner>,
    /// Held while a request for a claim is sent, and while a claim is given up: see [`send`](Self::send).
    order: Mutex<()>,
    /// Rung when the first claim is made, and when the session is given up.
    pub(crate) wake: Notify,
}

#[derive(Default)]
struct Inner {
    claims: HashMap<AcquisitionId, Claim>,
    begun: u64,
    bytes: usize,
    /// Locks whose node may be empty now.
    litter: HashSet<Place>,
    /// Somebody looks after `litter`.
    swept: bool,
    /// Locks whose node was there when it was last heard of. A guess, which saves a request when it is right.
    busy: HashSet<Place>,
}

/// One acquisition.
#[derive(Debug)]
pub(crate) struct Claim {
    /// Which claim it is: the same acquisition may begin another one when it has ended, and what is still to be said of the first
    /// must not be taken for the second.
    pub(crate) number: u64,
    pub(crate) tag: Tag,
    pub(crate) key: Key,
    pub(crate) place: Place,
    pub(crate) content: Content,
    pub(crate) stand: Stand,
    lease: Duration,
    /// When its caller last showed that it runs, or since when the lease of its grant counts.
    pub(crate) shown: Moment,
    /// Nobody else was there at the last look.
    pub(crate) alone: bool,
    /// Who stands behind this grant, of the same client.
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
pub(crate) enum Stand {
    /// A request that makes, renames or moves it was sent, and not answered.
    Unknown,
    /// It is there, as far as is known.
    At(Name),
    /// It is being removed, and nothing else may be done with it.
    Leaving,
}

/// What came of beginning a claim.
pub(crate) enum Begun {
    /// It is new, has this number, and nothing was sent yet.
    New(u64),
    Old(Stand),
}

impl Claims {
    /// Makes a claim for a request, unless there is one. Its stand is `Unknown`.
    pub(crate) fn begin(&self, session: &Session, request: &Request) -> Result<Begun> {
        let now = session.now();
        let mut inner = self.lock();
        if let Some(claim) = inner.claims.get_mut(&request.id) {
            claim.shown = now.max(claim.shown);
            return Ok(Begun::Old(claim.stand));
        }
        inner.begun += 1;
        let number = inner.begun;
        let claim = Claim::new(session, request, number, now);
        let bytes = claim.bytes();
        if inner.bytes + bytes > MOST_BYTES {
            return Err(too_many());
        }
        inner.bytes += bytes;
        inner.claims.insert(request.id, claim);
        drop(inner);
        self.wake.notify_one();
        Ok(Begun::New(number))
    }

    /// Sends a request for a claim whose stand is `Unknown`. `None`, and nothing is sent, if it has been given up meanwhile.
    ///
    /// Whoever gives a claim up asks the server what there is of it, and removes that. What is sent after that question would stay for
    /// ever: so nobody gives it up between the look at the claim and the sending, which happen on another thread than the giving up.
    pub(crate) fn send<F: Future>(&self, id: AcquisitionId, number: u64, request: F) -> Option<Sent<F>> {
        let _order = self.order();
        let is_wanted = self.with(id, |claim| claim.is_unknown(number)) == Some(true);
        is_wanted.then(|| Sent::now(request))
    }

    /// Gives a claim up: nothing is sent for it from now on. Answers what was known of it, and whether it was alone.
    pub(crate) fn give_up(&self, id: AcquisitionId) -> Option<(Stand, bool)> {
        let _order = self.order();
        self.with(id, |claim| (std::mem::replace(&mut claim.stand, Stand::Leaving), claim.alone))
    }

    fn order(&self) -> MutexGuard<'_, ()> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at a claim, or changes it. `None` if there is none.
    pub(crate) fn with<T>(&self, id: AcquisitionId, work: impl FnOnce(&mut Claim) -> T) -> Option<T> {
        self.lock().claims.get_mut(&id).map(work)
    }

    /// The node was made. `false` if the claim has been given up meanwhile, or is being: whoever does that removes the node.
    pub(crate) fn made(&self, number: u64, made: &Made, alone: bool) -> bool {
        let known = self.with(made.name.tag.id, |claim| {
            if claim.number != number || claim.stand == Stand::Leaving {
                return false;
            }
            (claim.stand, claim.tag, claim.alone) = (Stand::At(made.name), made.name.tag, alone);
            claim.content.token = made.token;
            true
        });
        known.unwrap_or(false)
    }

    /// Nothing came of its requests. One that is being removed is left to whoever does that: until then the same acquisition must not
    /// make another node, because all that it has are removed.
    pub(crate) fn end_unknown(&self, id: AcquisitionId, number: u64) {
        let mut inner = self.lock();
        if inner.claims.get(&id).is_some_and(|claim| claim.is_unknown(number)) {
            inner.remove(id);
        }
    }

    /// Nothing is left of it in the store.
    pub(crate) fn end(&self, id: AcquisitionId) {
        self.lock().remove(id);
    }

    pub(crate) fn has(&self, id: AcquisitionId) -> bool {
        self.lock().claims.contains_key(&id)
    }

    /// How long the paths of all are together.
    pub(crate) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().claims.is_empty()
    }

    /// Whether nothing is left to be removed.
    pub(crate) fn is_clean(&self) -> bool {
        let inner = self.lock();
        inner.litter.is_empty() && inner.claims.values().all(|claim| claim.stand != Stand::Leaving)
    }

    /// Those whose lease has ended because nobody showed that they are still wanted.
    pub(crate) fn lapsed(&self, now: Moment) -> Vec<(Key, AcquisitionId)> {
        let inner = self.lock();
        let lapsed =
            inner.claims.iter().filter(|(_, claim)| claim.stand != Stand::Leaving && claim.ends() <= now);
        lapsed.map(|(id, claim)| (claim.key.clone(), *id)).collect()
    }

    /// When the next lease ends.
    pub(crate) fn next_end(&self) -> Option<Moment> {
        let inner = self.lock();
        inner.claims.values().filter(|claim| claim.stand != Stand::Leaving).map(Claim::ends).min()
    }

    /// Whether a lock's node is probably there.
    pub(crate) fn is_busy(&self, place: &Place) -> bool {
        self.lock().busy.contains(place)
    }

    /// Remembers whether a lock's node is there.
    pub(crate) fn note_busy(&self, place: &Place, busy: bool) {
        let mut inner = self.lock();
        if !busy {
            inner.busy.remove(place);
            return;
        }
        if inner.busy.len() >= MOST_BUSY {
            inner.busy.clear();
        }
        inner.busy.insert(place.clone());
    }

    /// Notes that a lock's node may be empty. Answers whether somebody must be started to look after that.
    pub(crate) fn litter(&self, place: &Place) -> bool {
        let mut inner = self.lock();
        inner.litter.insert(place.clone());
        !std::mem::replace(&mut inner.swept, true)
    }

    /// What to look at. Nothing: whoever looks is done.
    pub(crate) fn sweep(&self) -> Vec<Place> {
        let mut inner = self.lock();
        let litter: Vec<_> = inner.litter.drain().collect();
        inner.swept = !litter.is_empty();
        litter
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn remove(&mut self, id: AcquisitionId) {
        if let Some(claim) = self.claims.remove(&id) {
            self.bytes = self.bytes.saturating_sub(claim.bytes());
        }
    }
}

impl Claim {
    fn new(session: &Session, request: &Request, number: u64, now: Moment) -> Self {
        let strict = request.fairness == Fairness::Strict;
        let ticket = request.ticket.filter(|_| strict).map(|ticket| ticket.get());
        let since = session.environment.wall_micros();
        Self {
            number,
            tag: Tag { mode: request.mode, id: request.id, session: session.number, ticket },
            key: request.key.clone(),
            place: Place::of(&session.base, &request.key),
            content: Content { owner: request.owner, since, token: None, revoked: false },
            stand: Stand::Unknown,
            lease: request.lease.min(session.longest_lease()),
            shown: now,
            alone: false,
            next: None,
            own: Watch::default(),
            others: Watch::default(),
            contended: false,
        }
    }

    fn ends(&self) -> Moment {
        self.shown.plus(self.lease)
    }

    /// What it adds to the record of the session's end.
    fn bytes(&self) -> usize {
        const LENGTH_AND_PLACE: usize = 4 + 1 + 10;
        self.place.lock.len() + self.tag.prefix().len() + LENGTH_AND_PLACE
    }

    /// Whether it is this claim, and nobody knows what it has.
    pub(crate) fn is_unknown(&self, number: u64) -> bool {
        self.number == number && self.stand == Stand::Unknown
    }

    /// Its token, once it is known.
    pub(crate) fn token(&self) -> Option<StoreToken> {
        self.content.token
    }
}

impl fmt::Debug for Claims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Claims").field(&self.lock().claims.len()).finish()
    }
}

fn too_many() -> Error {
    let message =
        "this client holds so many locks that the server could not end its session: use several clients";
    Error::new(ErrorKind::Unsupported, message)
}

#[cfg(test)]
mod tests {
    use std::future::{pending, poll_fn};
    use std::task::Poll;

    use ylock_core::{Mode, Owner};

    use super::*;

    fn claimed(id: AcquisitionId) -> Claims {
        let (claims, key) = (Claims::default(), Key::new("group", "name").unwrap());
        let claim = Claim {
            number: 1,
            tag: Tag { mode: Mode::Write, id, session: 1, ticket: None },
            place: Place::of("/ylock", &key),
            key,
            content: Content { owner: Owner::new(), since: 0, token: None, revoked: false },
            stand: Stand::Unknown,
            lease: Duration::from_secs(1),
            shown: Moment::ZERO,
            alone: true,
            next: None,
            own: Watch::default(),
            others: Watch::default(),
            contended: false,
        };
        claims.lock().claims.insert(id, claim);
        claims
    }

    /// See [`Claims::send`]. Were it otherwise a node would be left that nobody knows of, and keep its lock as long as the session lives.
    #[test]
    fn a_claim_is_not_given_up_while_a_request_for_it_is_sent_and_nothing_is_sent_afterwards() {
        let id = AcquisitionId::from_u128(7);
        let claims = claimed(id);
        let mut was_sent = false;
        let request = poll_fn(|_| {
            was_sent = true;
            assert!(claims.order.try_lock().is_err(), "it could be given up now");
            Poll::Ready(())
        });
        assert!(claims.send(id, 1, request).is_some() && was_sent);
        assert!(claims.send(id, 2, pending::<()>()).is_none(), "it is another claim");
        assert_eq!(claims.give_up(id), Some((Stand::Unknown, true)));
        assert!(claims.send(id, 1, pending::<()>()).is_none());
        claims.end(id);
        assert!(claims.send(id, 1, pending::<()>()).is_none() && claims.give_up(id).is_none());
    }
}
