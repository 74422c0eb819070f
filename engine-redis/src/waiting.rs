//! The way in: asking, being told, and asking again.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ylock_core::engine::{AcquisitionId, Grant, Patience, Request, valid_until};
use ylock_core::environment::Moment;
use ylock_core::silence::Silence;
use ylock_core::{Error, ErrorKind, Fairness, Mode, Result, StoreToken};

use crate::driver::{Answer, Call, Place, Told, scripts};
use crate::engine::Client;
use crate::options::Waiting;

/// A waiter asks at least so often, and at least so often per lease. It keeps its place by that, and finds out what no message told.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
const QUESTIONS_PER_LEASE: u32 = 6;

/// What the server said to a question.
enum Said {
    Granted(Told),
    Queued {
        ticket: i64,
        /// When the first lease of those inside may end.
        lease_ends_in: Duration,
        /// The last token that anybody was given before this answer.
        last_token: u64,
    },
    Busy,
    /// It was released meanwhile.
    Undone,
}

/// One acquisition on its way in.
pub(crate) struct Way<'a> {
    client: &'a Client,
    request: &'a Request,
    /// Nothing for somebody who polls.
    place: Option<Place>,
    ticket: Option<i64>,
    /// No grant of it is older than this: just before the last question was sent that found it waiting, or the first of all.
    since: Option<Moment>,
    /// The last token when it was last found waiting. A message about a grant with none above it is of an earlier grant, which
    /// was over by then: it was long on its way, and nothing may be built on it.
    last_token: u64,
    /// It was found waiting at least once.
    waited: bool,
    silence: Silence<'a>,
    /// A question got no answer: it may still be on its way, whatever others were answered since.
    doubtful: bool,
    pause: Duration,
}

impl<'a> Way<'a> {
    pub(crate) fn new(client: &'a Client, request: &'a Request) -> Self {
        let (place, pause) = match client.waiting {
            Waiting::Told => (Some(client.place(request.id)), longest_pause(request)),
            Waiting::Poll { first, .. } => (None, first),
        };
        let ticket = request.ticket.map(|ticket| ticket.get());
        let silence = Silence::new(&*client.environment, request.lease);
        let (since, last_token, waited, doubtful) = (None, 0, false, false);
        Self { client, request, place, ticket, since, last_token, waited, silence, doubtful, pause }
    }

    pub(crate) async fn go(mut self) -> Result<Option<Grant>> {
        loop {
            let sent = self.client.now();
            let since = *self.since.get_or_insert(sent);
            let told = match self.ask().await {
                Ok(Said::Granted(told)) => Some((told, since)),
                Ok(Said::Busy) => return Ok(None),
                Ok(Said::Undone) => return Err(undone()),
                Ok(Said::Queued { ticket, lease_ends_in, last_token }) => {
                    (self.ticket, self.since) = (Some(ticket), Some(sent));
                    (self.last_token, self.waited) = (last_token, true);
                    self.silence.end();
                    if self.place.is_some() && self.client.listen(&self.request.key).await {
                        // Its turn may have come before it could hear of it.
                        continue;
                    }
                    self.wait(lease_ends_in).await.map(|told| (told, sent))
                }
                Err(error) => {
                    self.silence.bear(error).await?;
                    None
                }
            };
            let Some((told, since)) = told else { continue };
            if let Some(place) = &self.place {
                place.enter();
            }
            if let Some(grant) = self.grant(told, since).await? {
                return Ok(Some(grant));
            }
            self.since = None;
        }
    }

    async fn ask(&mut self) -> Result<Said> {
        // Stays if this future is dropped before there is an answer.
        self.client.doubts.begin(self.request.id);
        let answer = self.client.store.call(self.question()).await;
        self.doubtful |= answer.is_err();
        if !self.doubtful {
            self.client.doubts.end(self.request.id);
        }
        read(answer?)
    }

    fn question(&self) -> Call {
        let Request { key, id, mode, lease, patience, fairness, owner, .. } = self.request;
        let ticket = self.ticket.map_or("-".to_owned(), |ticket| ticket.to_string());
        let call = Call::new(&scripts::ACQUIRE, key);
        let channel = self.client.channel(call.place());
        call.id(*id)
            .arg(mode_word(*mode))
            .arg(lease.as_millis())
            .arg(if *patience == Patience::Try { "try" } else { "queue" })
            .arg(if *fairness == Fairness::Unfair { "unfair" } else { "fair" })
            .arg(ticket)
            .arg(alive(self.request).as_millis())
            .owner(*owner)
            .arg(&*channel)
    }

    /// A grant that is not older than `since`: unless this process was not running for so long that it is worth nothing.
    async fn grant(&self, told: Told, since: Moment) -> Result<Option<Grant>> {
        let Request { key, id, lease, .. } = self.request;
        if self.client.now() >= valid_until(since, *lease) {
            self.client.leave(key, *id).await?;
            return Ok(None);
        }
        let token = self.client.fencing.then_some(told.token);
        let grant = Grant::of(self.request, token, since, told.contended).after_waiting(self.waited);
        self.client.confirm(&grant).await?;
        Ok(Some(grant))
    }

    /// Until it is told, or it is time to ask again.
    async fn wait(&mut self, lease_ends_in: Duration) -> Option<Told> {
        let longest = longest_pause(self.request);
        let environment = &*self.client.environment;
        let Some(place) = &self.place else {
            let Waiting::Poll { longest: most, .. } = self.client.waiting else { return None };
            environment.sleep(environment.jitter(self.pause.min(longest))).await;
            self.pause = (self.pause * 2).min(most);
            return None;
        };
        // Whoever is inside may be dead: then nobody tells anything, and the lock is free when the lease ends.
        let soon = lease_ends_in + Duration::from_millis(1);
        let pause = if lease_ends_in.is_zero() { longest } else { soon.min(longest) };
        tokio::select! {
            biased;
            told = place.news() => told.filter(|told| told.token.get() > self.last_token),
            () = environment.sleep(pause) => None,
        }
    }
}

/// How long a waiter counts as alive after a question: no shorter than a pause that a busy machine may bring.
pub(crate) fn alive(request: &Request) -> Duration {
    request.lease * 2 / 3
}

fn longest_pause(request: &Request) -> Duration {
    (request.lease / QUESTIONS_PER_LEASE).min(LONGEST_PAUSE)
}

fn read(mut answer: Answer) -> Result<Said> {
    match answer.word()?.as_str() {
        "granted" => {
            let token = answer.number()?;
            let token = StoreToken::new(token)
                .ok_or_else(|| Error::new(ErrorKind::Unexpected, format!("{token} is not a token")))?;
            Ok(Said::Granted(Told { token, contended: answer.number::<u8>()? == 1 }))
        }
        "queued" => Ok(Said::Queued {
            ticket: answer.number()?,
            lease_ends_in: Duration::from_millis(answer.number()?),
            last_token: answer.number()?,
        }),
        "busy" => Ok(Said::Busy),
        "undone" => Ok(Said::Undone),
        word => Err(Error::new(ErrorKind::Unexpected, format!("the server answered {word:?}"))),
    }
}

fn undone() -> Error {
    Error::new(ErrorKind::Indeterminate, "the acquisition was released while it was going on")
}

pub(crate) fn mode_word(mode: Mode) -> &'static str {
    match mode {
        Mode::Read => "r",
        Mode::Write => "w",
    }
}

/// Acquisitions of which a request was sent and not answered: it may still arrive.
#[derive(Debug, Default)]
pub(crate) struct Doubts(Mutex<HashSet<AcquisitionId>>);

impl Doubts {
    fn begin(&self, id: AcquisitionId) {
        self.lock().insert(id);
    }

    pub(crate) fn has(&self, id: AcquisitionId) -> bool {
        self.lock().contains(&id)
    }

    pub(crate) fn end(&self, id: AcquisitionId) {
        self.lock().remove(&id);
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<AcquisitionId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
