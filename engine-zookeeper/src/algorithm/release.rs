//! The way out: what this client has in the store and does not want any more is removed, until it is known to be gone or the session has
//! ended.
//!
//! A caller that gives something back removes it in its own task, so that this costs no more than the request. If that task is dropped
//! before the end, in whatever line, the [cleaner](super::cleanup) goes on: any task may remove a claim that is not wanted, and doing so
//! twice does no harm.

use std::sync::Arc;

use ylock_core::backoff::Backoff;
use ylock_core::engine::{AcquisitionId, Release, Request};
use ylock_core::{ErrorKind, Key, Result};

use super::claim::Node;
use super::claims::{Begun, GivenUp};
use super::node::Name;
use super::place::Place;
use super::session::Session;
use super::store::{Fault, had_no_effect, to_error};

/// Removes what an acquisition has in the store, or may have. Takes a place in the queue for `next` in the same transaction, if
/// possible. Goes on if this future is dropped.
pub(crate) async fn release(
    session: &Arc<Session>,
    key: &Key,
    id: AcquisitionId,
    mut next: Option<&Request>,
) -> Result<Release> {
    let mut leaver = Leaver { session, id, number: None };
    let (stays, mut attempts) = (next.map(|next| next.id), 0);
    loop {
        let stays = stays.map(|next| (next, session.now()));
        let found = session.claims.give_up(id, stays, session.due());
        leaver.number = found.as_ref().map(|found| found.number);
        attempts = found.as_ref().map_or(attempts, |found| found.attempts);
        let place = found.as_ref().map_or_else(|| Place::of(&session.base, key), |found| found.place.clone());
        let attempt = Attempt { session, place, id, known: found };
        match attempt.run(next.take()).await {
            Ok(was_there) => {
                leaver.number = None;
                // An attempt before this one was not answered, and may be the reason that nothing is there any more.
                let released = was_there || attempts > 0;
                return Ok(if released { Release::Released } else { Release::WasGone });
            }
            Err(error) if session.is_over() => return Err(error),
            // This does not get better by itself: the caller has to be told what is wrong.
            Err(error) if error.kind() == ErrorKind::Config => return Err(error),
            // The next attempt takes no place for `next`: its caller may have gone, and a place that no caller wants would be in the way.
            Err(_) => Backoff::RELEASE.wait(&*session.environment, attempts).await,
        }
        attempts += 1;
    }
}

/// Makes one attempt to remove a claim for which no caller waits.
pub(crate) async fn remove(session: &Arc<Session>, found: GivenUp) {
    let (id, number, attempts) = (found.id, found.number, found.attempts);
    let mut leaver = Leaver { session, id, number: Some(number) };
    let attempt = Attempt { session, place: found.place.clone(), id, known: Some(found) };
    if let Err(error) = attempt.run(None).await {
        tracing::debug!(error = format!("{error:#}"), "a node that is not wanted could not be removed yet");
        let pause = session.environment.jitter(Backoff::RELEASE.pause(attempts));
        session.claims.postpone(id, number, session.now().plus(pause));
    }
    leaver.number = None;
}

/// A task that removes a claim. If it is dropped before the end, the claim is the cleaner's.
struct Leaver<'a> {
    session: &'a Arc<Session>,
    id: AcquisitionId,
    /// `None` if there is no such claim.
    number: Option<u64>,
}

impl Drop for Leaver<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.session.claims.postpone(self.id, number, self.session.now());
        }
    }
}

/// One attempt to remove an acquisition.
struct Attempt<'a> {
    session: &'a Arc<Session>,
    place: Place,
    id: AcquisitionId,
    /// `None` if this session has no claim of the acquisition: an earlier session may have left a node.
    known: Option<GivenUp>,
}

impl Attempt<'_> {
    /// Makes the attempt. Returns whether there was something to remove.
    async fn run(&self, next: Option<&Request>) -> Result<bool> {
        let node = self.known.as_ref().map_or(Node::Unknown, |known| known.node);
        let was_there = match (node, next) {
            (Node::At(name), Some(next)) => self.hand_on(name, next).await?,
            (Node::At(name), None) => self.remove(name).await?,
            (Node::Unknown, _) => self.search_and_remove().await?,
        };
        if let Some(known) = &self.known {
            self.session.claims.end(known.id, known.number);
        }
        Ok(was_there)
    }

    /// Gives the acquisition's place up and takes one at the end for `next`, in one transaction.
    async fn hand_on(&self, name: Name, next: &Request) -> Result<bool> {
        let Begun::New(number) = self.session.claims.begin(self.session.begin(), next)? else {
            // `next` has its place already.
            return self.remove_own(name).await;
        };
        let claim = self.session.claims.with(next.id, |claim| (claim.tag, claim.content.write()));
        let Some((tag, content)) = claim else { return self.remove_own(name).await };
        let request = self.session.replace(&self.place, &name, &tag, &content);
        let Some(sent) = self.session.claims.send(next.id, number, request) else {
            return self.remove_own(name).await;
        };
        match sent.answer().await {
            Ok(made) => {
                self.session.claims.made(number, &made, false);
                Ok(true)
            }
            Err(fault) => {
                if had_no_effect(&fault) {
                    self.session.claims.end_unknown(next.id, number);
                }
                none_if_gone(fault)
            }
        }
    }

    async fn remove(&self, name: Name) -> Result<bool> {
        // Two clients that take turns are alone at each look, and not when they leave.
        let alone = self.known.as_ref().is_some_and(|known| known.alone);
        if !alone || self.session.lock_nodes.is_busy(&self.place) {
            return self.remove_own(name).await;
        }
        match self.session.remove_both(&self.place, &name).await {
            Ok(()) => {
                self.session.lock_nodes.note_busy(&self.place, false);
                Ok(true)
            }
            Err(Fault::NotEmpty) => {
                self.session.lock_nodes.note_busy(&self.place, true);
                self.remove_own(name).await
            }
            Err(fault) => {
                // Another program may have removed the contender alone.
                self.session.emptied(&self.place);
                none_if_gone(fault)
            }
        }
    }

    async fn remove_own(&self, name: Name) -> Result<bool> {
        let removed = self.session.remove(&self.place.child(&name.to_string())).await;
        self.session.emptied(&self.place);
        match removed {
            Ok(()) => Ok(true),
            Err(fault) => none_if_gone(fault),
        }
    }

    /// Asks the server what there is, behind a write, and removes it. What was sent before on this session is found by that question, or never happens: the
    /// leader gives that write its place behind all that it has taken from the session, and after a change of servers refuses what comes over the old
    /// connection.
    async fn search_and_remove(&self) -> Result<bool> {
        let all = self.session.list_after_all(&self.place).await.map_err(to_error)?;
        // Another task may have finished this removal meanwhile, and the acquisition have begun another claim: the listed node may be that
        // claim's then. As long as this claim is there, the acquisition has begun no other.
        let is_over = |known: &GivenUp| !self.session.claims.is_being_removed(known.id, known.number);
        if self.known.as_ref().is_some_and(is_over) {
            return Ok(false);
        }
        // Nodes that other programs put there are no reason to stay.
        let all = all.iter().filter_map(|name| Name::read(name).ok());
        let mine: Vec<_> = all.filter(|name| name.tag.id == self.id).collect();
        let mut was_there = false;
        for name in mine {
            was_there |= self.remove_own(name).await?;
        }
        if !was_there && self.known.is_some() {
            self.session.emptied(&self.place);
        }
        Ok(was_there)
    }
}

fn none_if_gone(fault: Fault) -> Result<bool> {
    match fault {
        Fault::NoNode => Ok(false),
        fault => Err(to_error(fault)),
    }
}
