//! The ways into the queue, and out of it.

use std::time::Duration;

use super::{Contender, Now, Queue};
use crate::engine::{AcquisitionId, Holding, LossReason, Release, Renewal, Request, Ticket};
use crate::mode::Mode;

impl<T: Default> Queue<T> {
    /// Puts a request into the queue, at its own ticket or else at the one that `take` returns. One that is there keeps its place, or the
    /// grant that it has, for another lease, and stands on its own from now on. Returns what is kept with it; `None` if it was
    /// [undone](Self::undo): then nothing changes.
    pub fn join(&mut self, request: &Request, take: impl FnOnce() -> Ticket, now: Now) -> Option<&mut T> {
        self.put(request, take, request.lease, None, now)
    }

    /// Renews a grant for another lease, and shows what its holder wants to be shown from now on. The waiter behind it, if any, is announced
    /// for as long as the grant lives.
    pub fn renew(&mut self, holding: &Holding, take: impl FnOnce() -> Ticket, now: Now) -> Renewal {
        let Holding { grant, next } = holding;
        let own = self.contenders.iter_mut().find(|contender| contender.id == grant.id && contender.holds());
        let Some(own) = own else { return Renewal::Lost(LossReason::Gone) };
        if own.revoked {
            // It stays until its holder has heard of it and releases it: before that no contender that conflicts may get in.
            return Renewal::Lost(LossReason::Revoked);
        }
        own.expires = now.moment.plus(grant.lease);
        // Never from reader to writer: other readers may be inside.
        if grant.mode == Mode::Read && own.mode == Mode::Write {
            own.mode = Mode::Read;
            self.freed = true;
        }
        let next_id = next.as_ref().map(|next| next.id);
        self.remove(|other| other.behind == Some(grant.id) && Some(other.id) != next_id);
        if let Some(next) = next {
            self.announce(next, take, grant.id, grant.lease, now);
        }
        Renewal::Renewed { sent: now.moment, contended: self.is_contended(grant.id, next_id) }
    }

    /// Removes an acquisition, whether it holds or waits, and the waiter that was announced behind it. `next` joins the queue at the same
    /// time, or stays in it on its own.
    pub fn release(
        &mut self,
        id: AcquisitionId,
        next: Option<&Request>,
        take: impl FnOnce() -> Ticket,
        now: Now,
    ) -> Release {
        // A copy of this release may come when `next` is inside already: its lease counts from when it asked.
        if let Some(next) = next.filter(|next| !self.find(next.id).is_some_and(Contender::holds)) {
            self.join(next, take, now);
        }
        if self.leave(id) { Release::Released } else { Release::WasGone }
    }

    /// Puts a waiter behind the grant of its own client, or keeps it there. One that has come to stand on its own does so.
    fn announce(
        &mut self,
        next: &Request,
        take: impl FnOnce() -> Ticket,
        grant: AcquisitionId,
        lease: Duration,
        now: Now,
    ) {
        if self.find(next.id).is_none_or(|next| next.behind == Some(grant)) {
            self.put(next, take, lease, Some(grant), now);
        }
    }

    fn put(
        &mut self,
        request: &Request,
        take: impl FnOnce() -> Ticket,
        lease: Duration,
        behind: Option<AcquisitionId>,
        now: Now,
    ) -> Option<&mut T> {
        if self.is_undone(request.id) {
            return None;
        }
        let place = self.place(request.id).unwrap_or_else(|| {
            let contender = Contender::new(request, request.ticket.unwrap_or_else(take), now.wall_micros);
            let place = self.contenders.partition_point(|other| other.ticket <= contender.ticket);
            self.contenders.insert(place, contender);
            place
        });
        let own = &mut self.contenders[place];
        (own.lease, own.expires, own.behind) = (request.lease, now.moment.plus(lease), behind);
        Some(&mut own.kept)
    }
}
