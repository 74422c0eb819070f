//! The way in: a key at the end of the queue, and a watch on the second before it, then on the first.

use std::sync::Arc;
use std::time::Duration;

use ylock_core::engine::{Grant, Patience, Request};
use ylock_core::queue::places::is_free;
use ylock_core::retry_deadline::RetryDeadline;
use ylock_core::{Error, ErrorKind, Mode, Result, StoreToken};

use super::claims::{Begun, Known, Sending};
use super::client::Client;
use super::contender::{Contender, Content};
use super::judge::{Verdict, judge};
use super::look::{self, Looked, Own};
use super::session::{Session, YOUNG_PART};
use super::store::{
    Condition, Fault, Keys, Look, Outcome, Put, Step as Does, Transaction, Watching, to_error,
};
use super::{moves, release};

/// A waiter looks again by itself after it has put its key under a younger lease so many times: a watch that got lost costs no more than that.
const SIGNS_PER_LOOK: u32 = 8;
/// The part of its lease that the etcd lease may be old when a contender enters: the renewal that follows has the rest.
const OLDEST_PART: u32 = 2;
/// The pause before a contender asks again about a claim that is changing at the moment.
const SHORT_PAUSE: Duration = Duration::from_millis(20);

/// One acquisition on its way in.
pub(crate) struct Acquire<'a> {
    client: &'a Arc<Client>,
    request: &'a Request,
    retry_deadline: RetryDeadline<'a>,
    /// True once another contender was before this one.
    waited: bool,
    /// True for a contender that only tries and has seen that the lock is free, although a writer came before that is a reader now.
    has_looked: bool,
    /// True if the last request for its place was refused, or its outcome is unknown.
    has_no_place: bool,
}

/// The outcome of a step on the way.
enum Step {
    Granted(Grant),
    Busy,
    /// The contender looks again, after a pause if there is one.
    Again(Duration),
}

/// A contender that stands at its place.
struct Standing {
    session: Arc<Session>,
    number: u64,
    own: Own,
}

/// The outcome of a wait for another contender.
enum Waited {
    /// It was seen how that one's key was deleted.
    SawItGo,
    /// It has changed, or a while has passed.
    LookAgain,
    /// The watch has ended without telling anything.
    Broken,
}

const AT_ONCE: Step = Step::Again(Duration::ZERO);

impl<'a> Acquire<'a> {
    pub(crate) fn new(client: &'a Arc<Client>, request: &'a Request) -> Self {
        let retry_deadline = RetryDeadline::of(&*client.environment, request, client.request_timeout);
        Self { client, request, retry_deadline, waited: false, has_looked: false, has_no_place: false }
    }

    pub(crate) async fn run(mut self) -> Result<Option<Grant>> {
        loop {
            let step = self.step().await;
            // A lease that was made is an answer as well: a waiter may send nothing else for long. Not to one that does not get a place, for want of space.
            if step.is_ok() {
                self.retry_deadline.answered();
            } else if let Some(made) =
                self.client.last_made(self.request.lease).filter(|_| !self.has_no_place)
            {
                self.retry_deadline.answered_at(made);
            }
            match step {
                Ok(Step::Granted(grant)) => return Ok(Some(grant.after_waiting(self.waited))),
                Ok(Step::Busy) => return Ok(None),
                Ok(Step::Again(pause)) if pause.is_zero() => {}
                Ok(Step::Again(pause)) => self.client.environment.sleep(pause).await,
                Err(error) => self.retry_deadline.retry_or_fail(error).await?,
            }
        }
    }

    async fn step(&mut self) -> Result<Step> {
        let (client, request) = (self.client, self.request);
        release::remove_former(client, request.id).await?;
        match client.claims.known(request.id, client.environment.now()) {
            Known::Nothing => {
                let session = client.session_for(request.lease, request.lease / YOUNG_PART).await?;
                match client.claims.begin(client.begin(&session), request) {
                    Some(number) => self.join(Begun { session, number }).await,
                    None => Ok(AT_ONCE),
                }
            }
            Known::Unknown(begun) if begun.session.is_over() => {
                // If it was made, it is gone with the lease: the contender queues again, at the end.
                client.claims.end(request.id, begun.number);
                Ok(AT_ONCE)
            }
            Known::Unknown(begun) => self.join(begun).await,
            // The client is led to another cluster, or its key may have gone with the lease.
            Known::At(begun) if begun.session.is_over() => self.again_at_the_end().await,
            Known::At(begun) => match self.standing(begun) {
                Some(standing) => self.look(&standing).await,
                None => Ok(Step::Again(SHORT_PAUSE)),
            },
            // The contender was not seen to run for a lease. When its old place is gone it takes another one.
            Known::BeingRemoved => self.again_at_the_end().await,
        }
    }

    fn standing(&self, begun: Begun) -> Option<Standing> {
        let Begun { session, number } = begun;
        let contender = |claim: &mut super::claim::Claim| claim.contender(self.request.id);
        let contender = self.client.claims.with(self.request.id, number, contender)??;
        Some(Standing { session, number, own: Own { key: self.request.key.clone(), contender } })
    }

    /// Puts the contender's key, or finds it, and enters or looks.
    async fn join(&mut self, begun: Begun) -> Result<Step> {
        let (client, id) = (self.client, self.request.id);
        let Some(sending) = client.claims.send(id, begun.number) else { return Ok(Step::Again(SHORT_PAUSE)) };
        let transaction = self.joining(&begun, &sending);
        let outcome = begun.session.transact(client, "acquire", transaction).await;
        self.has_no_place = outcome.is_err();
        match outcome {
            Ok(outcome) if outcome.held => {
                let place = outcome.header.revision;
                if !client.claims.answered(id, begun.number, Some(place)) {
                    return Ok(Step::Again(SHORT_PAUSE));
                }
                self.joined(begun, outcome).await
            }
            Ok(outcome) => self.not_joined(begun, outcome).await,
            Err(Fault::LeaseGone) => {
                client.claims.lease_gone(id, begun.number);
                Ok(AT_ONCE)
            }
            Err(Fault::Refused(error)) => {
                client.claims.answered(id, begun.number, None);
                client.claims.end_unsent(id, begun.number);
                Err(error)
            }
            Err(Fault::Unknown(error)) => Err(error),
        }
    }

    fn joining(&self, begun: &Begun, sending: &Sending) -> Transaction {
        let (client, request) = (self.client, self.request);
        let is_strict = sending_ticket(request);
        let newest = look::newest(client, &request.key, request.mode, is_strict);
        let mark = Keys::one(client.names.mark(request.id, begun.number));
        // The own key also where a try asks for a lock that is free: that of a reader is none of its rivals. Were it there already, by an earlier
        // request, its place would not be the revision of this one.
        let mut when =
            vec![Condition::MadeAt(mark, 0), Condition::MadeAt(Keys::one(sending.stored_at.clone()), 0)];
        if self.request.patience == Patience::Try && !self.has_looked {
            when.push(Condition::MadeAt(newest.keys.clone(), 0));
        }
        let put = Put {
            key: sending.stored_at.clone(),
            value: sending.value.clone(),
            lease: Some(begun.session.lease),
        };
        Transaction {
            when,
            then: vec![Does::Put(put), Does::Look(newest.clone())],
            otherwise: vec![Does::Look(Look::at(Keys::one(sending.stored_at.clone()))), Does::Look(newest)],
        }
    }

    async fn joined(&mut self, begun: Begun, mut outcome: Outcome) -> Result<Step> {
        let Some(standing) = self.standing(begun) else { return Ok(Step::Again(SHORT_PAUSE)) };
        match look::at_once(&mut outcome, 1, &standing.own.contender)? {
            Some(looked) => self.judge(&standing, looked).await,
            None => self.look(&standing).await,
        }
    }

    /// The key was not put: it is there already, by an earlier request; or there is the mark that forbids it; or a try has found that others are there.
    async fn not_joined(&mut self, begun: Begun, mut outcome: Outcome) -> Result<Step> {
        let (client, id) = (self.client, self.request.id);
        let place = Content::place_of(&outcome.seen(0).entries, id, begun.number)?;
        if !client.claims.answered(id, begun.number, place) {
            return Ok(Step::Again(SHORT_PAUSE));
        }
        if place.is_some() {
            let Some(standing) = self.standing(begun) else { return Ok(Step::Again(SHORT_PAUSE)) };
            return self.look(&standing).await;
        }
        if self.request.patience == Patience::Queue {
            return self.again_at_the_end().await;
        }
        let seen = outcome.seen(1);
        if !seen.more && self.request.mode == Mode::Read && is_free(&look::contenders(&seen)?, Mode::Read) {
            self.has_looked = true;
            return Ok(AT_ONCE);
        }
        self.leave().await
    }

    async fn look(&mut self, standing: &Standing) -> Result<Step> {
        let looked = look::look(self.client, &standing.session, &standing.own).await?;
        self.judge(standing, looked).await
    }

    async fn judge(&mut self, standing: &Standing, looked: Looked) -> Result<Step> {
        match looked.queue {
            Some(queue) => self.decide(standing, judge(&queue, &standing.own.contender)).await,
            None => self.again_at_the_end().await,
        }
    }

    async fn decide(&mut self, standing: &Standing, verdict: Verdict) -> Result<Step> {
        match verdict {
            Verdict::Enters { contended } => self.enter(standing, contended).await,
            _ if self.request.patience == Patience::Try => self.leave().await,
            Verdict::GivesWay => self.give_way(standing).await,
            Verdict::Waits { before, .. } => {
                self.waited = true;
                self.wait(standing, before).await
            }
        }
    }

    /// Lets the contender in, because its look showed that it may enter. Its lease counts from where that of its session does.
    async fn enter(&mut self, standing: &Standing, contended: bool) -> Result<Step> {
        let (client, number, lease) = (self.client, standing.number, self.request.lease);
        let own = &standing.own.contender;
        let session = client.claims.with(own.id, number, |claim| Arc::clone(&claim.session));
        let Some(session) = session else { return Ok(Step::Again(SHORT_PAUSE)) };
        let now = client.environment.now();
        if session.is_over() || now.since(session.made()) > lease / OLDEST_PART {
            // This process was not running, or the servers were away: the lease may have ended, and the key with it.
            return match moves::refresh(client, own.id, number, lease).await? {
                Some(_) => Ok(AT_ONCE),
                None => self.again_at_the_end().await,
            };
        }
        let token: StoreToken = session.token(own.place).ok_or_else(out_of_tokens)?;
        if !client.claims.enter(own.id, number, session.made(), contended) {
            return Ok(Step::Again(SHORT_PAUSE));
        }
        Ok(Step::Granted(Grant::of(self.request, Some(token), session.made(), contended)))
    }

    /// Waits until the contender's turn has come: for the second before it, and then for the first.
    async fn wait(&mut self, standing: &Standing, mut before: Contender) -> Result<Step> {
        let own = &standing.own.contender;
        loop {
            let changes = own.mode == Mode::Read;
            let (watching, looked) = tokio::join!(
                self.client.watch(before.key.clone(), changes),
                look::look(self.client, &standing.session, &standing.own)
            );
            let watching = watching.map_err(to_error)?;
            let mut looked = looked?;
            if looked.header.revision < watching.since {
                // What has happened between the look and the watch is in neither.
                looked = look::look(self.client, &standing.session, &standing.own).await?;
            }
            self.retry_deadline.answered();
            let Some(queue) = looked.queue else { return self.again_at_the_end().await };
            let (next, last) = match judge(&queue, own) {
                Verdict::Waits { before: seen, next, last } if seen == before => (next, last),
                Verdict::Waits { before: seen, .. } => {
                    before = seen;
                    continue;
                }
                other => return self.decide_after_waiting(standing, other).await,
            };
            match (self.watch(standing, watching, &before).await?, next) {
                // Contenders that came meanwhile were not looked at: it is better to take too many for waiting than too few.
                (Waited::SawItGo, _) if last => return self.enter(standing, true).await,
                // As a rule that one is the only one left: the next look, beside the next watch, says whether it is.
                (Waited::SawItGo, Some(next)) => before = next,
                (Waited::SawItGo | Waited::LookAgain, _) => return Ok(AT_ONCE),
                (Waited::Broken, _) => return Ok(Step::Again(SHORT_PAUSE)),
            }
        }
    }

    /// As [`decide`](Self::decide), for what is no wait.
    async fn decide_after_waiting(&mut self, standing: &Standing, verdict: Verdict) -> Result<Step> {
        match verdict {
            Verdict::Enters { contended } => self.enter(standing, contended).await,
            _ => self.give_way(standing).await,
        }
    }

    /// Waits until the watch tells of something, and shows meanwhile that this contender runs.
    async fn watch(&self, standing: &Standing, mut watching: Watching, before: &Contender) -> Result<Waited> {
        for _ in 0..SIGNS_PER_LOOK {
            tokio::select! {
                biased;
                told = &mut watching.told => {
                    return Ok(match told {
                        // A client uses its keys again. The member that tells may be behind the look, and tell of an earlier deletion.
                        Ok(event) if event.is_deletion && event.revision > before.place => Waited::SawItGo,
                        Ok(_) => Waited::LookAgain,
                        Err(_) => Waited::Broken,
                    });
                }
                stays = self.shows_itself(standing) => {
                    if !stays? {
                        return Ok(Waited::LookAgain);
                    }
                }
            }
        }
        Ok(Waited::LookAgain)
    }

    /// Shows after a while that this contender runs, and puts its key under a young lease. Returns `false` if its key has gone, or is not wanted any more.
    /// It is due from when the lease was made under which the key is: what a waiting reader watches changes more often than that, and begins this anew.
    async fn shows_itself(&self, standing: &Standing) -> Result<bool> {
        let (client, id, lease) = (self.client, self.request.id, self.request.lease);
        let made = client.claims.with(id, standing.number, |claim| claim.session.made());
        let Some(made) = made else { return Ok(false) };
        let due = made.plus(lease / YOUNG_PART);
        client.environment.sleep(due.since(client.environment.now())).await;
        let now = client.environment.now();
        client.claims.with(id, standing.number, |claim| claim.shown = now.max(claim.shown));
        Ok(moves::refresh(client, id, standing.number, lease).await?.is_some())
    }

    /// Leaves the queue, to join it again at the end: a contender that came earlier is behind. It has not entered, so no other contender is let in
    /// beside it whenever its key goes.
    async fn give_way(&self, standing: &Standing) -> Result<Step> {
        release::give_way(self.client, self.request, standing.number).await?;
        Ok(AT_ONCE)
    }

    /// Makes a contender queue again whose key was removed from outside, or because it was not seen to run.
    async fn again_at_the_end(&self) -> Result<Step> {
        release::release(self.client, self.request.id, None).await?;
        Ok(Step::Again(SHORT_PAUSE))
    }

    /// Ends an attempt that only tries.
    async fn leave(&self) -> Result<Step> {
        release::release(self.client, self.request.id, None).await?;
        Ok(Step::Busy)
    }
}

fn sending_ticket(request: &Request) -> bool {
    request.fairness == ylock_core::Fairness::Strict && request.ticket.is_some()
}

fn out_of_tokens() -> Error {
    let message =
        "the tokens are at their end: stop all clients, and delete the key floor below the prefix of the URL";
    Error::new(ErrorKind::Config, message).with_engine(crate::NAME)
}
