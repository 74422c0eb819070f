//! The ways in which holders let go: giving back, giving up writing, and the end of a release.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::effects::Effects;
use super::entry::{Contender, Context, Entry, Phase, Releasing};
use super::hold::Hold;
use crate::contact::away;
use crate::engine::{AcquisitionId, LossReason, Release};
use crate::error::{Error, ErrorKind, Result};
use crate::events::{ClientEvent, End};
use crate::mode::Mode;
use crate::unlocked::Unlocked;

/// The caller that waits for the end of a release, if there is one.
pub(super) type Done = Option<oneshot::Sender<Result<Unlocked>>>;

impl Entry {
    /// Gives one acquisition back.
    pub(super) fn release(
        &mut self,
        context: &Context<'_>,
        hold: &Arc<Hold>,
        mode: Mode,
        done: Done,
        effects: &mut Effects,
    ) {
        let Some(held) = self.held_as(context, hold, effects) else {
            effects.done(done, &Ok(Unlocked::WasLost));
            return;
        };
        if self.count_down(context, hold, mode, effects) {
            self.advance(context, effects);
        }
        match &mut self.phase {
            Phase::Releasing(releasing) if releasing.id == held => releasing.done.extend(done),
            _ => effects.done(done, &Ok(Unlocked::Released)),
        }
    }

    /// Makes a writer a reader. `shown` is told when the store shows it.
    pub(super) fn downgrade(
        &mut self,
        context: &Context<'_>,
        hold: &Arc<Hold>,
        shown: oneshot::Sender<Result<()>>,
        effects: &mut Effects,
    ) -> Result<()> {
        if self.held_as(context, hold, effects).is_none() {
            return Err(Error::new(ErrorKind::Lost, "the lock was lost").with_key(context.key));
        }
        if let Some(holder) = self.holders.iter_mut().find(|holder| Arc::ptr_eq(&holder.hold, hold)) {
            holder.writes = holder.writes.saturating_sub(1);
            holder.reads += 1;
        }
        let writers = self.holders.iter().any(|holder| holder.writes > 0);
        if let Phase::Granted(granted) = &mut self.phase
            && !writers
        {
            granted.grant.mode = Mode::Read;
            granted.shown.push(shown);
            granted.renew_soon(effects);
        } else {
            effects.shown(shown, Ok(()));
        }
        self.advance(context, effects);
        Ok(())
    }

    /// Returns the acquisition of the present grant, if this hold is one of it and it is valid. A
    /// grant that has lapsed is lost here, and a hold that has lasted too long.
    fn held_as(
        &mut self,
        context: &Context<'_>,
        hold: &Arc<Hold>,
        effects: &mut Effects,
    ) -> Option<AcquisitionId> {
        if self.end_long_holds(context, effects) {
            self.advance(context, effects);
        }
        let Phase::Granted(granted) = &self.phase else { return None };
        let id = granted.grant.id;
        if !self.holders.iter().any(|holder| Arc::ptr_eq(&holder.hold, hold)) {
            return None;
        }
        if !granted.validity.is_valid_at(context.now()) {
            self.lose(context, LossReason::Lapsed, effects);
            return None;
        }
        Some(id)
    }

    /// Counts one acquisition less. Returns whether that changes anything for other holders or waiters.
    fn count_down(
        &mut self,
        context: &Context<'_>,
        hold: &Arc<Hold>,
        mode: Mode,
        effects: &mut Effects,
    ) -> bool {
        let Some(position) = self.holders.iter().position(|holder| Arc::ptr_eq(&holder.hold, hold)) else {
            return false;
        };
        let holder = &mut self.holders[position];
        let before = holder.mode();
        match mode {
            Mode::Write => holder.writes = holder.writes.saturating_sub(1),
            Mode::Read => holder.reads = holder.reads.saturating_sub(1),
        }
        let over = holder.writes == 0 && holder.reads == 0;
        let changes = over || holder.mode() != before;
        if over {
            hold.end();
            let holder = self.holders.remove(position);
            if context.watched {
                let ended = holder.ended(context, before, End::Released);
                effects.told.events.push(ended);
            }
            if let Phase::Granted(granted) = &mut self.phase {
                granted.last_hold = Some(holder.hold);
            }
        }
        changes
    }

    /// Handles the store's answer to a release.
    pub(super) fn released(
        &mut self,
        context: &Context<'_>,
        id: AcquisitionId,
        answer: Release,
        effects: &mut Effects,
    ) {
        let Some(releasing) = self.take_releasing(id) else { return };
        releasing.tell(context, true, effects);
        // If the answer to an earlier attempt got lost, that attempt may be the reason why it is gone now. The grant was
        // valid when it was given back, and may have lapsed while its release waited for many others.
        let may_have_lapsed = releasing.throttled && context.now() >= releasing.valid_until;
        let surely_lost = answer == Release::WasGone && releasing.attempts == 0 && !may_have_lapsed;
        let result = if surely_lost { Unlocked::WasLost } else { releasing.result };
        effects.done(releasing.done, &Ok(result));
        if let Some(request) = releasing.next {
            self.phase = Phase::Contending(Contender::new(*request));
        }
        self.advance(context, effects);
    }

    /// Fails the callers that wait for a release. It is still to be done.
    pub(super) fn fail_release(&mut self, error: &Error, effects: &mut Effects) {
        if let Phase::Releasing(releasing) = &mut self.phase {
            effects.done(std::mem::take(&mut releasing.done), &Err(error.clone()));
        }
    }

    /// Gives up a release that was not confirmed for a whole lease: the store frees the lock by itself. The request that the store may have
    /// let in behind it is undone.
    pub(super) fn gave_up(
        &mut self,
        context: &Context<'_>,
        id: AcquisitionId,
        error: &Error,
        effects: &mut Effects,
    ) {
        let Some(releasing) = self.take_releasing(id) else { return };
        releasing.tell(context, false, effects);
        effects.done(releasing.done, &Err(error.clone()));
        let unavailable = away(error.clone()).with_key(context.key);
        self.fail_those_who_waited(context, releasing.lease, &unavailable, effects);
        match releasing.next {
            Some(next) => {
                let id = next.id;
                self.phase = Phase::Contending(Contender::new(*next));
                self.begin_release(context, id, Unlocked::Released, None, effects);
            }
            None => self.advance(context, effects),
        }
    }

    /// Ends a release. The entry is `Absent` then.
    fn take_releasing(&mut self, id: AcquisitionId) -> Option<Box<Releasing>> {
        match std::mem::take(&mut self.phase) {
            Phase::Releasing(releasing) if releasing.id == id => Some(releasing),
            other => {
                self.phase = other;
                None
            }
        }
    }
}

impl Releasing {
    fn tell(&self, context: &Context<'_>, confirmed: bool, effects: &mut Effects) {
        if context.watched {
            effects.told.events.push(ClientEvent::ReleaseEnded {
                key: context.key.clone(),
                held: self.held,
                took: context.now().since(self.since),
                failures: self.attempts,
                confirmed,
            });
        }
    }
}
