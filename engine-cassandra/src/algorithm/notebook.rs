//! Remembers which heartbeats of other clients' rows the looks at one key have shown, and since when. Pure: no store, no clock.
//!
//! A heartbeat is *dead* when two looks have shown it and the second one began a lease of its row after the first one had ended, by the
//! clock of the client that looks. Both ends matter: the heartbeat was sent before the first look ended, perhaps not before it began;
//! and a later heartbeat would be shown by a look that *begins* after it was acknowledged, not by one that only ends then. So a look that
//! took long counts for little.
//!
//! To forget an entry, or not to have it, only delays: the row is watched for another lease.

use std::collections::BTreeMap;
use std::time::Duration;

use ylock_core::environment::Moment;

use super::store::{Partition, SeenRow, Slot, State};

/// The time for which a row that is not shown any more is remembered, in its leases.
const KEPT_LEASES: u32 = 2;

/// What was seen of other clients' rows at one key; see the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Notebook {
    noted: BTreeMap<Slot, Noted>,
}

/// One row that takes part, as it was last shown.
#[derive(Clone, Copy, Debug)]
struct Noted {
    heartbeat: i64,
    /// The lease that the row shows: its client relies on that one, whatever lease the client that looks has.
    lease: Duration,
    /// The end of the first look that showed this heartbeat.
    first: Moment,
    /// The beginning of the last look that showed it.
    last: Moment,
    /// True if the last look that showed this client's row showed that it takes no part any more. Not forgotten at once: where only one replica has
    /// heard of that, looks show now the one and now the other, and the row would be watched anew without end.
    is_left: bool,
    /// True if a client that wants in has seen it, and has not got in since: it may come again.
    is_wanted: bool,
}

/// A row whose client does not rely on it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dead {
    /// The slot of the client.
    pub(crate) slot: Slot,
    /// The heartbeat that is dead; not a later one.
    pub(crate) heartbeat: i64,
    /// The lease that the row shows.
    pub(crate) lease: Duration,
    /// For how long it has been known to be dead.
    pub(crate) since: Duration,
}

impl Notebook {
    /// Notes what a look shows of other clients than `own`. The look `began` before it was sent, and `ended` after it was answered.
    ///
    /// All that is shown is noted, and what is seen by a client that `wants_in` is worth remembering when it has given up, as it may come again.
    pub(crate) fn note(
        &mut self,
        look: &Partition,
        own: Slot,
        (began, ended): (Moment, Moment),
        wants_in: bool,
    ) {
        for (slot, heartbeat) in look.rows.iter().filter_map(idle) {
            if let Some(noted) = self.noted.get_mut(&slot) {
                noted.is_left |= noted.heartbeat < heartbeat;
            }
        }
        for (slot, heartbeat, lease) in look.rows.iter().filter(|seen| seen.slot != own).filter_map(watched) {
            let new =
                Noted { heartbeat, lease, first: ended, last: began, is_left: false, is_wanted: wants_in };
            let noted = self.noted.entry(slot).or_insert(new);
            let is_wanted = noted.is_wanted | wants_in;
            if noted.heartbeat == heartbeat {
                (noted.last, noted.is_left) = (noted.last.max(began), false);
            } else if noted.heartbeat < heartbeat {
                *noted = new;
            }
            noted.is_wanted = is_wanted;
            // A smaller one is shown by replicas that are behind. It says nothing of the larger one, which may be shown again.
        }
        self.noted.retain(|_, noted| ended < noted.forgotten());
    }

    /// Returns for how long the row that a look shows has been dead; nothing if it is not.
    pub(crate) fn dead(&self, seen: &SeenRow) -> Option<Dead> {
        let noted = self.noted_of(seen)?;
        (noted.last >= noted.due()).then(|| Dead {
            slot: seen.slot,
            heartbeat: noted.heartbeat,
            lease: noted.lease,
            since: noted.last.since(noted.due()),
        })
    }

    /// Returns the moment from which on a look tells that the row is dead, if it still shows the same then.
    pub(crate) fn due(&self, seen: &SeenRow) -> Option<Moment> {
        self.noted_of(seen).map(Noted::due)
    }

    /// Forgets a row: should it be shown again, it is watched for another lease.
    pub(crate) fn forget(&mut self, slot: Slot) {
        self.noted.remove(&slot);
    }

    /// Returns how many rows are worth remembering.
    pub(crate) fn len(&self) -> usize {
        self.worthy().count()
    }

    /// Returns the moment from which on nothing of this is worth remembering.
    pub(crate) fn forgotten(&self) -> Moment {
        self.worthy().map(Noted::forgotten).max().unwrap_or(Moment::ZERO)
    }

    /// Notes that the own client is inside: nothing of what it has seen was in the way.
    pub(crate) fn enters(&mut self) {
        self.noted.values_mut().for_each(|noted| noted.is_wanted = false);
    }

    /// What a client has left needs no watching, nor what was never in the way: a lock that was held and given back leaves nothing that is worth
    /// remembering, and an inspection neither.
    fn worthy(&self) -> impl Iterator<Item = &Noted> {
        self.noted.values().filter(|noted| noted.is_wanted && !noted.is_left)
    }

    fn noted_of(&self, seen: &SeenRow) -> Option<&Noted> {
        self.noted
            .get(&seen.slot)
            .filter(|noted| seen.row.is_some() && seen.heartbeat == Some(noted.heartbeat))
    }
}

impl Noted {
    fn due(&self) -> Moment {
        self.first.plus(self.lease)
    }

    fn forgotten(&self) -> Moment {
        self.last.plus(self.lease.saturating_mul(KEPT_LEASES))
    }
}

/// Returns slot, heartbeat and lease of a row that may stand in the way.
fn watched(seen: &SeenRow) -> Option<(Slot, i64, Duration)> {
    let row = seen.row.as_ref().filter(|row| row.state != State::Idle)?;
    Some((seen.slot, seen.heartbeat?, row.lease))
}

/// Returns slot and heartbeat of a row that takes no part any more.
fn idle(seen: &SeenRow) -> Option<(Slot, i64)> {
    seen.row.as_ref().filter(|row| row.state == State::Idle)?;
    Some((seen.slot, seen.heartbeat?))
}

#[cfg(test)]
mod tests;
