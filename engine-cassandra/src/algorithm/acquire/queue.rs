//! The queue lock of the thesis: `GetLock` (Listing 6) and `TryGetLock` (Listing 7), over one row per client (Listing 5).
//!
//! | Listing | here |
//! |---|---|
//! | 5: name of a queue cell: time, thread | the order (ticket, slot); one ticket per wait, two if the first look shows a slow own clock |
//! | 6.1: add the thread to the queue | `join`; in later rounds it only makes sure that what was decided last has arrived |
//! | 6.2: if our thread is first | `look`, and [`Verdict::Claim`] |
//! | 6.3: add a cell to the main row | `claim`: one more column of the own row |
//! | 6.4: if the main row has exactly one entry | `look`, and [`Verdict::Enter`]: *mine, and no other that conflicts* |
//! | 6.7: remove the own cell from the main row | `withdraw`, only for a contender that came earlier: else two would chase each other |
//! | 6.8, 6.10: go to step 2 | `look` again after a pause that fits the place in the queue |
//!
//! Departures: the first test is assumed to hold while no other client was seen, so that `join` claims at once and an
//! acquisition costs two trips; a waiter shows itself again before its row expires, and joins again if it did; the first
//! waiter claims while the holder is still inside, so that the next look after the release lets it in; the second one claims without the look of
//! 6.2 where the last tokens say that the first has left; between two looks waiters read these tokens alone; readers conflict with writers only; and
//! a claim carries a token that must exceed all that conflict.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ylock_core::engine::{Grant, Request, valid_until};
use ylock_core::environment::Moment;
use ylock_core::retry_deadline::RetryDeadline;
use ylock_core::{Error, ErrorKind, Mode, Result};

use super::look_past_the_dead;
use crate::algorithm::judge::{Contender, Verdict, is_contended, places_of_others};
use crate::algorithm::line::Before;
use crate::algorithm::own_row::OwnRow;
use crate::algorithm::pace::{self, Pace};
use crate::algorithm::store::{LastTokens, Partition};
use crate::algorithm::told::{AskedBy, Turn};
use crate::hints;

/// The number of waiters further behind that bury what is dead within one lease, one after the other, if those before them do not.
const BURIALS_IN_A_LEASE: u32 = 10;

/// How often a client that tries shows a row again that was too old when it was seen.
const SHOWN_AGAIN: u32 = 10;

/// The longest pause of a client that tries, and is first, between two looks at a later claim.
const LONGEST_BESIDE_RIVAL: Duration = Duration::from_millis(100);

/// Waits in the queue until the lock is granted: Listing 6.
///
/// # Errors
/// `Unavailable` if the store has not answered for one lease, or has not shown the own row. An error that waiting cannot mend is returned at once.
pub(crate) async fn get_lock(own_row: &Arc<OwnRow>, request: &Request) -> Result<Grant> {
    let mut retry_deadline = RetryDeadline::new(&*own_row.client.environment, request.lease);
    let mut wait = Wait::new(own_row);
    if let Err(error) = join_behind_others(own_row, request, &mut wait).await {
        retry_deadline.retry_or_fail(error).await?;
    }
    loop {
        match one_round(own_row, request, &mut wait).await {
            Ok(Some(grant)) => return Ok(grant.after_waiting(wait.waited)),
            Ok(None) => retry_deadline.answered(),
            Err(error) => retry_deadline.retry_or_fail(error).await?,
        }
    }
}

/// The state of one wait.
struct Wait {
    pace: Pace,
    /// True if other contenders went first.
    waited: bool,
    /// What has asked for the next look.
    asked_by: AskedBy,
    /// Those that were told of this waiter last.
    told: Option<Vec<hints::Key>>,
    /// Those that should tell of the next turn, as the look before the last pause has shown them.
    tellers: Vec<SocketAddr>,
    /// When the last look began.
    looked: Moment,
    /// True if the last look did not show the own row, which was written again since.
    was_not_shown: bool,
    /// The sleep that goes on, far behind in the queue.
    sleep: Option<Sleep>,
}

/// A sleep without looks.
struct Sleep {
    end: Moment,
    /// What asks for the look at its end.
    asks: AskedBy,
    last_tokens: LastTokens,
    /// When these were seen to change last, or first seen.
    changed: Moment,
    /// When they are to be read again.
    read_again: Moment,
}

impl Wait {
    fn new(own_row: &OwnRow) -> Self {
        Self {
            pace: Pace::new(own_row.estimates()),
            waited: false,
            asked_by: AskedBy::Other,
            told: None,
            tellers: Vec::new(),
            looked: own_row.client.now(),
            was_not_shown: false,
            sleep: None,
        }
    }
}

/// Joins (step 1) and pauses, where a queue was seen a moment ago: a look at once would only show that it is still there.
async fn join_behind_others(own_row: &Arc<OwnRow>, request: &Request, wait: &mut Wait) -> Result<()> {
    if let Some((pause, tellers)) = own_row.first_pause() {
        let (began, sent) = (own_row.client.now(), own_row.sent());
        own_row.join(request, false).await?;
        // The release before may have written the row.
        if own_row.sent() != sent {
            wait.pace.wrote_for(own_row.client.now().since(began));
        }
        let pause = pace::about(pause, &*own_row.client.environment).min(request.lease / 6);
        own_row.tell_line_of_waiting(request.mode);
        let end = if tellers.is_empty() { AskedBy::Other } else { AskedBy::FirstPause };
        wait.tellers = tellers;
        wait.asked_by = own_row.pause(pause).await.unwrap_or(end);
    }
    Ok(())
}

/// Runs steps 1 to 10: takes a place in the queue, looks once, and does what follows from the look.
async fn one_round(own_row: &Arc<OwnRow>, request: &Request, wait: &mut Wait) -> Result<Option<Grant>> {
    // Whatever I decided last, a quorum has it before I look: the argument for safety begins here.
    let me = own_row.join(request, own_row.is_alone()).await?;
    if sleeps_on(own_row, request, wait).await? {
        return Ok(None);
    }
    let asked_by = own_row.look_begins(std::mem::take(&mut wait.asked_by));
    let (began, shown) = (own_row.client.now(), own_row.sent());
    let look = own_row.look().await?;
    wait.looked = began;
    if asked_by.is_hint() {
        wait.pace.told_of_a_turn(began);
    }
    wait.pace.looked_for(own_row.client.now().since(began));
    own_row.remember(wait.pace.estimates);
    if own_row.is_misplaced(request) || own_row.is_far_behind(request, &me) {
        return own_row.requeue(request).await.map(|()| None);
    }
    if bury_dead(own_row, request, &me, &look).await? {
        return Ok(None);
    }
    let verdict = me.judge(&look);
    let was_not_shown = std::mem::replace(&mut wait.was_not_shown, verdict == Verdict::Gone);
    match verdict {
        Verdict::Enter if is_in_time(own_row, request, shown) => {
            own_row.turn_has_come(Turn::Enter, asked_by, &wait.tellers);
            wait.pace.enters();
            own_row.remember(wait.pace.estimates);
            return enter(own_row, request, &me, &look).map(Some);
        }
        Verdict::Claim => {
            own_row.turn_has_come(Turn::Claim, asked_by, &wait.tellers);
            wait.waited |= is_taken(&look, own_row, request.mode);
            claim(own_row, request, wait).await?;
            // A look at once would only show that the holder is still inside. Had it left meanwhile, it would have told.
            let before = Before::of(&look, &me);
            if own_row.pause_until_told(request.lease, 0, Duration::ZERO, &before).is_some() {
                pause(own_row, request, wait, &me, &look).await?;
            }
        }
        Verdict::ClaimAbove(floor) => own_row.claim(request, Some(floor)).await?,
        Verdict::Withdraw => own_row.withdraw(request).await?,
        Verdict::Wait { .. } => {
            wait.waited = true;
            pause(own_row, request, wait, &me, &look).await?;
        }
        // The claim is too old to rely on, or the row has expired: show it again, and look again.
        Verdict::Enter | Verdict::Gone => {
            own_row.stay(request).await?;
            if was_not_shown && verdict == Verdict::Gone {
                return Err(not_shown());
            }
        }
        // The revocation was meant for a holder, and this contender has not entered.
        Verdict::Revoked => own_row.shed(request).await?,
    }
    Ok(None)
}

/// Buries the dead rows that stand in the way, when it is this waiter's turn to do that. Returns whether it has: then only a look that
/// begins afterwards counts.
///
/// The first two of those that wait do it at once, the others one after the other: were all of them to do it, each death would cost as many
/// burials as there are waiters. That they do it at all, and how soon, decides nothing but how long the lock stays closed.
async fn bury_dead(own_row: &OwnRow, request: &Request, me: &Contender, look: &Partition) -> Result<bool> {
    let mut dead = own_row.dead_in_the_way(look, request.mode);
    if dead.is_empty() {
        return Ok(false);
    }
    let before = buriers_before(own_row, me, look);
    dead.retain(|dead| dead.since >= turn(request.lease.min(dead.lease), before));
    own_row.bury(&dead).await?;
    Ok(!dead.is_empty())
}

/// Returns how many clients bury before this one does.
fn buriers_before(own_row: &OwnRow, me: &Contender, look: &Partition) -> usize {
    // Dead in any way: a reader that is dead is not in the way of another one, but does not bury either.
    me.buriers_before(look, &own_row.dead(look))
}

/// Returns when this waiter is to bury the first row that stands in its way, if that is not written anew.
fn next_burial(own_row: &OwnRow, request: &Request, me: &Contender, look: &Partition) -> Option<Moment> {
    let before = buriers_before(own_row, me, look);
    own_row.next_burial(look, request.mode, |lease| turn(request.lease.min(lease), before))
}

/// Returns how long a row with this lease has been dead when it is the turn of a client with so many before it. A lease at most: those before
/// it may have stopped without being dead, or have leases of hours.
fn turn(lease: Duration, before: usize) -> Duration {
    let before = u32::try_from(before).unwrap_or(u32::MAX);
    (lease / BURIALS_IN_A_LEASE).saturating_mul(before.saturating_sub(1)).min(lease)
}

/// Takes the lock if it is free, and otherwise leaves nothing behind: Listing 7.
///
/// Of those that try a free lock at once one gets it, which is Theorem 4 of the thesis. Each that gives way has seen one that came earlier, so
/// the first one must not give up while the lock is not held: no other client is left to enter. It cannot know of a later claim whether its client is
/// about to give way or has entered, which the row says at the next renewal only. So it looks until the claim is gone or held, for `longest`.
///
/// # Errors
/// The error of the first request that fails; `Unavailable` if the looks take longer than the lease, or if a later claim is there for `longest`.
/// The caller releases then.
pub(crate) async fn try_get_lock(
    own_row: &Arc<OwnRow>,
    request: &Request,
    longest: Duration,
) -> Result<Option<Grant>> {
    // Step 1: if the main row has an entry, answer no. Not where this call goes on with one that was dropped with its runtime and has joined
    // already: of two that have claimed, each would see the other's entry, and neither would get in.
    let look = look_past_the_dead(own_row, request.mode).await?;
    if !own_row.takes_part(request.id) && is_taken(&look, own_row, request.mode) {
        // The call before may have been dropped while it left. Otherwise nothing is written.
        own_row.release(request.id, None).await?;
        return Ok(None);
    }
    let (mut shown_again, mut rivals_seen) = (0, 0);
    let began = own_row.client.now();
    loop {
        let me = own_row.join(request, true).await?;
        let shown = own_row.sent();
        let look = look_past_the_dead(own_row, request.mode).await?;
        match me.judge(&look) {
            Verdict::Enter if is_in_time(own_row, request, shown) => {
                return enter(own_row, request, &me, &look).map(Some);
            }
            // The claim is too old to rely on, or the row has expired, which says nothing of the lock: show it again, and look again.
            Verdict::Enter | Verdict::Gone if shown_again < SHOWN_AGAIN => {
                shown_again += 1;
                own_row.stay(request).await?;
            }
            Verdict::Enter | Verdict::Gone => return Err(expires_early()),
            Verdict::ClaimAbove(floor) => own_row.claim(request, Some(floor)).await?,
            Verdict::Revoked => own_row.shed(request).await?,
            // Step 10: a contender that came later has claimed too.
            Verdict::Wait { before: 0, held: false } => {
                if own_row.client.now().since(began) >= longest {
                    return Err(rival_stays(longest));
                }
                let environment = &own_row.client.environment;
                environment.sleep(pace::about(pause_beside_rival(rivals_seen), &**environment)).await;
                rivals_seen += 1;
                if is_due(own_row, request) {
                    own_row.stay(request).await?;
                }
            }
            // Steps 12 and 13: not first, or it is held.
            _ => {
                own_row.release(request.id, None).await?;
                return Ok(None);
            }
        }
    }
}

/// Returns the pause of a try after it has seen a later claim so often: the other client looks, and takes its claim back, in two trips.
fn pause_beside_rival(seen: u32) -> Duration {
    LONGEST_BESIDE_RIVAL.min(Duration::from_millis(1) * 2_u32.saturating_pow(seen))
}

fn rival_stays(longest: Duration) -> Error {
    let message = format!(
        "a client that came later has claimed the lock, and has neither given way nor said that it is inside for {longest:?}: it may have stopped, or hold the \
         lock and not have renewed it yet"
    );
    Error::new(ErrorKind::Unavailable, message)
}

fn not_shown() -> Error {
    let message = "looks do not show the row that this client has written: has an operator deleted it, with a timestamp in the future, or is the clock of a node \
                   far ahead, or this machine too slow for the lease?";
    Error::new(ErrorKind::Unavailable, message)
}

fn expires_early() -> Error {
    let message = "each look came when the lease of this client's row was over, or the row gone: is this machine too slow for the lease, or the clock of a \
                   node wrong?";
    Error::new(ErrorKind::Unavailable, message)
}

/// Returns whether another client that conflicts has an entry in the main row.
fn is_taken(look: &Partition, own_row: &OwnRow, mode: Mode) -> bool {
    let mut others = places_of_others(look, own_row.client.slot);
    others.any(|place| place.is_in_main() && place.mode.conflicts_with(mode))
}

fn enter(own_row: &Arc<OwnRow>, request: &Request, me: &Contender, look: &Partition) -> Result<Grant> {
    let sent = own_row.sent();
    let contended = is_contended(look, own_row.client.slot, request.mode);
    own_row.enter(request, contended)?;
    Ok(Grant::of(request, me.claimed, sent, contended))
}

/// Returns whether the lease of the claim, counted from before it was sent, still has its margin. The look took time, and the process
/// may have been stopped: a row may have expired since. `shown` is from before the look: a row that was written again meanwhile says nothing of what the
/// look has shown.
fn is_in_time(own_row: &OwnRow, request: &Request, shown: Moment) -> bool {
    own_row.client.now() < valid_until(shown, request.lease)
}

/// Returns whether a waiter must show itself again.
fn is_due(own_row: &OwnRow, request: &Request) -> bool {
    until_due(own_row, request).is_zero()
}

/// Returns in how long a waiter must show itself again.
fn until_due(own_row: &OwnRow, request: &Request) -> Duration {
    (request.lease / 3).saturating_sub(own_row.client.now().since(own_row.sent()))
}

/// Pauses between two looks, and shows the row again if that is due.
async fn pause(
    own_row: &Arc<OwnRow>,
    request: &Request,
    wait: &mut Wait,
    me: &Contender,
    look: &Partition,
) -> Result<()> {
    let (ahead, before) = (me.before(look), Before::of(look, me));
    let environment = &own_row.client.environment;
    let often = wait.pace.pause(me.turns_before(look), look, environment.now());
    own_row.remember(wait.pace.estimates);
    let until_told = own_row.pause_until_told(request.lease, ahead, often, &before);
    if until_told.is_some() {
        // It may have got lost.
        wait.told = None;
    }
    own_row.tell_of_waiting(me.mode, &before, &mut wait.told);
    wait.tellers = before.tellers;
    let mut pause = pace::about(until_told.map_or(often, |until_told| until_told.max(often)), &**environment);
    if let Some(burial) = next_burial(own_row, request, me, look) {
        pause = pause.min(burial.since(environment.now()));
    }
    let asks = until_told.map_or(AskedBy::Other, |_| AskedBy::LongPause);
    if ahead > 1 {
        let (now, last_tokens) = (environment.now(), look.last_tokens());
        let mut sleep = Sleep { end: now.plus(pause), asks, last_tokens, changed: now, read_again: now };
        sleep.read_again_later(own_row, &wait.pace);
        wait.sleep = Some(sleep);
        return Ok(());
    }
    // Never past the moment at which the row must be shown again.
    let pause = pause.min(until_due(own_row, request));
    wait.asked_by = match own_row.pause(pause).await {
        Some(asked_by) => asked_by,
        None if until_told.is_some() => asks,
        None => await_change(own_row, request, wait, me, look).await?,
    };
    // However often hints ask for looks: the row is shown again when it is due, and not later.
    if is_due(own_row, request) { own_row.stay(request).await } else { Ok(()) }
}

/// Sleeps on far behind in the queue, until the row must be shown again, the last tokens must be read, or the sleep ends. Returns whether the waiter
/// still sleeps.
///
/// It sleeps as long as these tokens change once in a turn. If they do not, those before it may have died or given up, or it is its own turn, because turns
/// have become shorter. Where turns are long, each change may be the last one before its own turn; unless it will be told.
async fn sleeps_on(own_row: &OwnRow, request: &Request, wait: &mut Wait) -> Result<bool> {
    let Some(sleep) = &mut wait.sleep else { return Ok(false) };
    let client = &own_row.client;
    let next = sleep.end.min(sleep.read_again).since(client.now());
    let mut asks = own_row.pause(next.min(until_due(own_row, request))).await;
    if sleep.end <= client.now() {
        asks = asks.or(Some(sleep.asks));
    }
    // However often hints ask for looks, and whatever becomes of reads: the row is shown again when it is due, and not later.
    if is_due(own_row, request) {
        own_row.stay(request).await?;
    }
    if asks.is_none() && sleep.read_again <= client.now() {
        let last_tokens = own_row.last_tokens().await?;
        asks = sleep.has_read(last_tokens, own_row, &wait.pace).then_some(AskedBy::Other);
    }
    let Some(asked_by) = asks else { return Ok(true) };
    (wait.asked_by, wait.sleep) = (asked_by, None);
    Ok(false)
}

impl Sleep {
    fn will_be_told(&self) -> bool {
        self.asks == AskedBy::LongPause
    }

    /// Notes what the last tokens are now. Returns whether that asks for a look.
    fn has_read(&mut self, last_tokens: LastTokens, own_row: &OwnRow, pace: &Pace) -> bool {
        let (now, rare) = (own_row.client.now(), pace.changes_are_rare());
        self.read_again_later(own_row, pace);
        if self.last_tokens != last_tokens {
            (self.last_tokens, self.changed) = (last_tokens, now);
            return rare && !self.will_be_told();
        }
        !rare || now.since(self.changed) >= pace.turn()
    }

    /// From now on: were the store slow, one read would follow the other without a pause. And not at the same moment as those that have come at the same
    /// moment.
    fn read_again_later(&mut self, own_row: &OwnRow, pace: &Pace) {
        let environment = &own_row.client.environment;
        let unread = pace.longest_unread();
        let unread = if self.will_be_told() { unread.max(pace.turn()) } else { unread };
        self.read_again = environment.now().plus(pace::about(unread, &**environment));
    }
}

/// Waits until the last tokens change, as long as nothing else is due. While there is no change a look would show what the last one has shown, and
/// take the longer the more clients wait. What a change means says a look; but where it says that the only one has left that went first, that look
/// is the one after the claim.
async fn await_change(
    own_row: &OwnRow,
    request: &Request,
    wait: &mut Wait,
    me: &Contender,
    look: &Partition,
) -> Result<AskedBy> {
    let (client, before) = (&own_row.client, me.before(look));
    if !me.is_shown_by_tokens(look) {
        return Ok(AskedBy::Other);
    }
    let shown = own_row.sent().plus(request.lease / 3);
    let death = next_burial(own_row, request, me, look);
    let reads = request.mode == Mode::Read;
    let due = wait.pace.look_is_due(before, reads, wait.looked).min(shown).min(death.unwrap_or(shown));
    while client.now() < due {
        let last = own_row.last_tokens().await?;
        if me.is_first_after(look, last) {
            own_row.turn_has_come(Turn::Claim, AskedBy::Other, &[]);
            claim(own_row, request, wait).await?;
        }
        if last != look.last_tokens() {
            break;
        }
        let pause = pace::about(wait.pace.pause_after_no_change(before, client.now()), &*client.environment);
        if let Some(asked_by) = own_row.pause(pause.min(due.since(client.now()))).await {
            return Ok(asked_by);
        }
    }
    Ok(AskedBy::Other)
}

/// Claims, and learns how long that takes.
async fn claim(own_row: &OwnRow, request: &Request, wait: &mut Wait) -> Result<()> {
    let began = own_row.client.now();
    own_row.claim(request, None).await?;
    wait.pace.wrote_for(own_row.client.now().since(began));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_two_bury_at_once_and_the_others_one_after_the_other() {
        let seconds =
            [0, 1, 2, 3, 11, 12, usize::MAX].map(|before| turn(Duration::from_secs(10), before).as_secs());
        assert_eq!(seconds, [0, 0, 1, 2, 10, 10, 10]);
    }
}
