//! The way in: asking, being notified, and asking again.

use std::sync::Arc;
use std::time::Duration;

use ylock_core::backoff::Backoff;
use ylock_core::engine::{Grant, Patience, Request, Ticket, valid_until};
use ylock_core::environment::Moment;
use ylock_core::records::{Notification, NotificationReceiver};
use ylock_core::retry_deadline::RetryDeadline;
use ylock_core::{Error, ErrorKind, Fairness, Result, StoreToken};

use crate::client::Client;
use crate::driver::{Answer, Call, scripts};
use crate::options::Notify;
use crate::release;
use crate::words::{NONE, alive, mode_word, ticket_word};

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
    /// True if the last answer came from a server that the lock is being moved to, at which this client does not listen. That is known of this
    /// lock alone: of the others in its part some may not have been moved yet.
    is_elsewhere: bool,
    retry_deadline: RetryDeadline<'a>,
    /// The number of pauses that it has made because it hears no messages.
    pauses: u32,
}

impl<'a> Acquire<'a> {
    pub(crate) fn new(client: &'a Client, request: &'a Request, request_timeout: Duration) -> Self {
        let retry_deadline = RetryDeadline::of(&*client.environment, request, request_timeout);
        Self {
            client,
            request,
            receiver: None,
            ticket: request.ticket,
            last_token: 0,
            waited: false,
            is_elsewhere: false,
            retry_deadline,
            pauses: 0,
        }
    }

    /// Asks, waits and asks again until the acquisition is granted or ends. A grant counts from just before the last question was sent.
    /// Either that question was answered with the grant: then it prolonged the lease. Or it still found the acquisition waiting: then the
    /// acquisition was let in later, and notified by a message.
    pub(crate) async fn run(mut self) -> Result<Option<Grant>> {
        loop {
            let sent = self.client.now();
            let notification = match self.ask(0).await.map(|(said, _)| said) {
                Ok(Said::Granted(notification)) => Some(notification),
                Ok(Said::Busy) => return self.turn_away().await,
                Ok(Said::Undone) => return Err(undone()),
                Ok(Said::Queued { ticket, lease_ends_in, last_token }) => {
                    self.ticket = Some(ticket);
                    (self.last_token, self.waited) = (last_token, true);
                    self.retry_deadline.answered();
                    if self.receiver.is_some() {
                        self.client.listen(&self.request.key);
                    }
                    self.wait(lease_ends_in).await
                }
                Err(error) => {
                    self.retry_deadline.retry_or_fail(error).await?;
                    None
                }
            };
            // If this process did not run for so long that the grant is no longer valid, it asks again: the lease is prolonged, or the
            // acquisition waits again.
            let Some(notification) =
                notification.filter(|_| self.client.now() < valid_until(sent, self.request.lease))
            else {
                continue;
            };
            if self.client.min_replicas == 0 {
                return Ok(Some(self.grant(notification, sent)));
            }
            if let Some(grant) = Box::pin(self.replicated()).await? {
                return Ok(Some(grant));
            }
        }
    }

    /// Asks once. Returns the answer, and whether so many replicas have what the question wrote.
    async fn ask(&mut self, replicas: u32) -> Result<(Said, bool)> {
        let mark = self.client.records.begin(self.request.id);
        let (answer, reached) = match self.client.store.call_replicated(self.question(), replicas).await {
            Ok(answered) => answered,
            // Where replicas are waited for the error may be about that, behind the script: an
            // earlier question was answered then, and counts.
            Err(error) => return Err(mark.failed(error)),
        };
        self.is_elsewhere = answer.was_sent_on();
        let said = read(answer);
        if matches!(said, Ok(Said::Queued { .. })) && self.client.notify == Notify::On {
            // While the request still counts as on its way: a connection that is made anew in this moment wakes the acquisition too.
            self.receiver.get_or_insert_with(|| self.client.records.receiver(self.request.id));
        }
        mark.answered();
        Ok((said?, reached))
    }

    /// Waits until enough replicas have the grant, and gives it back if they do not have it in time. Returns `None` if it is over by now.
    ///
    /// Asks one more question for that: the grant may have been written on the connection of the client that released, and a question also
    /// prolongs a grant that was revoked meanwhile: its next renewal tells of that.
    async fn replicated(&mut self) -> Result<Option<Grant>> {
        let sent = self.client.now();
        let failed = match self.ask(self.client.min_replicas).await {
            Ok((Said::Granted(notification), true)) => {
                return Ok(Some(self.grant(notification, sent)));
            }
            Ok((Said::Granted { .. }, false)) => not_replicated(self.client.min_replicas),
            Ok((Said::Queued { .. } | Said::Busy, _)) => return Ok(None),
            Ok((Said::Undone, _)) => return Err(undone()),
            Err(error) => error,
        };
        self.release().await?;
        Err(failed)
    }

    /// Ends an acquisition that does not wait for a lock that is not free. An earlier question without an answer may still let it in: then
    /// it is released, so that the server remembers that it is undone.
    async fn turn_away(&self) -> Result<Option<Grant>> {
        if self.client.records.is_clear(self.request.id) {
            self.client.records.end(self.request.id);
        } else {
            self.release().await?;
        }
        Ok(None)
    }

    async fn release(&self) -> Result<()> {
        release::release(self.client, &self.request.key, self.request.id, None).await.map(drop)
    }

    fn question(&self) -> Call {
        let Request { key, id, mode, lease, patience, fairness, owner, client, .. } = self.request;
        let call = self.client.call(&scripts::ACQUIRE, key);
        let channel = if self.is_elsewhere { NONE.into() } else { self.client.channel(call.place()) };
        call.id(*id)
            .arg(mode_word(*mode))
            .arg(lease.as_millis())
            .arg(if *patience == Patience::Try { "try" } else { "queue" })
            .arg(if *fairness == Fairness::Unfair { "unfair" } else { "fair" })
            .arg(&*ticket_word(self.ticket))
            .arg(alive(self.request).as_millis())
            .owner(*owner)
            .arg(&*channel)
            .arg(client.as_str())
            .arg(self.client.eviction)
            .must_be_kept()
    }

    fn grant(&self, notification: Notification, since: Moment) -> Grant {
        let token = self.client.fencing.then_some(notification.token);
        Grant::of(self.request, token, since, notification.contended).after_waiting(self.waited)
    }

    /// Waits until the acquisition is notified that it was let in, or it is time to ask again.
    async fn wait(&mut self, lease_ends_in: Duration) -> Option<Notification> {
        let longest = longest_pause(self.request);
        let environment = &*self.client.environment;
        let Some(receiver) = &self.receiver else {
            let Notify::Off { poll, poll_longest } = self.client.notify else { return None };
            Backoff::new(poll, poll_longest).up_to(longest).wait(environment, self.pauses).await;
            self.pauses = self.pauses.saturating_add(1);
            return None;
        };
        // A holder may be dead: then no message comes, and the lock is free when that holder's lease ends.
        let soon = lease_ends_in + Duration::from_millis(1);
        let pause = if lease_ends_in.is_zero() { longest } else { soon.min(longest) };
        tokio::select! {
            biased;
            notification = receiver.notified() => notification.filter(|notification| notification.token.get() > self.last_token),
            () = environment.sleep(pause) => None,
        }
    }
}

fn longest_pause(request: &Request) -> Duration {
    (request.lease / QUESTIONS_PER_LEASE).min(LONGEST_PAUSE)
}

fn read(mut answer: Answer) -> Result<Said> {
    match answer.word()?.as_str() {
        "granted" => {
            let token = answer.number()?;
            let token = StoreToken::new(token)
                .ok_or_else(|| Error::new(ErrorKind::Unexpected, format!("{token} is not a valid token")))?;
            Ok(Said::Granted(Notification { token, contended: answer.flag()? }))
        }
        "queued" => Ok(Said::Queued {
            ticket: Ticket::from_number(answer.number()?),
            lease_ends_in: Duration::from_millis(answer.number()?),
            last_token: answer.number()?,
        }),
        "busy" => Ok(Said::Busy),
        "undone" => Ok(Said::Undone),
        word => Err(Error::new(ErrorKind::Unexpected, format!("the server answered {word:?}"))),
    }
}

fn undone() -> Error {
    Error::new(ErrorKind::Indeterminate, "the acquisition was released while it was still under way")
}

fn not_replicated(replicas: u32) -> Error {
    let message = format!("the lock was not replicated to {replicas} replicas in time and was given back");
    Error::new(ErrorKind::Unavailable, message)
}

#[cfg(test)]
mod tests {
    use ylock_core::engine::AcquisitionId;
    use ylock_core::{ClientName, Key, Mode, Owner};

    use super::*;

    /// A waiter that has not asked for two thirds of its lease counts as dead.
    #[test]
    fn a_waiter_asks_every_second_and_six_times_per_lease() {
        let key = Key::new("users", "alice").unwrap();
        let (id, owner) = (AcquisitionId::from_u128(1), Owner::new());
        let pause = |lease| {
            let client = ClientName::default();
            longest_pause(&Request::new(key.clone(), id, Mode::Write, owner, client, lease))
        };
        assert_eq!(pause(Duration::from_millis(1_200)), Duration::from_millis(200));
        assert_eq!(pause(Duration::from_secs(60)), Duration::from_secs(1));
    }
}
