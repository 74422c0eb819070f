//! Decides how long a waiter pauses between two looks.
//!
//! Cassandra does not tell waiters that a lock is free, so they look again. Two of them look often: the first in the queue, which waits
//! for the holder to leave, and the second, which must claim as soon as the first has entered or left. The others sleep for most of the
//! time that they still have to wait: then the looks of one wait grow with the logarithm of the queue's length.
//!
//! A waiter that sleeps past its turn keeps all those behind it waiting, so pauses are taken for less rather than more. How fast the queue
//! moves contains the pauses of waiters: were pauses derived from that alone, a queue that was slow once would stay slow. So they are derived
//! from how long holders are inside and how fast the store answers, and what was seen of the queue counts up to twice that.

use std::time::Duration;

use ylock_core::engine::AcquisitionId;
use ylock_core::environment::{Environment, Moment};

use super::store::{Partition, State};

/// The shortest pause: less than this no timer can do, and a look takes as long.
const SHORTEST: Duration = Duration::from_millis(1);
/// The longest pause of the first two, before it is spread.
const LONGEST: Duration = Duration::from_millis(500);
/// The part of the time for which the holder has been inside after which the first two waiters look again: a long hold costs few looks.
const PART_OF_HOLD: u32 = 12;
/// The part of what holds have lasted after which they look again where the holder may leave at any moment.
const PART_OF_UNKNOWN_HOLD: u32 = 16;
/// The time that the second waiter adds to a pause at least, and the part of a hold: the first must find out first, and has to be let in; and
/// the second need not know of that before the first leaves again.
const BEHIND_THE_FIRST: Duration = Duration::from_millis(2);
const PART_BEHIND_THE_FIRST: u32 = 6;
/// The part of the expected time that a waiter further behind sleeps before it looks how far the queue has come.
const PART_OF_TURNS: (u32, u32) = (4, 5);
/// The longest pause grows by [`LONGEST`] with so many places: one that is overtaken, or whose turns become shorter, comes so much too late.
const PLACES_OF_LONGEST: usize = 4;
/// The time for which a waiter goes without reading the last tokens grows by [`LONGEST`] with so many places, up to [`LONGEST_UNREAD`]: then the
/// reads of all waiters grow little with their number.
const PLACES_OF_UNREAD: usize = 8;
const LONGEST_UNREAD: Duration = Duration::from_millis(2_500);
/// How slowly it is learnt that requests take longer: one that was slow for once, as at a common start, makes no waiter late.
const SLOWLY: u32 = 8;
/// The looks in which the first in line shows that it has entered, if it stays inside.
const LOOKS_TO_SHOW: u32 = 4;
/// Three times the looks in which a client that was told enters and says so: what is learnt of the time of a look is rather less than more.
const LOOKS_TO_ENTER: u32 = 12;

/// The estimates that were learnt at this lock so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Estimates {
    /// The time for which holders are inside, rather less than more.
    hold: Duration,
    /// The time that a look takes, rather less than more.
    look: Duration,
    /// The time that a write takes, rather less than more.
    write: Duration,
}

/// The observations of one waiter.
#[derive(Debug)]
pub(super) struct Pace {
    pub(super) estimates: Estimates,
    last: Option<Observation>,
    /// How many were before the waiter at the last look, and when that was.
    place: Option<(usize, Moment)>,
    /// What a turn took, by the last progress that was seen, or by the time since then if that is longer.
    seen_turn: Option<Duration>,
}

/// The acquisition that was inside at the last look, if any, and since and until when that has been seen.
#[derive(Clone, Copy, Debug)]
struct Observation {
    inside: Option<(AcquisitionId, State)>,
    since: Moment,
    until: Moment,
    /// The end of the last look before it was inside. Without one nothing is known of when it began.
    after: Option<Moment>,
}

impl Pace {
    /// Creates the pace of a waiter, which knows what other waiters of its client have learnt.
    pub(super) fn new(estimates: Estimates) -> Self {
        Self { estimates, last: None, place: None, seen_turn: None }
    }

    /// Notes that a look took this long.
    pub(super) fn looked_for(&mut self, time: Duration) {
        self.estimates.look = rather_less(self.estimates.look, time);
    }

    /// Notes that a write took this long.
    pub(super) fn wrote_for(&mut self, time: Duration) {
        self.estimates.write = rather_less(self.estimates.write, time);
    }

    /// Returns the pause before the next look, for a waiter with so many turns `before` it.
    pub(super) fn pause(&mut self, before: usize, look: &Partition, now: Moment) -> Duration {
        self.note_progress(before, now);
        let observation = self.observe(look, now, before);
        match before {
            0 | 1 => self.pause_in_front(before, observation),
            // Before the queue has moved, nothing is known of how fast it does.
            _ if self.seen_turn.is_none() => pause_behind(before, self.turn()).min(longest_unread(before)),
            _ => pause_behind(before, self.turn()),
        }
    }

    /// Returns for how long a waiter that is far behind sleeps without reading the last tokens.
    pub(super) fn longest_unread(&self) -> Duration {
        longest_unread(self.place.map_or(0, |(before, _)| before))
    }

    /// Returns whether the last tokens change more rarely than such a waiter reads them, because turns take longer: so rarely that a look at each change
    /// costs less than one at each read that shows none.
    pub(super) fn changes_are_rare(&self) -> bool {
        self.turn() > self.longest_unread() * 2
    }

    /// Returns how long a turn takes, as it seems.
    pub(super) fn turn(&self) -> Duration {
        let held_for = self.last.filter(Observation::is_held).map(|held| held.seen_for());
        // That no waiter enters may be due to a pause of one of them, so it must not make the next one longer.
        let least = self.estimates.turn(held_for.unwrap_or_default());
        self.seen_turn.map_or(least, |seen| seen.min(least * 2))
    }

    /// Notes that the last tokens are as they were at the last look: what was inside then is so still. Returns the next pause of one of the first
    /// two.
    pub(super) fn pause_after_no_change(&mut self, before: usize, now: Moment) -> Duration {
        let Some(last) = &mut self.last else { return Duration::ZERO };
        last.until = last.until.max(now);
        let observation = *last;
        self.pause_in_front(before, observation)
    }

    /// Returns when the next look is due although the last tokens have not changed. They do not show that the first in line has entered, which the
    /// second one should know if that stays inside for long; that a writer goes on as a reader, which the first reader should know; nor that a
    /// waiter has given up.
    pub(super) fn look_is_due(&self, before: usize, reads: bool, looked: Moment) -> Moment {
        let seen_for = looked.since(self.last.map_or(looked, |last| last.since));
        let Estimates { hold, look, write } = self.estimates;
        let due = match before {
            0 if reads => (look * LOOKS_TO_SHOW).max(seen_for / PART_OF_HOLD),
            0 => LONGEST,
            // Where holders stay, the row says so as soon as that can be.
            _ if hold > self.estimates.turn_without_hold() => (look / 2 + write).max(seen_for),
            _ => (look * LOOKS_TO_SHOW).max(seen_for),
        };
        looked.plus(due.min(LONGEST))
    }

    fn pause_in_front(&self, before: usize, observation: Observation) -> Duration {
        let behind = if before > 0 && observation.is_held() {
            BEHIND_THE_FIRST.max(self.estimates.hold / PART_BEHIND_THE_FIRST)
        } else {
            Duration::ZERO
        };
        // While none is inside: since the first is there, which may have died.
        let since = if observation.inside.is_some() {
            Some(observation.since)
        } else {
            self.place.map(|place| place.1)
        };
        let seen_for = observation.until.since(since.unwrap_or(observation.since));
        let left = self.expected_for(before, observation);
        (left.max(seen_for / PART_OF_HOLD) + behind).min(LONGEST)
    }

    /// Returns for how long what is inside is expected to stay, rather less than more.
    fn expected_for(&self, before: usize, observation: Observation) -> Duration {
        let Estimates { hold, look, write } = self.estimates;
        let (seen_for, is_second) = (observation.seen_for(), before > 0);
        match observation.inside {
            Some((_, State::Held)) => {
                let left = observation.longest().map(|longest| (hold * 7 / 8).saturating_sub(longest));
                left.unwrap_or_default().max(hold / PART_OF_UNKNOWN_HOLD)
            }
            // A client that has claimed and says no more may have been inside for long, or be about to enter; but the second does not wait for less than
            // the release.
            Some(_) if is_second => (look / 2 + write).saturating_sub(seen_for),
            // The first has not claimed yet.
            None if is_second => (look + write * 2).saturating_sub(seen_for),
            _ => Duration::ZERO,
        }
    }

    fn note_progress(&mut self, before: usize, now: Moment) {
        let Some((was_before, since)) = self.place else {
            self.place = Some((before, now));
            return;
        };
        let (turns, passed) = (was_before.saturating_sub(before), now.since(since));
        self.seen_turn = match u32::try_from(turns).unwrap_or(u32::MAX) {
            0 => self.seen_turn.map(|seen| seen.max(passed)),
            turns => Some(passed / turns),
        };
        if before != was_before {
            self.place = Some((before, now));
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
        let before = self.estimates.hold;
        if gone.is_held() && gone.seen_for() >= before {
            self.estimates.hold = (before * 3 + gone.seen_for()) / 4;
        } else if let Some(longest) = gone.longest().filter(|longest| *longest < before) {
            self.estimates.hold = (before + longest) / 2;
        } else if gone.is_held() && gone.after.is_none() {
            // It had begun before. But two that take turns never see each other begin.
            self.estimates.hold = (before * 7 + gone.seen_for()) / 8;
        }
    }

    /// Returns what is inside now. If no row says that it is held, the first claim is taken for it.
    fn observe(&mut self, look: &Partition, now: Moment, before: usize) -> Observation {
        let rows = || look.rows.iter().filter_map(|seen| seen.row.as_ref());
        let held = rows().find(|row| row.state == State::Held);
        let claimed = rows().filter(|row| row.state == State::Claimed).min_by_key(|row| row.ticket);
        let inside = held.or(claimed).map(|row| (row.acquisition, row.state));
        let (since, after) = match self.last {
            // That none was inside at two looks does not say that none was in between.
            Some(last) if last.inside == inside && inside.is_some() => (last.since, last.after),
            Some(gone) => {
                // From far behind, the hold was not seen often enough to tell.
                if before <= 1 && gone.acquisition() != inside.map(|(id, _)| id) {
                    self.learn(gone);
                }
                (now, Some(gone.until))
            }
            None => (now, None),
        };
        *self.last.insert(Observation { inside, since, until: now, after })
    }
}

impl Observation {
    fn seen_for(&self) -> Duration {
        self.until.since(self.since)
    }

    /// Returns for how long it was inside at most when it was last seen, if that is known.
    fn longest(&self) -> Option<Duration> {
        self.inside.and(self.after).map(|after| self.until.since(after))
    }

    fn acquisition(&self) -> Option<AcquisitionId> {
        self.inside.map(|(id, _)| id)
    }

    fn is_held(&self) -> bool {
        self.inside.is_some_and(|(_, state)| state == State::Held)
    }
}

impl Estimates {
    pub(super) fn look(&self) -> Duration {
        self.look
    }

    /// Returns how long a turn takes at least: the holder is inside, its release is written, the next one finds that out, claims, and looks.
    fn turn(&self, seen_for: Duration) -> Duration {
        self.hold.max(seen_for) + self.turn_without_hold()
    }

    fn turn_without_hold(&self) -> Duration {
        self.look + self.write * 3
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
        if others > 2 {
            pause_behind(others - 1, self.turn(Duration::ZERO)).min(LONGEST)
        } else {
            Duration::ZERO
        }
    }
}

/// Returns the pause of a waiter that is far behind: until it should be second, and rather less.
fn pause_behind(before: usize, turn: Duration) -> Duration {
    let turns = u32::try_from(before.saturating_sub(1)).unwrap_or(u32::MAX);
    let (part, of) = PART_OF_TURNS;
    (turn.saturating_mul(turns) / of * part).clamp(SHORTEST, by_place(before, PLACES_OF_LONGEST))
}

/// Returns for how long a waiter with so many before it goes without reading the last tokens.
fn longest_unread(before: usize) -> Duration {
    by_place(before, PLACES_OF_UNREAD).min(LONGEST_UNREAD)
}

/// Returns [`LONGEST`] once for each `places` that a waiter has before it.
fn by_place(before: usize, places: usize) -> Duration {
    let parts = u32::try_from(before.div_ceil(places)).unwrap_or(u32::MAX);
    LONGEST.saturating_mul(parts.max(1))
}

/// Returns what a request takes, learnt fast where it becomes less and slowly where it becomes more: a waiter that sleeps past its turn costs all
/// those behind it time, and one that looks too often only requests.
fn rather_less(before: Duration, seen: Duration) -> Duration {
    match before {
        Duration::ZERO => seen / SLOWLY,
        _ if seen < before => (before + seen) / 2,
        _ => before + (seen - before) / SLOWLY,
    }
}

/// Returns a pause about as long as `pause`, a tenth more or less, so that waiters do not move in step. Zero for what no timer can
/// do.
pub(super) fn about(pause: Duration, environment: &dyn Environment) -> Duration {
    if pause < SHORTEST {
        return Duration::ZERO;
    }
    pause.mul_f64(0.8) + environment.jitter(pause.mul_f64(0.2))
}

#[cfg(test)]
mod tests;
