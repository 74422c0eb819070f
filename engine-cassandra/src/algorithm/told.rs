//! Knows whether hints work at one key: only then may a waiter look rarely. Pure.
//!
//! It is judged by the client that should have been told, since a network may let datagrams through one way only. Hints work from the first
//! one on that tells of a turn. They do not work any more when two turns of one kind, to claim or to enter, one after the other, were found by a
//! look that no hint had asked for; then waiters look as often as without hints, for a while. The kinds are told of on different occasions, so each
//! is counted by itself.

use std::net::SocketAddr;
use std::time::Duration;

use ylock_core::environment::Moment;

/// The number of turns without a hint, one after the other, after which hints do not work.
const MISSES: u8 = 2;
/// The number of turns for which hints are not tried again.
const DOUBTED_TURNS: u8 = 16;
/// The longest time for which they are not.
const DOUBTED_FOR: Duration = Duration::from_secs(60);

/// What is known of hints at one key; see the [module](self).
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Told {
    /// No hint has come yet.
    #[default]
    Unknown,
    /// Hints tell of turns, but for so many of the last ones to claim, and so many of the last ones to enter.
    Works { missed: [u8; 2] },
    /// Turns were missed: hints count for nothing until this moment, or for so many turns.
    Doubted { until: Moment, turns: u8 },
}

/// A kind of turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// To claim.
    Claim,
    /// To enter.
    Enter,
}

/// What had asked for the look that found a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AskedBy {
    /// A hint that told of a turn, from this address.
    Hint(SocketAddr),
    /// A hint for the second in line only: by itself it does not say that the first one was told.
    SecondHint,
    /// The end of a pause that relied on hints.
    LongPause,
    /// The end of a newcomer's first pause, which relied on them: what it knew of the queue is from an earlier look, so it says something of those
    /// that were before it then, but not whether hints work.
    FirstPause,
    /// Anything else: nothing follows from it.
    #[default]
    Other,
}

impl AskedBy {
    /// Returns the same where a hint has come after all, so that nothing is said to be missed.
    pub(super) fn unless_missed(self) -> Self {
        if matches!(self, Self::LongPause | Self::FirstPause) { Self::Other } else { self }
    }

    /// Returns whether a hint has asked.
    pub(crate) fn is_hint(self) -> bool {
        matches!(self, Self::Hint(_) | Self::SecondHint)
    }
}

impl Told {
    /// Notes that a hint has told of a turn.
    pub(super) fn heard(&mut self, now: Moment) {
        self.forgive(now);
        if matches!(self, Self::Unknown) {
            *self = Self::Works { missed: [0; 2] };
        }
    }

    /// Returns whether hints work, as far as is known.
    pub(super) fn works(&self) -> bool {
        matches!(self, Self::Works { .. })
    }

    /// Notes that a turn of this client has come, found by such a look. Returns whether a hint should have told of it.
    pub(super) fn turn(&mut self, turn: Turn, asked_by: AskedBy, now: Moment) -> bool {
        self.forgive(now);
        match (&mut *self, asked_by) {
            (Self::Works { missed }, AskedBy::Hint(_)) => missed[turn as usize] = 0,
            (Self::Works { missed }, AskedBy::LongPause) => {
                let missed = &mut missed[turn as usize];
                *missed += 1;
                if *missed >= MISSES {
                    *self = Self::Doubted { until: now.plus(DOUBTED_FOR), turns: DOUBTED_TURNS };
                }
                return true;
            }
            (Self::Doubted { turns, .. }, _) => {
                *turns -= 1;
                if *turns == 0 {
                    *self = Self::Unknown;
                }
            }
            _ => {}
        }
        false
    }

    fn forgive(&mut self, now: Moment) {
        if matches!(self, Self::Doubted { until, .. } if *until <= now) {
            *self = Self::Unknown;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    const HINT: AskedBy = AskedBy::Hint(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7000));

    fn at(seconds: u64) -> Moment {
        Moment::from_nanos(seconds * 1_000_000_000)
    }

    fn heard() -> Told {
        let mut told = Told::default();
        told.heard(at(0));
        told
    }

    fn doubted() -> Told {
        let mut told = heard();
        assert!((0..2).all(|_| told.turn(Turn::Enter, AskedBy::LongPause, at(0))));
        told
    }

    #[test]
    fn hints_work_from_the_first_one_on() {
        assert!(!Told::default().works());
        assert!(heard().works());
    }

    #[test]
    fn a_look_that_a_hint_has_asked_for_is_no_miss_and_the_end_of_a_pause_no_hint() {
        let second = AskedBy::SecondHint;
        assert!(HINT.is_hint() && second.is_hint());
        for asked_by in [AskedBy::LongPause, AskedBy::FirstPause, AskedBy::Other] {
            assert!(!asked_by.is_hint());
            assert_eq!(asked_by.unless_missed(), AskedBy::Other);
        }
        assert_eq!((HINT.unless_missed(), second.unless_missed()), (HINT, second));
    }

    #[test]
    fn two_misses_one_after_the_other_end_that() {
        let mut told = heard();
        for _ in 0..10 {
            assert!(told.turn(Turn::Enter, AskedBy::LongPause, at(0)));
            assert!(!told.turn(Turn::Enter, HINT, at(0)));
            assert!(told.works());
        }
        assert!(!doubted().works());
    }

    #[test]
    fn what_was_found_by_a_look_of_another_kind_is_no_miss() {
        let mut told = heard();
        assert!((0..10).all(|_| !told.turn(Turn::Enter, AskedBy::Other, at(0))));
        assert!(told.works());
    }

    /// What it knew of the queue is from an earlier look.
    #[test]
    fn the_first_pause_of_a_newcomer_says_nothing_of_hints() {
        let mut told = heard();
        assert!((0..10).all(|_| !told.turn(Turn::Claim, AskedBy::FirstPause, at(0))));
        assert!(told.works());
    }

    #[test]
    fn a_turn_that_no_hint_could_tell_of_is_no_miss() {
        assert!(!Told::default().turn(Turn::Enter, AskedBy::LongPause, at(0)));
    }

    #[test]
    fn hints_are_tried_again_after_sixteen_turns() {
        let mut told = doubted();
        for _ in 0..16 {
            told.heard(at(1));
            assert!(!told.works());
            assert!(!told.turn(Turn::Enter, HINT, at(1)));
        }
        assert!(!told.works(), "not before another one comes");
        told.heard(at(1));
        assert!(told.works());
    }

    #[test]
    fn hints_are_tried_again_after_a_minute() {
        let mut told = doubted();
        told.heard(at(59));
        assert!(!told.works());
        told.heard(at(60));
        assert!(told.works());
    }

    /// A client that sends nothing when it leaves may stand behind one that does when it enters.
    #[test]
    fn a_turn_of_the_other_kind_makes_up_for_no_miss() {
        for (missed, other) in [(Turn::Enter, Turn::Claim), (Turn::Claim, Turn::Enter)] {
            let mut told = heard();
            assert!(told.turn(missed, AskedBy::LongPause, at(0)));
            assert!(!told.turn(other, HINT, at(0)));
            assert!(told.works());
            assert!(told.turn(missed, AskedBy::LongPause, at(0)));
            assert!(!told.works(), "{missed:?}");
        }
    }

    #[test]
    fn a_hint_for_the_second_in_line_makes_up_for_no_miss_and_is_none() {
        let mut told = heard();
        assert!(told.turn(Turn::Enter, AskedBy::LongPause, at(0)));
        assert!((0..3).all(|_| !told.turn(Turn::Enter, AskedBy::SecondHint, at(0))));
        assert!(told.works());
        assert!(told.turn(Turn::Enter, AskedBy::LongPause, at(0)));
        assert!(!told.works());
    }
}
