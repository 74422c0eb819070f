//! The end of claims: given up by their callers, or by other tasks because the caller did not show for a lease that it runs, and removed.

use ylock_core::engine::AcquisitionId;
use ylock_core::environment::Moment;

use super::{Claims, GivenUp};

impl Claims {
    /// Gives up the claim that stands behind a grant, unless it is the one that stays.
    pub(crate) fn withdraw(&self, grant: AcquisitionId, stays: Option<AcquisitionId>) {
        let mut inner = self.inner.lock();
        if inner.claims.get(&grant).is_some_and(|claim| claim.next == stays) {
            return;
        }
        let is_left = inner.remove_behind(grant, None);
        drop(inner);
        self.ring(is_left);
    }

    /// Ends a claim of whose requests nothing came. A claim that is being removed is left to the task that does so: until then the same
    /// acquisition must not make another node, because all nodes that it has are removed.
    pub(crate) fn end_unknown(&self, id: AcquisitionId, number: u64) {
        let mut inner = self.inner.lock();
        let ends = inner.claims.get(&id).is_some_and(|claim| claim.is_open(number));
        let is_left = ends && inner.remove(id);
        drop(inner);
        self.ring(is_left);
    }

    /// Gives a claim up: nothing is sent for it from now on. The claim that stands behind it goes as well, unless it is to `stay`, on its
    /// own from that moment on. The cleaner removes the claim from `due` on, unless it is gone by then.
    pub(crate) fn give_up(
        &self,
        id: AcquisitionId,
        stay: Option<(AcquisitionId, Moment)>,
        due: Moment,
    ) -> Option<GivenUp> {
        let _order = self.order.lock();
        let mut inner = self.inner.lock();
        self.ring(inner.remove_behind(id, stay));
        inner.give_up(id, due)
    }

    /// Gives up the claims whose lease has ended because no caller showed that they are still wanted. The cleaner removes them.
    pub(crate) fn give_up_lapsed(&self, now: Moment) {
        let _order = self.order.lock();
        let mut inner = self.inner.lock();
        let lapsed = inner.lapsing().filter(|(_, claim)| claim.ends() <= now);
        let lapsed: Vec<_> = lapsed.map(|(id, _)| *id).collect();
        for id in &lapsed {
            inner.remove_behind(*id, None);
            inner.begin_removal(*id);
        }
        self.ring(!lapsed.is_empty());
    }

    /// Returns claims whose removal is due. The task that asks has the time until `next` to remove them.
    pub(crate) fn due(&self, now: Moment, most: usize, next: Moment) -> Vec<GivenUp> {
        let _order = self.order.lock();
        let mut inner = self.inner.lock();
        let due = inner.claims.iter().filter(|(_, claim)| claim.removal.is_some_and(|it| it.due <= now));
        let due: Vec<_> = due.map(|(id, _)| *id).take(most).collect();
        due.into_iter().filter_map(|id| inner.give_up(id, next)).collect()
    }

    /// Returns when the next removal is due.
    pub(crate) fn next_due(&self) -> Option<Moment> {
        self.inner.lock().claims.values().filter_map(|claim| claim.removal.map(|it| it.due)).min()
    }

    /// Notes that a removal was not finished, and is due at `due`.
    pub(crate) fn postpone(&self, id: AcquisitionId, number: u64, due: Moment) {
        self.with(id, |claim| {
            if let (true, Some(removal)) = (claim.number == number, &mut claim.removal) {
                removal.due = due;
            }
        });
        self.work.notify_one();
    }

    /// Returns whether this claim is still being removed.
    pub(crate) fn is_being_removed(&self, id: AcquisitionId, number: u64) -> bool {
        self.with(id, |claim| claim.number == number && !claim.is_wanted()).unwrap_or(false)
    }

    /// Ends a claim of which nothing is left in the store.
    pub(crate) fn end(&self, id: AcquisitionId, number: u64) {
        let mut inner = self.inner.lock();
        let ends = inner.claims.get(&id).is_some_and(|claim| claim.number == number);
        let is_left = ends && inner.remove(id);
        drop(inner);
        self.ring(is_left);
    }

    /// Tells the cleaner that there is something to remove.
    fn ring(&self, is_left: bool) {
        if is_left {
            self.work.notify_one();
        }
    }
}
