//! The judge: no two that conflict were inside at one time, and tokens have grown.

use std::collections::{HashMap, HashSet};

use ylock_core::Mode;

use super::KEYS;
use super::notes::{Event, What};

/// All that the processes have noted.
#[derive(Default)]
pub(super) struct Judge(Vec<Event>);

impl Judge {
    /// Takes the notes of one process. One that was killed held until then what it had not begun to give back.
    pub(super) fn hear(&mut self, events: &[Event], killed: Option<u64>) {
        self.0.extend(events);
        let Some(killed) = killed else { return };
        let mut inside = HashMap::new();
        for event in events {
            match event.what {
                What::Comes => _ = inside.insert(event.id, *event),
                What::Leaves => _ = inside.remove(&event.id),
                What::Asks | What::Does => {}
            }
        }
        // It may have come in after the time was read, and before the signal arrived.
        let left = |event: Event| Event { what: What::Leaves, time: killed.max(event.time + 1), ..event };
        self.0.extend(inside.into_values().map(left));
    }

    pub(super) fn operations(&self) -> usize {
        self.0.iter().filter(|event| event.what != What::Comes).count()
    }

    /// Fails if anything was wrong.
    pub(super) fn decide(mut self, round: u64) {
        // Of those at one time first the ones that leave: they had left when the others came.
        self.0.sort_by_key(|event| (event.time, event.what == What::Comes));
        for key in 0..KEYS {
            let mut lock = Lock::default();
            for event in self.0.iter().filter(|event| event.key == key) {
                if let Err(wrong) = lock.see(event) {
                    panic!("round {round}: {wrong}: {event:?}; inside: {:?}", lock.inside);
                }
            }
        }
    }
}

/// What is known of one lock.
#[derive(Default)]
struct Lock {
    inside: HashMap<u128, Event>,
    /// The tokens of all that have come so far.
    tokens: HashSet<u64>,
    highest: u64,
    highest_of_writers: u64,
    /// The highest token that was known when each acquisition began to ask.
    known: HashMap<u128, u64>,
}

impl Lock {
    fn see(&mut self, event: &Event) -> Result<(), &'static str> {
        match event.what {
            What::Asks => _ = self.known.insert(event.id, self.highest),
            What::Comes => return self.comes(event),
            What::Leaves => _ = self.inside.remove(&event.id),
            What::Does => {}
        }
        Ok(())
    }

    fn comes(&mut self, event: &Event) -> Result<(), &'static str> {
        if self.inside.values().any(|other| other.mode.conflicts_with(event.mode)) {
            return Err("came in beside one that conflicts");
        }
        self.inside.insert(event.id, *event);
        // One that goes on as a reader keeps its token.
        let Some(known) = self.known.remove(&event.id) else { return Ok(()) };
        // Readers come in side by side, so their order says nothing; all that a writer meets have left before it came.
        let before = if event.mode == Mode::Write { self.highest } else { self.highest_of_writers };
        if event.token <= known.max(before) || !self.tokens.insert(event.token) {
            return Err("its token is not above all earlier ones");
        }
        self.highest = self.highest.max(event.token);
        if event.mode == Mode::Write {
            self.highest_of_writers = self.highest_of_writers.max(event.token);
        }
        Ok(())
    }
}

/// Returns the notes of one that asks, comes and leaves.
fn visit([asks, comes, leaves]: [u64; 3], mode: Mode, token: u64) -> [Event; 3] {
    let event = |time, what| Event { time, what, key: 0, id: token.into(), mode, token };
    [event(asks, What::Asks), event(comes, What::Comes), event(leaves, What::Leaves)]
}

fn judge(visits: &[[Event; 3]]) {
    let mut judge = Judge::default();
    visits.iter().for_each(|visit| judge.hear(visit, None));
    judge.decide(0);
}

#[test]
fn turns_and_readers_side_by_side_are_right() {
    let (write, read) = (Mode::Write, Mode::Read);
    judge(&[
        visit([0, 1, 2], write, 5),
        visit([0, 2, 9], read, 7),
        visit([0, 3, 8], read, 6),
        visit([4, 9, 10], write, 8),
    ]);
}

#[test]
#[should_panic(expected = "beside one that conflicts")]
fn a_writer_beside_a_reader_is_found() {
    judge(&[visit([0, 1, 5], Mode::Read, 1), visit([0, 4, 9], Mode::Write, 2)]);
}

#[test]
#[should_panic(expected = "not above all earlier ones")]
fn a_token_that_falls_is_found() {
    judge(&[visit([0, 1, 2], Mode::Write, 2), visit([0, 3, 4], Mode::Write, 1)]);
}

#[test]
#[should_panic(expected = "not above all earlier ones")]
fn a_reader_whose_token_is_older_than_one_that_had_come_before_it_asked_is_found() {
    judge(&[visit([0, 1, 9], Mode::Read, 2), visit([2, 3, 4], Mode::Read, 1)]);
}

#[test]
#[should_panic(expected = "beside one that conflicts")]
fn one_that_was_killed_was_inside_until_then() {
    let mut judge = Judge::default();
    judge.hear(&visit([0, 1, 2], Mode::Write, 1)[..2], Some(6));
    judge.hear(&visit([0, 5, 7], Mode::Write, 2), None);
    judge.decide(0);
}
