//! The way out, to its end: what this client has in the store and does not want any more is removed in the background, until it is known
//! to be gone or the session has ended, whoever still waits for it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use ylock_core::engine::{AcquisitionId, Release, Request};
use ylock_core::{Error, ErrorKind, Key, Result};

use crate::claims::{Begun, Stand};
use crate::driver::{Fault, Session, had_no_effect, to_error};
use crate::node::Name;
use crate::place::Place;
use crate::sweeping::sweep_later;

/// The first pause before a removal is tried again; doubled from then on.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Removes what an acquisition has in the store, or may have. Goes on if this future is dropped.
pub(crate) async fn leave(session: &Arc<Session>, key: &Key, id: AcquisitionId) -> Result<Release> {
    release(session, key, id, None).await
}

/// The same, and takes a place in the queue for `next` in the same transaction, if possible.
pub(crate) async fn release(
    session: &Arc<Session>,
    key: &Key,
    id: AcquisitionId,
    next: Option<&Request>,
) -> Result<Release> {
    loop {
        match session.claims.give_up(id) {
            // Somebody removes it already.
            Some((Stand::Leaving, _)) if session.is_over() => return Err(gone()),
            Some((Stand::Leaving, _)) => session.environment.sleep(FIRST_PAUSE).await,
            found => {
                let place = Place::of(&session.base, key);
                let stand = found.map(|(stand, _)| stand);
                let alone = found.is_some_and(|(_, alone)| alone);
                let next = next.cloned();
                let removal =
                    Removal { session: Arc::clone(session), place, id, stand, alone, next, unsure: false };
                return removal.in_background().await;
            }
        }
    }
}

/// One acquisition on its way out.
struct Removal {
    session: Arc<Session>,
    place: Place,
    id: AcquisitionId,
    /// Nothing if this session has no claim of it: an earlier one may have left a node.
    stand: Option<Stand>,
    alone: bool,
    next: Option<Request>,
    /// A request was not answered, and may be why nothing is there any more.
    unsure: bool,
}

impl Removal {
    async fn in_background(self) -> Result<Release> {
        let (done, answer) = oneshot::channel();
        let environment = Arc::clone(&self.session.environment);
        environment.spawn(Box::pin(async move { drop(done.send(self.run().await)) }));
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    async fn run(mut self) -> Result<Release> {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.once().await {
                Ok(was_there) => {
                    self.session.claims.end(self.id);
                    let released = was_there || self.unsure;
                    return Ok(if released { Release::Released } else { Release::WasGone });
                }
                Err(error) if self.session.is_over() => return Err(error),
                // It will not get better by itself: it is for the caller to tell what is wrong, and to try again.
                Err(error) if error.kind() == ErrorKind::Config => {
                    self.session.claims.with(self.id, |claim| claim.stand = Stand::Unknown);
                    return Err(error);
                }
                Err(_) => {
                    self.unsure = true;
                    // Its caller may have gone: a place for somebody who does not come would be in the way.
                    self.next = None;
                    self.session.environment.sleep(self.session.environment.jitter(pause)).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    /// Answers whether there was something to remove.
    async fn once(&mut self) -> Result<bool> {
        let known = match self.stand {
            Some(Stand::At(name)) if !self.unsure => Some(name),
            _ => None,
        };
        match (known, self.next.take()) {
            (Some(name), Some(next)) => self.hand_on(name, &next).await,
            (Some(name), None) => self.remove(name).await,
            (None, _) => self.search_and_remove().await,
        }
    }

    /// Gives its place up and takes one at the end for `next`, in one transaction.
    async fn hand_on(&self, name: Name, next: &Request) -> Result<bool> {
        let Begun::New(number) = self.session.claims.begin(&self.session, next)? else {
            // It stands there already.
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
        // Two who take turns are alone at each look, and not when they leave.
        if !self.alone || self.session.claims.is_busy(&self.place) {
            return self.remove_own(name).await;
        }
        match self.session.remove_both(&self.place, &name).await {
            Ok(()) => {
                self.session.claims.note_busy(&self.place, false);
                Ok(true)
            }
            Err(Fault::NotEmpty) => {
                self.session.claims.note_busy(&self.place, true);
                self.remove_own(name).await
            }
            Err(fault) => none_if_gone(fault),
        }
    }

    async fn remove_own(&self, name: Name) -> Result<bool> {
        let removed = self.session.remove(&self.place.child(&name.to_string())).await;
        sweep_later(&self.session, &self.place);
        match removed {
            Ok(()) => Ok(true),
            Err(fault) => none_if_gone(fault),
        }
    }

    /// Asks the server what there is. What was sent before on this session is found by that, or never happens: the server handles the
    /// requests of a session in their order, and after a change of servers those of the old connection are refused.
    async fn search_and_remove(&self) -> Result<bool> {
        let all = self.session.list_now(&self.place).await.map_err(to_error)?;
        // What others put there is no reason to stay.
        let all = all.iter().filter_map(|name| Name::read(name).ok());
        let mine: Vec<_> = all.filter(|name| name.tag.id == self.id).collect();
        let mut was_there = false;
        for name in mine {
            was_there |= self.remove_own(name).await?;
        }
        if !was_there && self.stand.is_some() {
            sweep_later(&self.session, &self.place);
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

fn gone() -> Error {
    Error::new(ErrorKind::Unavailable, "the session has ended, and what it had ends with it")
}
