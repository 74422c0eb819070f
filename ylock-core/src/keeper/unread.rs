//! Holds whose callers have not read that they were granted, because their runtime stands still. The
//! client renews the grant from elsewhere, so no other contender would get the lock while the
//! process lives. A call that holds several locks on its way reads each only when it has all of them,
//! and notes meanwhile that it is polled.

use std::time::Duration;

use super::effects::Effects;
use super::entry::{Context, Entry, Phase};
use super::holder::Holder;
use super::logged::Logged;
use crate::environment::Moment;
use crate::events::End;

impl Entry {
    /// Takes back the holds whose callers have not read the answer for a lease. Returns whether
    /// there was one: then other holders and waiters may have their turn. A caller that reads its
    /// answer after that acquires anew.
    pub(super) fn take_back_unread(&mut self, context: &Context<'_>, effects: &mut Effects) -> bool {
        let Phase::Granted(granted) = &self.phase else { return false };
        // Most holds are received long before their first renewal, and need no clock for it.
        if !self.holders.iter().any(|holder| holder.hold.is_unread()) {
            return false;
        }
        let (lease, now) = (granted.grant.lease, context.now());
        let mut ended = false;
        while let Some(holder) = self.take_unread(lease, now) {
            holder.hold.end();
            if context.watched {
                let ended = holder.ended(context, holder.mode(), End::Released);
                effects.told.events.push(ended);
            }
            effects.told.logged.push(Logged::unread(&holder));
            ended = true;
        }
        ended
    }

    fn take_unread(&mut self, lease: Duration, now: Moment) -> Option<Holder> {
        let place = self.holders.iter_mut().position(|holder| {
            if !holder.hold.is_unread() {
                return false;
            }
            let since = *holder.unread_since.get_or_insert(now);
            let (since, lease) = holder.attendance.as_ref().map_or((since, lease), |attendance| {
                (since.max(attendance.last()), lease.max(attendance.lease()))
            });
            now.since(since) >= lease && holder.hold.take_back()
        })?;
        let holder = self.holders.remove(place);
        if let Some(attendance) = &holder.attendance {
            attendance.take_from();
        }
        Some(holder)
    }
}
