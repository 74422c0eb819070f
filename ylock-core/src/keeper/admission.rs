//! Which local waiters enter under the grant that the client has, and what the store must be told of that.

use std::sync::Arc;

use super::bound::Bound;
use super::effects::Effects;
use super::entry::{Context, Entry, Phase};
use super::hold::{Admission, Hold};
use super::holder::Holder;
use super::waiter::{Waiter, first_ticket, request_for};
use crate::engine::Request;
use crate::events::ClientEvent;
use crate::mode::Mode;
use crate::owner::Owner;
use crate::token::Token;
use crate::unlocked::Unlocked;

impl Entry {
    pub(super) fn advance_granted(&mut self, context: &Context<'_>, effects: &mut Effects) {
        loop {
            if self.admits_first(context, effects) {
                self.admit_first(context, effects);
            } else if self.refuses_first() {
                effects.not_free(self.queue.pop_front());
            } else {
                break;
            }
        }
        if !self.holders.is_empty() {
            self.show(context, effects);
            return;
        }
        let next = self.request_after(context);
        let Phase::Granted(granted) = &self.phase else { return };
        granted.validity.finish();
        let id = granted.grant.id;
        self.begin_release(context, id, Unlocked::Released, next, effects);
    }

    /// Returns whether the first waiter may enter under the grant that this process has.
    fn admits_first(&mut self, context: &Context<'_>, effects: &mut Effects) -> bool {
        let shared = self.is_shared();
        let Phase::Granted(granted) = &mut self.phase else { return false };
        let Some(first) = self.queue.front() else { return false };
        if first.mode == Mode::Write && granted.grant.mode == Mode::Read {
            return false;
        }
        if !granted.lasts_for(first) {
            return false;
        }
        if granted.fresh {
            return true;
        }
        if !self.holders.is_empty() && (first.mode == Mode::Write || !shared) {
            return false;
        }
        match granted.grant.mode {
            Mode::Write => granted.may_hand_over(&first.options, context.now()),
            Mode::Read => granted.may_join(first, context.now(), effects),
        }
    }

    /// Returns whether the first waiter, which may not enter, only tries and has nothing to wait for: there are holders, and no
    /// look at the waiters elsewhere can let it in. One that stays in the queue reads, and so do the holders: [`Entry::may_try`] keeps out
    /// the others.
    fn refuses_first(&self) -> bool {
        let (Phase::Granted(granted), Some(first)) = (&self.phase, self.queue.front()) else { return false };
        let joins = granted.grant.mode == Mode::Read && granted.lasts_for(first);
        let waits_for_a_look = joins && !granted.has_looked_for(first);
        first.tries && !self.holders.is_empty() && !waits_for_a_look
    }

    /// Makes the first waiter a holder, and with it all other waiters of the same owner.
    fn admit_first(&mut self, context: &Context<'_>, effects: &mut Effects) {
        let Phase::Granted(granted) = &mut self.phase else { return };
        let Some(first) = self.queue.pop_front() else { return };
        let is_handed_over = self.holders.is_empty() && granted.grant.mode == Mode::Write;
        if !granted.fresh && (is_handed_over || granted.written) {
            granted.hand_overs += 1;
        }
        if is_handed_over && !granted.fresh && context.watched {
            effects.told.events.push(ClientEvent::HandedOver { key: context.key.clone() });
        }
        let since = if granted.fresh || !context.watched { granted.since } else { context.now() };
        let waited = effects.origin.arriving != Some(first.number) && (first.met_others || granted.waited);
        granted.fresh = false;
        granted.written = first.mode == Mode::Write;
        let token = granted.grant.token.map(|token| Token::local(token, granted.hand_overs));
        // Its own: another task had it until now, or shares it.
        let bound = first.options.max_hold().map(|longest| Bound::new(context.now(), longest));
        if let Some(bound) = &bound {
            granted.look_at_end(bound.end(), effects);
        }
        let hold = Arc::new(Hold::new(Arc::clone(&granted.validity), first.owner, token, bound));
        let (writes, reads) = if first.mode == Mode::Write { (1, 0) } else { (0, 1) };
        let caller = first.caller;
        self.holders.push(Holder {
            hold: Arc::clone(&hold),
            writes,
            reads,
            since,
            caller,
            unread_since: None,
            attendance: first.attendance.clone(),
            again: None,
        });
        let (owner, named) = (first.owner, first.named);
        effects.grant(first, hold, Admission::New { waited });
        if named {
            self.admit_same_owner(owner, effects);
        }
    }

    /// Admits all waiters of an owner that has just entered. One owner may wait in several places at once: a waiter that
    /// is left in the queue would wait for a holder that may be waiting for this waiter.
    fn admit_same_owner(&mut self, owner: Owner, effects: &mut Effects) {
        while let Some(position) = self.queue.iter().position(|waiter| waiter.owner == owner) {
            let Some(waiter) = self.queue.remove(position) else { return };
            let Some(holder) = self.holders.iter_mut().find(|holder| holder.hold.owner == owner) else {
                return;
            };
            match holder.reenter(waiter.mode, waiter.caller.site(), &holder.hold.validity.key.clone()) {
                Ok(()) => effects.grant(waiter, Arc::clone(&holder.hold), Admission::Reentered),
                Err(error) => effects.fail(waiter, error),
            }
        }
    }

    /// Makes the store show what has changed: that no holder writes any more, or that a local writer waits.
    fn show(&mut self, context: &Context<'_>, effects: &mut Effects) {
        let reads_only = self.is_shared();
        let Phase::Granted(granted) = &mut self.phase else { return };
        let mut changed = false;
        if granted.grant.mode == Mode::Write && reads_only {
            // With a local writer waiting the exclusive grant is kept for it, as long as it may still be handed over. It is a writer: a
            // reader of which this can be said has entered.
            let may_have_it = |first: &&Waiter| {
                granted.lasts_for(first) && granted.may_hand_over(&first.options, context.now())
            };
            match self.queue.front().filter(may_have_it) {
                Some(first) => granted.look_again_after(first.options.hand_over().time(), effects),
                None => {
                    granted.grant.mode = Mode::Read;
                    changed = true;
                }
            }
        }
        let first_writer = self.queue.front().filter(|first| first.mode == Mode::Write && !first.tries);
        let announce = first_writer.filter(|_| granted.grant.mode == Mode::Read);
        let is_announced = match (announce, &granted.next) {
            (Some(first), Some(next)) => first.stands_at(next),
            (announce, next) => announce.is_some() == next.is_some(),
        };
        if !is_announced {
            granted.next = announce
                .map(|first| Box::new(request_for(context, first, Some(first_ticket(context, first)))));
            changed = true;
        }
        if changed {
            granted.renew_soon(effects);
        }
    }

    /// Returns the request that follows when the grant is given back: joining again costs no trip of its own.
    pub(super) fn request_after(&mut self, context: &Context<'_>) -> Option<Box<Request>> {
        let Phase::Granted(granted) = &mut self.phase else { return None };
        let first = self.queue.front().filter(|first| !first.tries)?;
        match granted.next.take() {
            Some(announced)
                if announced.mode == first.mode
                    && announced.lease >= first.options.lease()
                    && first.stands_at(&announced) =>
            {
                Some(announced)
            }
            _ => Some(Box::new(request_for(context, first, None))),
        }
    }
}
