//! The way in: asking, being notified, and asking again.

use std::sync::Arc;
use std::time::Duration;

use ylock_core::engine::{Grant, Patience, Request, Ticket, valid_until};
use ylock_core::environment::Moment;
use ylock_core::records::{Notification, NotificationReceiver};
use ylock_core::retry_deadline::RetryDeadline;
use ylock_core::{Error, ErrorKind, Fairness, Result, StoreToken};

use crate::client::Client;
use crate::driver::{Answer, Call, Function, Value};
use crate::release;
use crate::words::{alive, mode_word};

/// The longest pause between two questions of a waiter, and the least number of them per lease. By asking a waiter keeps its place, and
/// finds out what no message told it.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
const QUESTIONS_PER_LEASE: u32 = 6;

/// The server's answer to a question.
enum Said {
    Granted(Notification),
    Queued {
        ticket: Ticket,
        /// The time until the first lease of the holders may end.
        lease_ends_in: Duration,
        /// The last token that a holder was given before this answer.
        last_token: u64,
    },
    Busy,
    /// The acquisition was released meanwhile.
    Undone,
    /// A transaction has the lock, and the acquisition has no place in the queue.
    Closed,
}

/// One acquisition on its way in.
pub(crate) struct Acquire<'a> {
    client: &'a Client,
    request: &'a Request,
    /// `None` for a client that polls, and until the acquisition was found waiting: most are let in by the first answer.
    receiver: Option<Arc<NotificationReceiver>>,
    ticket: Option<Ticket>,
    /// The last token that was given out when this acquisition was last found waiting. A message with no larger token is about an earlier
    /// grant, which was over by then: the message was long on its way, and nothing may be built on it.
    last_token: u64,
    /// True once the acquisition was found waiting.
    waited: bool,
    retry_deadline: RetryDeadline<'a>,
    /// The number of pauses that it has made because no message reaches it.
    pauses: u32,
}

impl<'a> Acquire<'a> {
    pub(crate) fn new(client: &'a Client, request: &'a Request, request_timeout: Duration) -> Self {
        Self {
            client,
            request,
            receiver: None,
            ticket: request.ticket,
            last_token: 0,
            waited: false,
            retry_deadline: RetryDeadline::of(&*client.environment, request, request_timeout),
            pauses: 0,
        }
    }

    /// Asks, waits and asks again until the acquisition is granted or ends. A grant counts from just before the last question was sent.
    /// Either that question was answered with the grant: then it prolonged the lease. Or it still found the acquisition waiting: then the
    /// acquisition was let in later, and notified by a message.
    pub(crate) async fn run(mut self) -> Result<Option<Grant>> {
        loop {
            // As `connect`: a standby may have come since.
            self.client.store.promises()?;
            let sent = self.client.now();
            let notification = match self.ask().await {
                Ok(Said::Granted(notification)) => Some(notification),
                Ok(Said::Busy) => return self.turn_away().await,
                Ok(Said::Closed) if self.request.patience == Patience::Try => return self.turn_away().await,
                Ok(Said::Undone) => return Err(undone()),
                Ok(Said::Closed) => {
                    self.waited = true;
                    self.retry_deadline.answered();
                    self.pause().await;
                    None
                }
                Ok(Said::Queued { ticket, lease_ends_in, last_token }) => {
                    self.ticket = Some(ticket);
                    (self.last_token, self.waited) = (last_token, true);
                    self.retry_deadline.answered();
                    if self.receiver.is_some() {
                        self.client.listener.listen();
                    }
                    // The next question is answered only when the standby has what it writes, and so all that was written before it.
                    self.wait(lease_ends_in).await.filter(|_| !self.client.asks_when_told())
                }
                Err(error) => {
                    self.retry_deadline.retry_or_fail(error).await?;
                    None
                }
            };
            // If this process did not run for so long that the grant is no longer valid, it asks again: the lease is prolonged, or the
            // acquisition waits again.
            let is_valid = self.client.now() < valid_until(sent, self.request.lease);
            if let Some(notification) = notification.filter(|_| is_valid) {
                return Ok(Some(self.grant(notification, sent)));
            }
        }
    }

    async fn ask(&mut self) -> Result<Said> {
        let mark = self.client.records.begin(self.request.id);
        let said = match self.client.store.call(self.question()).await {
            Ok(answer) => read(&answer),
            Err(error) => return Err(mark.failed(error)),
        };
        if matches!(said, Ok(Said::Queued { .. })) && self.client.is_told() {
            // While the request still counts as on its way: a connection that is made anew in this moment wakes the acquisition too.
            self.receiver.get_or_insert_with(|| self.client.records.receiver(self.request.id));
        }
        mark.answered();
        said
    }

    /// Ends an acquisition that does not wait for a lock that is not free. An earlier question without an answer may still let it in: then
    /// it is released, so that the server remembers that it is undone.
    async fn turn_away(&self) -> Result<Option<Grant>> {
        if self.client.records.is_clear(self.request.id) {
            self.client.records.end(self.request.id);
        } else {
            release::release(self.client, &self.request.key, self.request.id, None).await?;
        }
        Ok(None)
    }

    fn question(&self) -> Call {
        let Request { key, id, mode, lease, patience, fairness, owner, client, .. } = self.request;
        Call::at(Function::Acquire, key)
            .with(Value::id(*id))
            .word(mode_word(*mode))
            .time(*lease)
            .with(Value::Flag(*patience == Patience::Queue))
            .with(Value::Flag(*fairness != Fairness::Unfair))
            .ticket(self.ticket)
            .time(alive(self.request))
            .with(Value::owner(*owner))
            .with(Value::Number(self.client.channel()))
            .with(Value::text(client.as_str()))
    }

    fn grant(&self, notification: Notification, since: Moment) -> Grant {
        let token = self.client.fencing.then_some(notification.token);
        Grant::of(self.request, token, since, notification.contended).after_waiting(self.waited)
    }

    /// Waits until the acquisition is notified that it was let in, or it is time to ask again.
    async fn wait(&mut self, lease_ends_in: Duration) -> Option<Notification> {
        let Some(receiver) = self.receiver.as_ref().filter(|_| self.client.is_told()) else {
            self.pause().await;
            return None;
        };
        // A holder may be dead: then no message comes, and the lock is free when that holder's lease ends.
        let soon = lease_ends_in + Duration::from_millis(1);
        let longest = longest_pause(self.request);
        let pause = if lease_ends_in.is_zero() { longest } else { soon.min(longest) };
        tokio::select! {
            biased;
            notification = receiver.notified() => notification.filter(|notification| notification.token.get() > self.last_token),
            () = self.client.environment.sleep(pause) => None,
        }
    }

    /// Waits a little, and longer the next time.
    async fn pause(&mut self) {
        let backoff = self.client.backoff.up_to(longest_pause(self.request));
        backoff.wait(&*self.client.environment, self.pauses).await;
        self.pauses = self.pauses.saturating_add(1);
    }
}

fn longest_pause(request: &Request) -> Duration {
    (request.lease / QUESTIONS_PER_LEASE).min(LONGEST_PAUSE)
}

fn read(answer: &Answer) -> Result<Said> {
    let mut words = answer.words()?;
    match words.word()? {
        "granted" => {
            let token = words.number()?;
            let token = StoreToken::new(token).ok_or_else(|| odd(format!("{token} is not a valid token")))?;
            Ok(Said::Granted(Notification { token, contended: words.flag()? }))
        }
        "queued" => Ok(Said::Queued {
            ticket: Ticket::from_number(words.number()?),
            lease_ends_in: Duration::from_micros(words.number()?),
            last_token: words.number()?,
        }),
        "busy" => Ok(Said::Busy),
        "undone" => Ok(Said::Undone),
        "closed" => Ok(Said::Closed),
        word => Err(odd(format!("the server answered {word:?}"))),
    }
}

fn odd(message: String) -> Error {
    Error::new(ErrorKind::Unexpected, message)
}

fn undone() -> Error {
    Error::new(ErrorKind::Indeterminate, "the acquisition was released while it was still under way")
}
