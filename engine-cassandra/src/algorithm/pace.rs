//! How long a waiter pauses between two looks.
//!
//! Cassandra tells nobody that a lock is free, so waiters look again. The first two in the queue look often, the others in
//! proportion to how long they still have to wait: then the looks per hand-over grow with the logarithm of the queue's
//! length, not with the length.
//!
//! A *turn* is the time from one holder's entry to the next one's. It contains the pause of whoever is first, so
//! nobody pauses for more than a part of it: otherwise a queue that was slow once would stay slow.

use std::time::Duration;

use ylock_core::engine::AcquisitionId;
use ylock_core::environment::{Environment, Moment};

use super::store::{Partition, State};

/// A look costs a trip; looking more often than this only makes the servers slower.
const SHORTEST: Duration = Duration::from_micros(500);
/// What nobody should wait longer than without looking.
const LONGEST: Duration = Duration::from_millis(500);
/// While nothing is known of turns, the first looks again after this part of the time for which the present holder has been
/// inside: a long hold costs few looks, and its end is found out late by a twelfth at most.
const PART_OF_HOLD: u32 = 12;

/// What one waiter has observed.
#[derive(Debug)]
pub(super) struct Pace {
    /// Who was inside at the last look, and since when that has been seen.
    inside: Option<(AcquisitionId, Moment)>,
    /// How many were before this waiter at its first look, and when that was.
    start: Option<(usize, Moment)>,
    /// How long a turn takes, as far as it is known.
    pub(super) turn: Option<Duration>,
}

impl Pace {
    /// A waiter that knows how long turns took before.
    pub(super) fn new(turn: Option<Duration>) -> Self {
        Self { inside: None, start: None, turn }
    }

    /// The pause before the next look, on average, for somebody with so many `before` it who have not entered.
    pub(super) fn pause(&mut self, before: usize, look: &Partition, now: Moment) -> Duration {
        let inside_for = self.observe(look, now);
        self.measure(before, now);
        let pause = match self.turn {
            // First: half of what is left of this turn, then more and more often.
            Some(turn) if before == 0 && turn > inside_for => (turn - inside_for) / 2,
            Some(_) if before == 0 => inside_for / PART_OF_HOLD,
            // Second: must find out that the first has entered, and claim, before that one leaves.
            Some(turn) => turn.saturating_mul(u32::try_from(before.max(2) - 1).unwrap_or(u32::MAX)) / 2,
            None => inside_for.saturating_mul(u32::try_from(before + 1).unwrap_or(u32::MAX)) / PART_OF_HOLD,
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

    /// Learns how long a turn takes from how far this waiter has moved.
    fn measure(&mut self, before: usize, now: Moment) {
        let (first, since) = *self.start.get_or_insert((before, now));
        if let Ok(moved @ 1..) = u32::try_from(first.saturating_sub(before)) {
            self.turn = Some(now.since(since) / moved);
        }
    }
}

/// How long to wait before the first look, for somebody who saw so many others a moment ago.
pub(super) fn first_pause(turn: Duration, others: usize) -> Duration {
    turn.saturating_mul(u32::try_from(others.saturating_sub(2)).unwrap_or(u32::MAX)).min(LONGEST) / 2
}

/// About as long as `pause`: a fifth more or less, so that waiters do not move in step.
pub(super) fn about(pause: Duration, environment: &dyn Environment) -> Duration {
    pause.mul_f64(0.6) + environment.jitter(pause.mul_f64(0.4))
}
