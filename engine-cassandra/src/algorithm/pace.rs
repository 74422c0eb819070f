//! Decides how long a waiter pauses between two looks.
//!
//! Cassandra does not tell waiters that a lock is free, so they look again. Two of them look often: the first in the queue, which waits
//! for the holder to leave, and the second, which must claim as soon as the first has entered. The others look in proportion to how
//! long they still have to wait: then the looks per hand-over grow with the logarithm of the queue's length, not with the length.
//!
//! It matters what is learnt, and from what: a pause must not be derived from how fast the queue moves, because that contains the
//! pauses. A queue that was slow once would stay slow. So pauses are derived from how long holders are inside and how fast the store
//! answers, and both are taken for less rather than more.

use std::time::Duration;

use ylock_core::engine::AcquisitionId;
use ylock_core::environment::{Environment, Moment};

use super::store::{Partition, State};

/// The shortest pause: less than this no timer can do, and a look takes as long.
const SHORTEST: Duration = Duration::from_millis(1);
/// The longest pause, before it is spread: no waiter should go longer without looking.
const LONGEST: Duration = Duration::from_millis(500);
/// The part of the time for which the holder has been inside after which the first two waiters look again: a long hold costs few looks,
/// and its end is found out late by a twelfth at most.
const PART_OF_HOLD: u32 = 12;
/// The time that the second waiter adds to a pause: the first must find out first, and has to be let in.
const BEHIND_THE_FIRST: Duration = Duration::from_millis(2);
/// The duration of a hand-over, in looks: a release, the look that finds it, and half a pause.
const LOOKS_PER_HAND_OVER: u32 = 3;

/// The looks in which a client that was told enters and says so, and twice that.
const LOOKS_TO_ENTER: u32 = 8;

/// The estimates that were learnt at this lock so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Estimates {
    /// The time for which holders are inside, rather less than more.
    hold: Duration,
    /// The time that a look takes.
    look: Duration,
}

/// The observations of one waiter.
#[derive(Debug)]
pub(super) struct Pace {
    pub(super) estimates: Estimates,
    last: Option<Observation>,
}

/// The acquisition that was inside at the last look, if any, and since and until when that has been seen.
#[derive(Clone, Copy, Debug)]
struct Observation {
    inside: Option<(AcquisitionId, State)>,
    since: Moment,
    until: Moment,
}

impl Pace {
    /// Creates the pace of a waiter, which knows what other waiters of its client have learnt.
    pub(super) fn new(estimates: Estimates) -> Self {
        Self { estimates, last: None }
    }

    /// Notes that a look took this long.
    pub(super) fn looked_for(&mut self, time: Duration) {
        self.estimates.look = average(self.estimates.look, time);
    }

    /// Returns the pause before the next look, for a waiter with so many `before` it that have not entered.
    pub(super) fn pause(&mut self, before: usize, look: &Partition, now: Moment) -> Duration {
        let observation = self.observe(look, now, before);
        let seen_for = observation.until.since(observation.since);
        let left = (self.expected_hold(observation) * 7 / 8).saturating_sub(seen_for);
        let next_look = left.max(seen_for / PART_OF_HOLD);
        match before {
            0 => next_look.min(LONGEST),
            1 => (next_look + BEHIND_THE_FIRST).min(LONGEST),
            // That no waiter enters may be due to such a pause, so it must not make the next one longer.
            _ => self
                .estimates
                .pause_behind(before, if observation.is_held() { seen_for } else { Duration::ZERO }),
        }
    }

    /// Notes that a hint has told of a turn: what was inside has been so until now, whether a look has shown it or not.
    pub(super) fn told_of_a_turn(&mut self, now: Moment) {
        if let Some(last) = self.last.as_mut().filter(|last| last.is_held()) {
            last.until = now;
        }
    }

    /// Notes that the acquisition that was inside at the last look is gone: it is the waiter's turn.
    pub(super) fn enters(&mut self) {
        if let Some(gone) = self.last.take() {
            self.learn(gone);
        }
    }

    /// Learns from a hold that has ended: fast where holds become shorter, slowly where they become longer. Looking too late costs all
    /// waiters time, too often only requests.
    fn learn(&mut self, gone: Observation) {
        if gone.is_held() {
            let (before, seen) = (self.estimates.hold, gone.until.since(gone.since));
            self.estimates.hold = if seen < before { (before + seen) / 2 } else { average(before, seen) };
        }
    }

    /// Returns how long the hold is expected to last. A client that has claimed and says no more may have been inside for long, or be
    /// about to enter: which of the two is unknown, so nothing is expected of it.
    fn expected_hold(&self, observation: Observation) -> Duration {
        if observation.is_held() { self.estimates.hold } else { Duration::ZERO }
    }

    /// Returns what is inside now. If no row says that it is held, the first claim is taken for it.
    fn observe(&mut self, look: &Partition, now: Moment, before: usize) -> Observation {
        let rows = || look.rows.iter().filter_map(|seen| seen.row.as_ref());
        let held = rows().find(|row| row.state == State::Held);
        let claimed = rows().filter(|row| row.state == State::Claimed).min_by_key(|row| row.ticket);
        let inside = held.or(claimed).map(|row| (row.acquisition, row.state));
        let since = match self.last {
            Some(last) if last.inside == inside => last.since,
            Some(gone) => {
                // From far behind, the hold was not seen often enough to tell.
                if before <= 1 {
                    self.learn(gone);
                }
                now
            }
            None => now,
        };
        *self.last.insert(Observation { inside, since, until: now })
    }
}

impl Observation {
    fn is_held(&self) -> bool {
        self.inside.is_some_and(|(_, state)| state == State::Held)
    }
}

impl Estimates {
    pub(super) fn look(&self) -> Duration {
        self.look
    }

    /// Returns the pause of a waiter that is far behind: until it should be second, and rather less.
    fn pause_behind(&self, before: usize, seen_for: Duration) -> Duration {
        let turn = self.turn(seen_for);
        let turns = u32::try_from(before.saturating_sub(1)).unwrap_or(u32::MAX);
        (turn.saturating_mul(turns) * 9 / 10).clamp(SHORTEST, LONGEST)
    }

    fn turn(&self, seen_for: Duration) -> Duration {
        self.hold.max(seen_for) + self.look * LOOKS_PER_HAND_OVER
    }

    /// Returns the same for a newcomer that those before it will tell. Its turn to claim comes when the last of them enters; a look before that
    /// shows nothing that it could act on.
    pub(super) fn first_pause_until_told(&self, others: usize) -> Duration {
        let turns = u32::try_from(others.saturating_sub(1)).unwrap_or(u32::MAX);
        let pause =
            self.turn(Duration::ZERO).saturating_mul(turns).saturating_mul(2) + self.look * LOOKS_TO_ENTER;
        pause.min(LONGEST * 3)
    }

    /// Returns how long to wait before the first look, for a newcomer whose client saw so many others a moment ago.
    pub(super) fn first_pause(&self, others: usize) -> Duration {
        // One of them was the holder.
        if others > 2 { self.pause_behind(others - 1, Duration::ZERO) } else { Duration::ZERO }
    }
}

fn average(before: Duration, seen: Duration) -> Duration {
    (before * 3 + seen) / 4
}

/// Returns a pause about as long as `pause`: a little less on average, so that waiters do not move in step. Zero for what no timer can
/// do.
pub(super) fn about(pause: Duration, environment: &dyn Environment) -> Duration {
    if pause < SHORTEST {
        return Duration::ZERO;
    }
    pause.mul_f64(0.8) + environment.jitter(pause.mul_f64(0.2))
}

#[cfg(test)]
mod tests;
