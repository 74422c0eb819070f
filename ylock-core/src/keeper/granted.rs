//! What the client has from the store for one key: the grant, and what is known of the waiters elsewhere.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::effects::Effects;
use super::hold::Hold;
use super::renewal::{Turn, next_renewal, retry_pause};
use super::validity::Validity;
use super::waiter::Waiter;
use crate::engine::{Grant, Request};
use crate::environment::Moment;
use crate::error::{Error, Result};
use crate::mode::Mode;
use crate::options::{Fairness, Options};

/// How long a reader that waits behind a writer of another process relies on what the store said of that writer: it may have given up, or be dead, of which
/// this process is not told.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Granted {
    /// The grant as the store was last told to show it: its mode is `Read` from the moment a downgrade is
    /// decided, because from then on the store may let readers in.
    pub(super) grant: Grant,
    pub(super) validity: Arc<Validity>,
    /// The lease that the store was asked for. It may have given a shorter one, and would not give more to the next contender that asks.
    pub(super) asked_lease: Duration,
    pub(super) since: Moment,
    /// The number of times that the grant went from one local holder to the next: part of the token. At most one more than may be
    /// handed over, because a reader may join a writer that has become a reader.
    pub(super) hand_overs: u32,
    /// A writer has this number in its token. A later holder needs a larger one, also a reader that shares the lock with the writer once
    /// that has given up writing: otherwise a resource could not tell a write that is still on its way from a new one.
    pub(super) written: bool,
    /// The grant has had no holder yet.
    pub(super) fresh: bool,
    /// Other contenders went first in the store.
    pub(super) waited: bool,
    /// A local waiter that conflicts, as the store shall show it. In a box: most have none, and there is room for this with each key that is
    /// held.
    pub(super) next: Option<Box<Request>>,
    /// True if renewals name `next`. Not after a renewal that failed: what the store has against the announcement must not cost the
    /// holders their lock.
    pub(super) announces: bool,
    /// The moment at which the store last told whether a conflicting contender waits elsewhere.
    pub(super) looked: Moment,
    pub(super) renewing: bool,
    /// The error of the last renewal, if it failed.
    pub(super) failure: Option<Error>,
    /// Something changed during a renewal that the store must be told.
    pub(super) renew_again: bool,
    /// The moment at which this grant is renewed next.
    pub(super) due: Moment,
    /// The moment at which the first of the holds ends by its bound, if there is one, or one that
    /// was given back would have ended.
    pub(super) first_end: Option<Moment>,
    /// The number of the current entry in the schedule; the others are stale.
    pub(super) turn: u64,
    /// The callers that wait for the store to show a downgrade.
    pub(super) shown: Vec<oneshot::Sender<Result<()>>>,
    /// The hold that was the last one to end.
    pub(super) last_hold: Option<Arc<Hold>>,
}

impl Granted {
    /// Returns whether the lease that the store was asked for is as long as this waiter wants it: a shorter one could be lost in a pause
    /// that the waiter has asked to survive.
    pub(super) fn lasts_for(&self, waiter: &Waiter) -> bool {
        waiter.options.lease() <= self.asked_lease
    }

    /// Returns whether the next local waiter may have the exclusive grant without a trip to the store.
    pub(super) fn may_hand_over(&self, options: &Options, now: Moment) -> bool {
        let bound = options.hand_over();
        options.fairness() != Fairness::Strict
            && self.hand_overs < bound.count()
            && now.since(self.since) < bound.time()
    }

    /// Returns whether a local reader may share the grant. It must not overtake a writer that waits elsewhere, so what is known
    /// of such writers must be fresh; if it is not, the store is asked first.
    pub(super) fn may_join(&mut self, reader: &Waiter, now: Moment, effects: &mut Effects) -> bool {
        match reader.options.fairness() {
            Fairness::Unfair => return true,
            // Readers that waited together are one batch.
            Fairness::Fair if reader.arrived <= self.since => return true,
            Fairness::Fair | Fairness::Strict => {}
        }
        let fresh = self.has_looked_for(reader);
        if !fresh {
            self.renew_soon(effects);
        } else if self.grant.contended {
            // From now on, and not since the last look began: a slow store would be asked without a pause.
            self.look_again_at(now.plus(LOOK_AGAIN), effects);
        }
        fresh && !self.grant.contended
    }

    /// Returns whether what is known of the waiters elsewhere is as fresh as this reader must have it: learned since the reader came,
    /// or not longer before that than a process may keep a lock to itself.
    pub(super) fn has_looked_for(&self, reader: &Waiter) -> bool {
        let bound = reader.options.hand_over();
        let keeps = reader.options.fairness() != Fairness::Strict && bound.count() > 0;
        self.looked.plus(if keeps { bound.time() } else { Duration::ZERO }) >= reader.arrived
    }

    /// Handles a renewal that was confirmed. `mode` is the mode that it showed, `asked` the moment just before it began: what it says of
    /// other contenders is not older.
    pub(super) fn confirm(
        &mut self,
        mode: Mode,
        asked: Moment,
        sent: Moment,
        contended: bool,
        effects: &mut Effects,
    ) {
        self.looked = asked;
        self.grant.sent = sent;
        self.grant.contended = contended;
        self.failure = None;
        // The next renewal names `next` again.
        let announces = std::mem::replace(&mut self.announces, true);
        if self.renew_again || (!announces && self.next.is_some()) {
            self.schedule(Moment::ZERO, effects);
        } else {
            // A renewal may count from a moment that is long past, and be due again before it was answered.
            let soonest = asked.plus(retry_pause(self.grant.lease)).min(self.validity.until());
            self.schedule(next_renewal(&self.grant).max(soonest), effects);
        }
        // The mode is shown, whatever becomes of the announcement, and whichever other caller wants another look.
        if mode == self.grant.mode {
            self.shown.drain(..).for_each(|caller| effects.shown(caller, Ok(())));
        }
    }

    /// Handles a renewal that was confirmed, and that has not shown the new mode: it is asked for again soon.
    pub(super) fn keep(&mut self, asked: Moment, sent: Moment, effects: &mut Effects) {
        // Else a local reader would have it asked for again at once, each time, and a try would wait for a look that tells nothing new.
        self.looked = asked;
        self.grant.sent = sent;
        // For others it is a writer: no reader of theirs is inside, and none of this client may go before one that waits.
        self.grant.contended = true;
        self.failure = None;
        self.announces = true;
        self.schedule(asked.plus(retry_pause(self.grant.lease)), effects);
    }

    /// Has the store told at once, not only when the next renewal is due.
    pub(super) fn renew_soon(&mut self, effects: &mut Effects) {
        if self.renewing {
            self.renew_again = true;
        } else {
            self.schedule(Moment::ZERO, effects);
        }
    }

    /// Has the grant looked at when the process has kept it to itself for this long: nothing else may happen then, and readers elsewhere
    /// would wait for the next renewal.
    pub(super) fn look_again_after(&mut self, kept: Duration, effects: &mut Effects) {
        self.look_again_at(self.since.plus(kept), effects);
    }

    /// Has the grant looked at then, or when it is due already.
    fn look_again_at(&mut self, at: Moment, effects: &mut Effects) {
        if at < self.due {
            self.schedule(at, effects);
        }
    }

    /// Has the end of a new hold by its bound noticed when it comes, also if no renewal is due
    /// then.
    pub(super) fn look_at_end(&mut self, end: Moment, effects: &mut Effects) {
        if self.first_end.is_some_and(|first| first <= end) {
            return;
        }
        self.first_end = Some(end);
        if end < self.due {
            self.take_turn(effects);
        }
    }

    /// Makes `at` the one moment at which this grant is renewed next.
    pub(super) fn schedule(&mut self, at: Moment, effects: &mut Effects) {
        self.due = at;
        self.take_turn(effects);
    }

    /// Has the renewal look at this grant when it is due, or when a hold ends by its bound.
    pub(super) fn take_turn(&mut self, effects: &mut Effects) {
        self.turn += 1;
        let at = self.first_end.map_or(self.due, |end| self.due.min(end));
        effects.renew = Some(Turn { at, id: self.grant.id, number: self.turn });
    }
}
