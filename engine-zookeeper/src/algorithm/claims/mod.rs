//! The claims of one session, to all that this client has in the store or may have: one [claim](crate::algorithm::claim) per acquisition, from before
//! its first request is sent until its node is known to be gone.

mod inner;
mod removal;
#[cfg(test)]
mod tests;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use ylock_core::engine::{AcquisitionId, Request};
use ylock_core::environment::Moment;
use ylock_core::{Result, StoreToken};

use self::inner::Inner;
use crate::algorithm::claim::{Begin, Claim, Node};
use crate::algorithm::in_flight::InFlight;
use crate::algorithm::node::{Content, Name};
use crate::algorithm::place::Place;
use crate::algorithm::requests::NewNode;
use crate::algorithm::watch::Watch;

/// The most bytes of paths that one session may have. The server writes all of them into one record when the session ends, and cannot
/// start again if it is longer than about 2 MiB (`jute.maxbuffer`, twice).
const MOST_BYTES: usize = 1 << 20;
/// The number of bytes after which another session is begun. The rest is for acquisitions that join a queue behind one that has its place
/// already.
pub(crate) const ENOUGH_BYTES: usize = MOST_BYTES / 8 * 7;

/// The claims of one session; see the [module](self).
#[derive(Default)]
pub(crate) struct Claims {
    inner: Mutex<Inner>,
    /// Held while a request for a claim is sent, and while a claim is given up: see [`send`](Self::send).
    order: Mutex<()>,
    /// Rung when a claim is made.
    pub(crate) wake: Arc<Notify>,
    /// Rung when there is something to remove.
    pub(crate) work: Arc<Notify>,
}

/// The outcome of beginning a claim.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    /// The claim is new, has this number, and nothing was sent for it yet.
    New(u64),
    Old(Node),
    /// The claim is being removed.
    BeingRemoved,
}

/// A claim that is to be removed.
#[derive(Debug)]
pub(crate) struct GivenUp {
    pub(crate) id: AcquisitionId,
    pub(crate) number: u64,
    pub(crate) place: Place,
    /// The last known state of its node.
    pub(crate) node: Node,
    pub(crate) alone: bool,
    /// The number of times that its removal was begun before.
    pub(crate) attempts: u32,
}

impl Claims {
    /// Makes a claim for a request, unless there is one.
    pub(crate) fn begin(&self, begin: Begin<'_>, request: &Request) -> Result<Begun> {
        let mut inner = self.inner.lock();
        // Its caller has come: from now on the claim is the caller's, as any other claim.
        inner.announced.remove(&request.id);
        let begun = inner.begin(begin, request)?;
        drop(inner);
        if matches!(begun, Begun::New(_)) {
            self.wake.notify_one();
        }
        Ok(begun)
    }

    /// Makes a claim for a request that stands behind a grant of this client, unless there is one. Returns `None` if the grant is not
    /// wanted any more. In one step with the look at the grant: a task that gives the grant up gives up all that stands behind it.
    pub(crate) fn begin_behind(
        &self,
        begin: Begin<'_>,
        grant: AcquisitionId,
        next: &Request,
    ) -> Result<Option<Begun>> {
        let mut inner = self.inner.lock();
        if !inner.claims.get(&grant).is_some_and(Claim::is_wanted) {
            return Ok(None);
        }
        let begun = inner.begin(begin, next)?;
        if let Some(claim) = inner.claims.get_mut(&grant) {
            claim.next = Some(next.id);
        }
        if matches!(begun, Begun::New(_)) {
            inner.announced.insert(next.id);
        }
        Ok(Some(begun))
    }

    /// Sends a request for a claim. Returns `None`, and sends nothing, if the claim has been given up meanwhile, or another task has found
    /// out what it has.
    ///
    /// A task that gives a claim up asks the server what there is of it, and removes that. What is sent after that question would stay for
    /// ever: so no task gives the claim up between the look at it and the sending, which happen on another thread than the giving up.
    pub(crate) fn send<F: Future>(
        &self,
        id: AcquisitionId,
        number: u64,
        request: F,
    ) -> Option<InFlight<Pin<Box<F>>>> {
        let _order = self.order.lock();
        let is_open = self.with(id, |claim| claim.is_open(number)) == Some(true);
        is_open.then(|| InFlight::send(Box::pin(request)))
    }

    /// Notes that the node of a claim is about to be replaced. Returns the number of the claim, the content for its next node, and the
    /// version of the old one; `None` if the claim does not have that node.
    pub(crate) fn depart(&self, own: Name, change: impl FnOnce(&mut Content)) -> Option<(u64, Vec<u8>, i64)> {
        let departed = self.with(own.tag.id, |claim| {
            if !claim.stands_at(own) {
                return None;
            }
            claim.node = Node::Unknown;
            change(&mut claim.content);
            Some((claim.number, claim.content.write(), claim.version))
        });
        departed.flatten()
    }

    /// Notes that the claim has this node now, at its old place.
    pub(crate) fn replaced(&self, number: u64, name: Name) {
        self.with(name.tag.id, |claim| {
            if claim.is_open(number) {
                claim.settle(name);
            }
            (claim.own, claim.others) = (Watch::default(), Watch::default());
        });
    }

    /// Notes that the claim still has its node: the server refused to replace it.
    pub(crate) fn stays(&self, number: u64, own: Name, version: i64) {
        self.with(own.tag.id, |claim| {
            if claim.is_open(number) {
                (claim.node, claim.version) = (Node::At(own), version);
            }
        });
    }

    /// Notes that the node was made. Returns `false` if the claim has been given up meanwhile: the task that does so removes the node.
    pub(crate) fn made(&self, number: u64, made: &NewNode, alone: bool) -> bool {
        let known = self.with(made.name.tag.id, |claim| {
            if !claim.is_open(number) {
                return false;
            }
            claim.settle(made.name);
            claim.alone = alone;
            claim.content.token = made.token;
            true
        });
        known == Some(true)
    }

    /// Notes that the claim was let in. Returns `false` if it does not have its node any more. In one step with the look at the claim:
    /// other tasks give up a claim whose lease has ended, and must not give up this one from now on.
    pub(crate) fn enter(&self, own: Name, token: StoreToken, sent: Moment, contended: bool) -> bool {
        let entered = self.with(own.tag.id, |claim| {
            if !claim.stands_at(own) {
                return false;
            }
            (claim.shown, claim.contended) = (sent, contended);
            claim.content.token = Some(token);
            true
        });
        entered == Some(true)
    }

    /// Looks at a claim, or changes it. Returns `None` if there is none.
    pub(crate) fn with<T>(&self, id: AcquisitionId, work: impl FnOnce(&mut Claim) -> T) -> Option<T> {
        self.inner.lock().claims.get_mut(&id).map(work)
    }

    pub(crate) fn has(&self, id: AcquisitionId) -> bool {
        self.inner.lock().claims.contains_key(&id)
    }

    /// Returns the length of the paths of all claims together.
    pub(crate) fn bytes(&self) -> usize {
        self.inner.lock().bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.inner.lock().claims.is_empty()
    }

    /// Returns how many claims there are, and how many of them are being removed.
    pub(crate) fn count(&self) -> (usize, usize) {
        let inner = self.inner.lock();
        (inner.claims.len(), inner.claims.values().filter(|claim| !claim.is_wanted()).count())
    }

    /// Returns how many claims stand behind a grant.
    pub(crate) fn announced(&self) -> usize {
        self.inner.lock().announced.len()
    }

    /// Returns when the next lease ends.
    pub(crate) fn next_end(&self) -> Option<Moment> {
        self.inner.lock().lapsing().map(|(_, claim)| claim.ends()).min()
    }
}

impl fmt::Debug for Claims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Claims").field(&self.inner.lock().claims.len()).finish()
    }
}
