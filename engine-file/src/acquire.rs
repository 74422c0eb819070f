//! Acquire: join the queue, and enter when no other is in the way.

use std::time::Duration;

use ylock_core::engine::{Grant, Patience, Request};
use ylock_core::queue::Now;
use ylock_core::retry_deadline::RetryDeadline;
use ylock_core::{Error, ErrorKind, Result};

use crate::REQUEST_TIMEOUT;
use crate::client::{Client, micros};
use crate::client_id::ClientId;
use crate::driver::IfMissing;
use crate::message::LetIn;
use crate::place::place;
use crate::state::State;
use crate::waiters::InTheWay;

/// A waiter looks so many times in a lease by itself: it keeps its place by that, and notices what it was not told.
const LOOKS_PER_LEASE: u32 = 6;
/// A holder renews so many times in a lease.
const RENEWALS_PER_LEASE: u32 = 3;
/// The shortest pause between two looks that a waiter makes by itself.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);

/// The outcome of a look.
#[derive(Debug)]
pub(crate) enum Look {
    Entered(Grant),
    Waits {
        /// The clients that it waits for; not the one that it belongs to.
        in_the_way: InTheWay,
        /// Until when it need not look by itself.
        pause: Duration,
    },
}

/// Contends until granted; with [`Patience::Try`] answers at once.
pub(crate) async fn acquire(client: &Client, request: &Request) -> Result<Option<Grant>> {
    let mut retry = RetryDeadline::of(&*client.environment, request, REQUEST_TIMEOUT);
    // From before the first look: a release that comes after it finds this waiter, and tells it.
    let waiting = client.waiters.begin(request.id);
    let mut dead = Dead { asks: request.patience == Patience::Try, found: InTheWay::new() };
    let mut waited = false;
    loop {
        let look = look_soon(client, request, &mut dead);
        let look = match client.meter.measure(&*client.environment, "acquire", look).await {
            Ok(look) => look,
            Err(error) => {
                retry.retry_or_fail(error).await?;
                continue;
            }
        };
        retry.answered();
        match look {
            Look::Entered(grant) => return Ok(Some(grant.after_waiting(waited))),
            Look::Waits { .. } if request.patience == Patience::Try => return Ok(None),
            Look::Waits { in_the_way, pause } => {
                waited = true;
                waiting.waits_for(in_the_way);
                let asks = tokio::select! {
                    // Either order is right: both lead to the same look. Woken first, so that a notice and the end of a pause make one look.
                    biased;
                    () = waiting.wake.notified() => false,
                    () = client.environment.sleep(pause) => true,
                };
                if let Some(grant) = let_in(client, request, waiting.take_let_in()) {
                    return Ok(Some(grant));
                }
                dead = Dead { asks, found: waiting.take_dead() };
            }
        }
    }
}

/// Returns the grant of a waiter that another client has let in. Nothing if that is so long ago that a holder would have renewed since: then a look
/// decides whether it is inside still, and gives it a whole lease if it is.
///
/// A grant that is told was stored before. While its waiter waits only three things end it: its lease, which the moment in the message tells; a
/// revocation, which the next renewal tells; and its client's end.
fn let_in(client: &Client, request: &Request, let_in: Option<LetIn>) -> Option<Grant> {
    let LetIn { token, sent, contended } = let_in?;
    let now = Now::of(&*client.environment);
    let is_fresh = now.moment.since(sent) < request.lease / RENEWALS_PER_LEASE;
    // In a folder that was moved, a look says so.
    let is_there = || client.folder.check_is_there_still(micros(now)).is_ok();
    (is_fresh && is_there()).then(|| Grant::of(request, Some(token), sent, contended).after_waiting(true))
}

/// The clients that have ended, as far as a look is to know: what is left of them is removed.
#[derive(Debug)]
struct Dead {
    found: InTheWay,
    /// True if the look asks of all that are in the way whether they live. Where it need not: the background task watches them.
    asks: bool,
}

impl Dead {
    /// Asks of those in the way. Returns whether some have ended, so that another look is worth while.
    fn find(&mut self, client: &Client, look: &Look) -> bool {
        let Look::Waits { in_the_way, .. } = look else { return false };
        if !self.asks {
            return false;
        }
        let is_new = |peer: &ClientId| !self.found.contains(peer) && client.folder.is_dead(*peer);
        let found: InTheWay = in_the_way.iter().copied().filter(is_new).collect();
        self.found.extend_from_slice(&found);
        !found.is_empty()
    }
}

/// Looks at once. Returns nothing if another process is changing the lock.
pub(crate) fn look(client: &Client, request: &Request) -> Result<Option<Look>> {
    let mut dead = Dead { asks: request.patience == Patience::Try, found: InTheWay::new() };
    loop {
        let change = |state: &mut State, now| enter(client, request, &dead.found, state, now);
        let Some(look) = client.change(&request.key, IfMissing::Create, change)? else { return Ok(None) };
        if !dead.find(client, &look) {
            return Ok(Some(look));
        }
    }
}

async fn look_soon(client: &Client, request: &Request, dead: &mut Dead) -> Result<Look> {
    loop {
        let change = |state: &mut State, now| enter(client, request, &dead.found, state, now);
        let look = client.change_soon(&request.key, IfMissing::Create, change).await?;
        if !dead.find(client, &look) {
            return Ok(look);
        }
    }
}

/// Joins the queue, and enters if nothing is in the way. `dead` are clients that have ended: what is left of them is removed.
fn enter(client: &Client, request: &Request, dead: &[ClientId], state: &mut State, now: Now) -> Result<Look> {
    // Otherwise clients that have come since the folder was moved would have the lock as well.
    client.folder.check_is_there_still(micros(now))?;
    state.queue.remove_those(|contender| dead.contains(&contender.kept));
    let ticket = || request.ticket.unwrap_or_else(|| place(now));
    if let Some(kept) = state.queue.join(request, ticket, now) {
        *kept = client.id;
    }
    if !state.queue.may_enter(request.id) {
        let waits = waits(client, request, state, now);
        if request.patience == Patience::Try {
            // Within the same change: in the queue it would keep others out meanwhile, that only try as well.
            state.queue.withdraw(request.id);
        }
        return Ok(waits);
    }
    // Only now, under the lock of the file: a contender that enters later has a larger token.
    let Some(token) = state.enter(request.id, client.token_clock(now), now) else {
        return Err(Error::new(ErrorKind::Unexpected, "this lock has run out of tokens"));
    };
    let contended = state.queue.is_contended(request.id, None);
    Ok(Look::Entered(Grant::of(request, Some(token), now.moment, contended)))
}

fn waits(client: &Client, request: &Request, state: &State, now: Now) -> Look {
    let mut in_the_way = InTheWay::new();
    for other in state.queue.in_the_way(request.id).map(|other| other.kept) {
        if other != client.id && !in_the_way.contains(&other) {
            in_the_way.push(other);
        }
    }
    let longest = request.lease / LOOKS_PER_LEASE;
    let expiry = state.queue.next_expiry(request.id).map(|expiry| expiry.since(now.moment));
    let pause = expiry.map_or(longest, |expiry| expiry.clamp(SHORTEST_PAUSE, longest));
    Look::Waits { in_the_way, pause }
}
