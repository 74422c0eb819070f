//! Renewal, in one place for all grants of a client: when each is due, in batches, and what follows.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::effects::Effects;
use super::entry::{Context, Entry, Phase};
use super::granted::Granted;
use super::logged::Logged;
use super::{Keeper, caught};
use crate::contact::away;
use crate::early_renewals::Renews;
use crate::engine::{AcquisitionId, Grant, Holding, LossReason, Renewal};
use crate::environment::Moment;
use crate::error::{Error, ErrorKind, Result};
use crate::events::{ClientEvent, Renewed};
use crate::key::Key;

/// Renewals per lease.
const RENEWALS: u32 = 3;
/// After a renewal that failed, the next try comes this part of the lease after that one began, or at once if it took longer: a lease
/// has room for a few requests that get no answer, and none for pauses between them.
const RETRY_PART: u32 = 12;
/// The longest time until the next try, however long the lease is: a caller may wait for a downgrade or a look, and a long lease would keep
/// readers out for hours.
const LONGEST_RETRY: Duration = Duration::from_secs(1);
/// The number of stale moments that are not worth a look at all of them.
const STALE: usize = 256;
/// The most grants in one call of the engine: a bound on what one slow call can delay.
const BATCH: usize = 256;
/// The longest sleep while something is held: timers may stand still while the machine is suspended, and the
/// loss must be told soon after it wakes up.
const LONGEST_SLEEP: Duration = Duration::from_millis(500);

/// One moment at which to look at a grant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub(super) at: Moment,
    pub(super) id: AcquisitionId,
    pub(super) number: u64,
}

/// Returns the moment at which a grant that has just been confirmed is due.
pub(super) fn next_renewal(grant: &Grant) -> Moment {
    grant.sent.plus(grant.lease / RENEWALS)
}

/// Returns the shortest time from one renewal to the next that nothing but time calls for.
pub(super) fn retry_pause(lease: Duration) -> Duration {
    (lease / RETRY_PART).min(LONGEST_RETRY)
}

/// The moments at which grants are due. An entry whose grant has ended, or was scheduled anew, is stale and is skipped.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    heap: Mutex<BinaryHeap<Reverse<Due>>>,
    pub(super) wake: Notify,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: Moment,
    number: u64,
    id: AcquisitionId,
    key: Key,
}

impl Schedule {
    /// Adds a turn. `grants`: as many as there may be at most.
    pub(super) fn push(&self, key: &Key, turn: Turn, grants: usize) {
        let mut heap = self.heap.lock();
        let earlier = heap.peek().is_none_or(|Reverse(first)| turn.at < first.at);
        heap.push(Reverse(Due { at: turn.at, number: turn.number, id: turn.id, key: key.clone() }));
        let wakes = earlier || is_overgrown(heap.len(), grants);
        drop(heap);
        if wakes {
            self.wake.notify_one();
        }
    }

    /// Returns how many moments are kept, the stale ones among them.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.heap.lock().len()
    }

    /// Forgets the stale moments, if most are stale: a lock that is given back within its lease would otherwise be kept for a third of
    /// the lease, and with long leases that is for ever. Rare enough that it costs each grant no more than a look or two.
    fn tidy(&self, grants: usize, is_current: impl Fn(&Due) -> bool) {
        let all = {
            let mut heap = self.heap.lock();
            if !is_overgrown(heap.len(), grants) {
                return;
            }
            std::mem::take(&mut *heap)
        };
        // Outside the lock: a shard is locked for each, and a caller that has locked a shard may push.
        let mut current: BinaryHeap<_> = all.into_iter().filter(|Reverse(due)| is_current(due)).collect();
        self.heap.lock().append(&mut current);
    }

    fn pop_due(&self, now: Moment) -> Vec<Due> {
        let mut heap = self.heap.lock();
        let mut due = Vec::new();
        while heap.peek().is_some_and(|Reverse(first)| first.at <= now) {
            due.extend(heap.pop().map(|Reverse(first)| first));
        }
        due
    }

    fn next(&self) -> Option<Moment> {
        self.heap.lock().peek().map(|Reverse(first)| first.at)
    }
}

/// Returns whether most of these moments must be stale: each grant has one that is not.
fn is_overgrown(moments: usize, grants: usize) -> bool {
    moments > 2 * grants + STALE
}

/// Renews the grants of a client until the client is gone.
pub(super) async fn run(keeper: Weak<Keeper>, schedule: Arc<Schedule>) {
    while let Some(keeper) = keeper.upgrade() {
        let environment = Arc::clone(keeper.environment());
        let now = environment.now();
        schedule.tidy(keeper.len(), |due| keeper.is_current(due));
        let due = schedule.pop_due(now);
        // What is due at once has no plan that it could be late for.
        let planned = due.iter().map(|due| due.at).filter(|at| *at > Moment::ZERO).min();
        let holdings: Vec<Holding> = due.iter().filter_map(|due| keeper.due(due)).collect();
        if let (Some(planned), true, false) = (planned, keeper.is_watched(), holdings.is_empty()) {
            keeper.tell(&ClientEvent::Renewing { grants: holdings.len(), lag: now.since(planned) });
        }
        for batch in holdings.chunks(BATCH) {
            let batch =
                Batch { keeper: Arc::clone(&keeper), holdings: batch.to_vec(), answered: 0, begun: false };
            environment.spawn(Box::pin(batch.renew()));
        }
        drop(keeper);
        let pause = schedule.next().map(|at| at.since(environment.now()).min(LONGEST_SLEEP));
        match pause {
            Some(pause) => tokio::select! {
                // Either order is right: both lead to a look at all that is due, so neither can starve the other. Woken first,
                // so that a ring and the end of a pause in the same moment make one round, not two.
                biased;
                () = schedule.wake.notified() => {}
                () = environment.sleep(pause) => {}
            },
            None => schedule.wake.notified().await,
        }
    }
}

/// Grants that are renewed together. Those without an answer are due again if its task is dropped,
/// because the runtime ends or in the middle of a panic.
struct Batch {
    keeper: Arc<Keeper>,
    holdings: Vec<Holding>,
    /// The number of holdings whose answer was handled, or is being handled.
    answered: usize,
    /// Whether the task was polled. One that was not is dropped only where there is no thread for it, and where that is so it may be so
    /// for long: due at once, it would be dropped at once, again and again.
    begun: bool,
}

impl Batch {
    async fn renew(mut self) {
        self.begun = true;
        let asked = self.keeper.environment().now();
        let answers = caught(async { Ok(self.keeper.engine().renew(&self.holdings).await) }).await;
        let mut answers = answers.unwrap_or_else(|error| vec![Err(error); self.holdings.len()]).into_iter();
        while let Some(Holding { grant, .. }) = self.holdings.get(self.answered) {
            // An engine that answers fewer has not renewed the rest, which would count as being
            // renewed for ever.
            let answer = answers.next().unwrap_or_else(|| Err(unanswered()));
            self.answered += 1;
            self.keeper.change(&grant.key, |entry, context, effects| {
                entry.renewed(context, grant, asked, answer, effects);
            });
        }
    }
}

fn unanswered() -> Error {
    Error::new(ErrorKind::Unexpected, "the engine has not answered this renewal")
}

impl Drop for Batch {
    fn drop(&mut self) {
        for holding in &self.holdings[self.answered..] {
            self.keeper.change(&holding.grant.key, |entry, context, effects| {
                entry.renewal_dropped(context, holding.grant.id, self.begun, effects);
            });
        }
    }
}

impl Renews for Keeper {
    fn renew_soon(self: Arc<Self>, key: &Key) {
        self.change(key, |entry, _, effects| {
            if let Phase::Granted(granted) = &mut entry.phase {
                granted.renew_soon(effects);
            }
        });
    }
}

impl Keeper {
    /// Handles a turn that has come. Returns what to renew, if anything.
    fn due(self: &Arc<Self>, due: &Due) -> Option<Holding> {
        self.change(&due.key, |entry, context, effects| entry.due(context, due, effects)).flatten()
    }

    fn is_current(&self, due: &Due) -> bool {
        self.shard(&due.key).lock().get(&due.key).is_some_and(|entry| entry.current(due).is_some())
    }
}

impl Entry {
    /// Returns the grant that this turn is for, unless the turn is stale.
    fn current(&self, due: &Due) -> Option<&Granted> {
        let Phase::Granted(granted) = &self.phase else { return None };
        (granted.grant.id == due.id && granted.turn == due.number).then_some(&**granted)
    }

    fn due(&mut self, context: &Context<'_>, due: &Due, effects: &mut Effects) -> Option<Holding> {
        self.current(due)?;
        // Both, whatever the first one finds.
        if self.end_long_holds(context, effects) | self.take_back_unread(context, effects) {
            self.advance(context, effects);
        }
        let Phase::Granted(granted) = &mut self.phase else { return None };
        if !granted.validity.is_valid_at(context.now()) {
            self.lose(context, LossReason::Lapsed, effects);
            return None;
        }
        if context.now() < granted.due {
            // It was the turn of a hold's end.
            granted.take_turn(effects);
            return None;
        }
        // Whatever becomes of the renewal, the end of the validity must be noticed.
        granted.schedule(granted.validity.until(), effects);
        if std::mem::replace(&mut granted.renewing, true) {
            return None;
        }
        granted.renew_again = false;
        let next = granted.next.as_deref().filter(|_| granted.announces).cloned();
        let holding = Holding { grant: granted.grant.clone(), next };
        Some(holding)
    }

    /// Handles a renewal that will never be answered.
    fn renewal_dropped(
        &mut self,
        context: &Context<'_>,
        id: AcquisitionId,
        begun: bool,
        effects: &mut Effects,
    ) {
        if let Phase::Granted(granted) = &mut self.phase
            && granted.grant.id == id
        {
            granted.renewing = false;
            let pause = if begun { Duration::ZERO } else { retry_pause(granted.grant.lease) };
            granted.schedule(context.now().plus(pause).min(granted.validity.until()), effects);
        }
    }

    /// Handles the answer to a renewal. `shown` is what it showed, `asked` the moment just before it began.
    fn renewed(
        &mut self,
        context: &Context<'_>,
        shown: &Grant,
        asked: Moment,
        answer: Result<Renewal>,
        effects: &mut Effects,
    ) {
        let Phase::Granted(granted) = &mut self.phase else { return };
        if granted.grant.id != shown.id {
            return;
        }
        granted.renewing = false;
        if context.watched {
            let outcome = match &answer {
                Ok(Renewal::Renewed { .. } | Renewal::Kept { .. }) => Renewed::Renewed,
                Ok(Renewal::Lost(reason)) => Renewed::Lost(*reason),
                Err(error) => Renewed::Failed(error.clone()),
            };
            effects.told.events.push(ClientEvent::Renewed { key: context.key.clone(), outcome });
        }
        match answer {
            Ok(Renewal::Renewed { sent, contended })
                if granted.validity.extend(sent, granted.grant.lease) =>
            {
                granted.confirm(shown.mode, asked, sent, contended, effects);
                self.advance(context, effects);
            }
            Ok(Renewal::Kept { sent }) if granted.validity.extend(sent, granted.grant.lease) => {
                granted.keep(asked, sent, effects);
                self.advance(context, effects);
            }
            Ok(Renewal::Renewed { .. } | Renewal::Kept { .. }) => {
                self.lose(context, LossReason::Lapsed, effects);
            }
            Ok(Renewal::Lost(reason)) => self.lose(context, reason, effects),
            Err(error) => {
                effects.told.logged.push(Logged::RenewalFailed(error.clone()));
                // Of what the callers that try have asked for, the outcome is known: they do not get the lock.
                let unavailable =
                    away(error.clone()).with_engine(context.engine.name()).with_key(context.key);
                granted.announces = false;
                granted.failure = Some(error);
                let retry = asked.plus(retry_pause(granted.grant.lease)).max(context.now());
                granted.schedule(retry.min(granted.validity.until()), effects);
                self.fail_those_who_try(&unavailable, effects);
            }
        }
    }
}
