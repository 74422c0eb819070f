//! The end of holds that last for longer than they may. The grant stays for its other holders, and
//! is given back after the last one.

use std::sync::Arc;

use super::effects::Effects;
use super::entry::{Context, Entry, Phase};
use super::holder::Holder;
use super::logged::Logged;
use crate::engine::LossReason;
use crate::environment::Moment;
use crate::events::End;

impl Entry {
    /// Ends the holds that have lasted for as long as they may. Returns whether there was one: then
    /// other holders and waiters may have their turn.
    pub(super) fn end_long_holds(&mut self, context: &Context<'_>, effects: &mut Effects) -> bool {
        let Phase::Granted(granted) = &self.phase else { return false };
        // Most holds have no bound, and need no clock for it.
        if granted.first_end.is_none_or(|end| context.now() < end) {
            return false;
        }
        let mut ended = false;
        while let Some(holder) = self.take_long_hold(context.now()) {
            self.end_long_hold(context, holder, effects);
            ended = true;
        }
        let first_end = self.holders.iter().filter_map(Holder::end).min();
        if let Phase::Granted(granted) = &mut self.phase {
            granted.first_end = first_end;
        }
        ended
    }

    fn take_long_hold(&mut self, now: Moment) -> Option<Holder> {
        let place = self.holders.iter().position(|holder| holder.hold.is_too_long(now))?;
        Some(self.holders.remove(place))
    }

    /// Tells all of the end of this hold. Not marked as given back: it was lost.
    fn end_long_hold(&mut self, context: &Context<'_>, holder: Holder, effects: &mut Effects) {
        if context.watched {
            let ended = holder.ended(context, holder.mode(), End::Lost(LossReason::HeldTooLong));
            effects.told.events.push(ended);
        }
        effects.told.logged.push(Logged::held_too_long(&holder, context.now()));
        // The signal is that of the grant: the other holders look, and wait on.
        effects.lost.push(Arc::clone(&holder.hold.validity));
        if let Phase::Granted(granted) = &mut self.phase {
            granted.last_hold = Some(holder.hold);
        }
    }
}
