//! The way in: a node at the end of the queue, a look, and a watch on the contender before.

use std::sync::Arc;
use std::time::Duration;

use ylock_core::contact::asking;
use ylock_core::engine::{Grant, Patience, Request};
use ylock_core::queue::places::is_free;
use ylock_core::retry_deadline::RetryDeadline;
use ylock_core::{Error, ErrorKind, Result, StoreToken};

use super::claim::Node;
use super::claims::Begun;
use super::connection::Connection;
use super::create::{find, make, names};
use super::judge::{Verdict, judge};
use super::node::Name;
use super::place::Place;
use super::release;
use super::session::Session;
use super::store::{Fault, had_no_effect, to_error};

/// The number of times per lease that a waiter shows that it runs. Otherwise its place is given up.
const SIGNS_PER_LEASE: u32 = 4;
/// The number of such signs after which a waiter looks again by itself: a watch that got lost costs no more than that.
const SIGNS_PER_LOOK: u32 = 8;
/// The part of the session's timeout after which a waiter sends a heartbeat if no other task has: its session has a heartbeat of its own,
/// which may be in a runtime that is not driven any more.
const QUIET_PART: u32 = 4;
/// The part of the session's timeout for which a contender that could enter pauses if the session may be about to end, until it asks again
/// whether it is not.
const UNHEARD_PART: u32 = 24;
/// The pause before a contender asks again about a claim that is changing at the moment.
const SHORT_PAUSE: Duration = Duration::from_millis(20);

/// The time for which a contender stays away from a lock whose counter has run out. When all contenders are away the counter begins anew.
const WORN_OUT_PAUSE: Duration = Duration::from_secs(1);

/// One acquisition on its way in.
pub(crate) struct Acquire<'a> {
    connection: &'a Connection,
    request: &'a Request,
    retry_deadline: RetryDeadline<'a>,
    /// True once the contender has looked before it makes a node, as one does that only tries.
    looked: bool,
    /// True once another contender was before this one.
    waited: bool,
}

/// The outcome of a step on the way.
enum Step {
    Granted(Grant),
    Busy,
    /// The contender looks again, after a pause if there is one.
    Again(Duration),
}

const AT_ONCE: Step = Step::Again(Duration::ZERO);

impl<'a> Acquire<'a> {
    pub(crate) fn new(connection: &'a Connection, request: &'a Request) -> Self {
        let retry_deadline =
            RetryDeadline::of(connection.environment(), request, connection.request_timeout());
        Self { connection, request, retry_deadline, looked: false, waited: false }
    }

    pub(crate) async fn run(mut self) -> Result<Option<Grant>> {
        loop {
            let step = match self.session().await {
                Ok(session) => {
                    let step = self.step(&session).await;
                    // A heartbeat is an answer as well: a waiter may send nothing else for long.
                    let answered = if step.is_ok() { session.now() } else { session.confirmed() };
                    self.retry_deadline.answered_at(answered);
                    step.map(|step| (session, step))
                }
                Err(error) => Err(error),
            };
            match step {
                Ok((_, Step::Granted(grant))) => return Ok(Some(grant.after_waiting(self.waited))),
                Ok((_, Step::Busy)) => return Ok(None),
                Ok((session, Step::Again(pause))) if !pause.is_zero() => {
                    session.environment.sleep(pause).await
                }
                Ok((_, Step::Again(_))) => {}
                Err(error) => self.retry_deadline.retry_or_fail(error).await?,
            }
        }
    }

    /// Returns the session of this client, if there is one before the servers have been silent for a lease.
    async fn session(&mut self) -> Result<Arc<Session>> {
        let failure = |session: &Result<_>| session.as_ref().err().cloned();
        tokio::select! {
            biased;
            session = asking(self.connection.environment(), self.connection.session(), failure) => session,
            () = self.retry_deadline.outlast() => {
                Err(Error::new(ErrorKind::Unavailable, "no server grants a session").with_engine(crate::NAME))
            }
        }
    }

    async fn step(&mut self, session: &Arc<Session>) -> Result<Step> {
        let (key, id) = (&self.request.key, self.request.id);
        let place = Place::of(&session.base, key);
        // One that goes on with a call which was dropped with its runtime may have a node, which is to go if it does not get in.
        if self.request.patience == Patience::Try && !self.looked && !session.claims.has(id) {
            // Without a node at first: a contender that only tries and does not get in must not be in the way of others.
            let all = names(&session.list_now(&place).await.map_err(to_error)?)?;
            if !is_free(&all, self.request.mode) {
                return Ok(Step::Busy);
            }
            self.looked = true;
        }
        match session.claims.begin(session.begin(), self.request)? {
            Begun::New(number) => self.enter_queue(session, &place, number).await,
            Begun::Old(Node::At(name)) => self.look(session, &place, name, None).await,
            Begun::Old(Node::Unknown) => {
                find(session, &place, id).await?;
                Ok(AT_ONCE)
            }
            // The contender was not seen to run for a lease. When its old place is gone it takes another one.
            Begun::BeingRemoved => {
                release::release(session, &self.request.key, id, None).await?;
                Ok(AT_ONCE)
            }
        }
    }

    /// Makes the contender's node, and enters or looks.
    async fn enter_queue(&mut self, session: &Arc<Session>, place: &Place, number: u64) -> Result<Step> {
        let id = self.request.id;
        let made = match make(session, place, id, number).await {
            Ok(made) => made,
            Err(fault) => {
                if had_no_effect(&fault) {
                    session.claims.end_unknown(id, number);
                }
                return Err(to_error(fault));
            }
        };
        let Some((made, alone)) = made else { return Ok(AT_ONCE) };
        if !session.claims.made(number, &made, alone) {
            return Ok(Step::Again(SHORT_PAUSE));
        }
        match made.token {
            Some(token) if alone => self.granted(session, made.name, token, false).await,
            token => self.look(session, place, made.name, token).await,
        }
    }

    async fn look(
        &mut self,
        session: &Arc<Session>,
        place: &Place,
        own: Name,
        token: Option<StoreToken>,
    ) -> Result<Step> {
        let (path, just_made) = (place.child(&own.to_string()), token.is_some());
        let (all, token) = match token.or_else(|| self.known_token(session)) {
            Some(token) => (session.list(place).await, Ok(Some(token))),
            // The token is asked for once, together with the first look.
            None => tokio::join!(session.list(place), session.token(&path)),
        };
        let all = names(&all.map_err(to_error)?)?;
        let token = token.map_err(to_error)?;
        if all.len() == 1 && just_made {
            // The lock is not busy any more: no other contender was there when this one came.
            session.lock_nodes.note_busy(place, false);
        }
        session.claims.with(own.tag.id, |claim| {
            claim.alone = all.len() == 1;
            claim.content.token = token.or(claim.content.token);
        });
        self.decide(session, place, own, judge(&all, &own), token).await
    }

    async fn decide(
        &mut self,
        session: &Arc<Session>,
        place: &Place,
        own: Name,
        verdict: Verdict,
        token: Option<StoreToken>,
    ) -> Result<Step> {
        match (verdict, token) {
            (Verdict::Enters { contended }, Some(token)) => {
                self.granted(session, own, token, contended).await
            }
            (Verdict::Enters { .. } | Verdict::Gone, _) => self.vanished(session, own).await,
            (Verdict::SequenceExhausted, _) => {
                release::release(session, &self.request.key, own.tag.id, None).await?;
                Ok(Step::Again(session.environment.jitter(WORN_OUT_PAUSE)))
            }
            _ if self.request.patience == Patience::Try => {
                release::release(session, &self.request.key, own.tag.id, None).await?;
                Ok(Step::Busy)
            }
            (Verdict::GivesWay, _) => self.give_way(session, place, own).await,
            (Verdict::Waits { before, last }, token) => {
                self.waited = true;
                match (self.wait(session, place, &before).await?, token) {
                    // Contenders that came meanwhile were not looked at: it is better to take too many for waiting than too few.
                    (true, Some(token)) if last => self.granted(session, own, token, true).await,
                    _ => Ok(AT_ONCE),
                }
            }
        }
    }

    fn known_token(&self, session: &Session) -> Option<StoreToken> {
        session.claims.with(self.request.id, |claim| claim.token()).flatten()
    }

    /// Lets the contender in, because its look showed that it may enter. Its lease counts from where the session's leases do.
    async fn granted(
        &self,
        session: &Arc<Session>,
        own: Name,
        token: StoreToken,
        contended: bool,
    ) -> Result<Step> {
        let lease = self.request.lease.min(session.longest_lease());
        // This process was not running, or the servers were away: the session may have ended, or be about to.
        if !session.covers(lease) {
            session.beat().await.map_err(to_error)?;
            let pause = if session.covers(lease) { Duration::ZERO } else { session.timeout() / UNHEARD_PART };
            return Ok(Step::Again(pause));
        }
        let sent = session.counts(lease);
        if !session.claims.enter(own, token, sent, contended) {
            return Ok(Step::Again(SHORT_PAUSE));
        }
        Ok(Step::Granted(Grant::of(self.request, Some(token), sent, contended).with_lease(lease)))
    }

    /// Waits until the contender before is gone, and shows meanwhile that this one runs. Returns whether it saw that node being removed.
    async fn wait(&self, session: &Arc<Session>, place: &Place, before: &Name) -> Result<bool> {
        let mut told = match session.read_and_watch(&place.child(&before.to_string())).await {
            Ok((_, told)) => told,
            Err(Fault::NoNode) => return Ok(false),
            Err(fault) => return Err(to_error(fault)),
        };
        let mut left = false;
        let lease = self.request.lease.min(session.longest_lease());
        for _ in 0..SIGNS_PER_LOOK {
            tokio::select! {
                biased;
                seen = &mut told => {
                    left = seen;
                    break;
                }
                () = session.environment.sleep(lease / SIGNS_PER_LEASE) => {}
            }
            let now = session.now();
            let known = session.claims.with(self.request.id, |claim| claim.shown = now.max(claim.shown));
            if known.is_none() || session.is_over() || is_quiet(session) {
                break;
            }
        }
        if is_quiet(session) {
            session.beat().await.map_err(to_error)?;
        }
        Ok(left)
    }

    /// Goes to the end of the queue: a contender that came earlier is behind.
    async fn give_way(&self, session: &Arc<Session>, place: &Place, own: Name) -> Result<Step> {
        let departed = session.claims.depart(own, |content| content.token = None);
        let Some((number, content, _)) = departed else { return Ok(Step::Again(SHORT_PAUSE)) };
        let request = session.replace(place, &own, &own.tag, &content);
        let Some(sent) = session.claims.send(own.tag.id, number, request) else {
            return Ok(Step::Again(SHORT_PAUSE));
        };
        match sent.answer().await {
            Ok(made) => {
                session.claims.made(number, &made, false);
                Ok(AT_ONCE)
            }
            Err(Fault::NoNode) => self.vanished(session, own).await,
            Err(fault) => Err(to_error(fault)),
        }
    }

    /// Makes a contender queue again whose node was removed from outside, or because it was not seen to run.
    async fn vanished(&self, session: &Arc<Session>, own: Name) -> Result<Step> {
        release::release(session, &self.request.key, own.tag.id, None).await?;
        Ok(Step::Again(SHORT_PAUSE))
    }
}

/// Returns whether nothing was written for so long that a waiter does it.
fn is_quiet(session: &Session) -> bool {
    session.now().since(session.confirmed()) >= session.timeout() / QUIET_PART
}
