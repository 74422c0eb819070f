//! How long a waiter pauses between two looks.
//!
//! Cassandra tells nobody that a lock is free, so waiters look again. The first in the queue looks often, the others in
//! proportion to how long they still have to wait: then the looks per hand-over grow with the logarithm of the queue's
//! length, not with the length.

use std::time::Duration;

use ylock_core::engine::AcquisitionId;
use ylock_core::environment::Moment;

use super::store::{Partition, State};

/// A look costs a trip; looking more often than this only makes the servers slower.
const SHORTEST: Duration = Duration::from_micros(500);
/// What nobody should wait longer than without looking.
const LONGEST: Duration = Duration::from_millis(500);
/// The first in the queue looks again after this part of the time for which the present holder has been inside: a long hold costs
/// few looks, and is found out late by a twelfth at most, a sixteenth on average.
const PART_OF_HOLD: u32 = 12;

/// What one waiter has observed.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Who was inside at the last look, and since when that has been seen.
    inside: Option<(AcquisitionId, Moment)>,
    /// Where this waiter began, and when.
    start: Option<(usize, Moment)>,
}

impl Pace {
    /// The pause before the next look, on average, for somebody with so many `before` it who have not entered.
    pub(super) fn pause(&mut self, before: usize, held: bool, look: &Partition, now: Moment) -> Duration {
        let inside_for = self.observe(look, now);
        let (first, since) = *self.start.get_or_insert((before, now));
        let pause = if before == 0 || (before == 1 && !held) {
            // One before me and nobody says that it is inside: the one before me is, or is about to be.
            inside_for / PART_OF_HOLD
        } else {
            self.until_first(before, first, now.since(since), inside_for)
        };
        pause.clamp(SHORTEST, LONGEST)
    }

    /// For how long the present holder has been seen inside. One that claimed first and says no more is taken for it.
    fn observe(&mut self, look: &Partition, now: Moment) -> Duration {
        let rows = || look.rows.iter().filter_map(|seen| seen.row.as_ref());
        let held = rows().find(|row| row.state == State::Held);
        let claimed = rows().filter(|row| row.state == State::Claimed).min_by_key(|row| row.ticket);
        let inside = held.or(claimed).map(|row| row.acquisition);
        match (inside, self.inside) {
            (Some(id), Some((seen, since))) if id == seen => now.since(since),
            (Some(id), _) => {
                self.inside = Some((id, now));
                Duration::ZERO
            }
            (None, _) => Duration::ZERO,
        }
    }

    /// A part of the time after which it is probably my turn, by the speed at which the queue has moved so far. It
    /// is better to look once more than to be late: then everybody waits.
    fn until_first(&self, before: usize, first: usize, waited: Duration, inside_for: Duration) -> Duration {
        let moved = u32::try_from(first.saturating_sub(before)).unwrap_or(u32::MAX);
        let before = u32::try_from(before).unwrap_or(u32::MAX);
        let turn = if moved == 0 { inside_for } else { waited / moved };
        turn.saturating_mul(before) / 2
    }
}
