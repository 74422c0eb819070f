//! A queue as text.

use std::fmt::{self, Display};
use std::str::FromStr;
use std::time::Duration;

use super::{at, holding, id, request, token};
use crate::client_name::ClientName;
use crate::engine::Request;
use crate::environment::Moment;
use crate::mode::Mode::{Read, Write};
use crate::queue::{Contender, Queue};

/// What an engine keeps with a contender.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Word(u8);

impl Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "w{}", self.0)
    }
}

impl FromStr for Word {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        text.strip_prefix('w').and_then(|number| number.parse().ok()).map(Self).ok_or(())
    }
}

/// Fails unless the queue that is read from the text of this one is this one.
pub(super) fn comes_back(queue: &Queue<Word>, what: &str) {
    let text = text_of(queue);
    let read = Queue::read(&text).unwrap_or_else(|| panic!("{what}: {text}"));
    let seen = |queue: &Queue<Word>| format!("{:?} {:?}", queue.contenders, queue.undone);
    assert_eq!(seen(&read), seen(queue), "{what}: {text}");
}

fn text_of(queue: &Queue<Word>) -> String {
    let mut text = String::new();
    queue.write_to(&mut text);
    text
}

/// Returns a queue in which every field has a value: a revoked writer inside, a waiter that is announced behind it, a reader, and one that was
/// undone.
fn full() -> Queue<Word> {
    let mut queue = Queue::default();
    let names = ["a name with blanks", "-", "günter/4711"];
    let named = |number: u128, mode| Request {
        client: ClientName::new(names[number as usize % 3]).unwrap(),
        ..request(number, mode)
    };
    let (writer, next) = (named(1, Write), named(2, Write));
    *queue.join(&writer, super::last, at(1)).unwrap() = Word(7);
    assert!(queue.enter(id(1), token(99), at(1)));
    queue.renew(&holding(&writer, Some(&next)), super::last, at(2));
    queue.join(&named(3, Read), super::last, at(3));
    queue.revoke(id(1));
    queue.undo(id(4), at(9).moment);
    queue
}

#[test]
fn every_field_comes_back() {
    comes_back(&full(), "each field");
    comes_back(&Queue::default(), "nothing");
}

#[test]
fn the_text_is_a_line_for_each() {
    let text = text_of(&full());
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert!(lines[0].ends_with(" 99 revoked - w7 -"), "{text}");
    assert!(lines[2].ends_with(" - - - w0 a name with blanks"), "{text}");
    assert_eq!(lines[3], "undone 00000000000000000000000000000004 9000000000");
}

#[test]
fn what_is_not_such_a_text_is_refused() {
    let text = text_of(&full());
    assert!(Queue::<Word>::read(&text).is_some());
    // Each field but the last, which is any text.
    let line = text.lines().next().unwrap();
    for field in 0..line.split(' ').count() - 1 {
        let wrong: Vec<_> =
            line.split(' ').enumerate().map(|(at, text)| if at == field { "?" } else { text }).collect();
        assert!(Queue::<Word>::read(&wrong.join(" ")).is_none(), "{wrong:?}");
        let short: Vec<_> = line.split(' ').take(field + 1).collect();
        assert!(Queue::<Word>::read(&short.join(" ")).is_none(), "{short:?}");
    }
    for wrong in ["undone", "undone x 1", "undone 1 x", "\n"] {
        assert!(Queue::<Word>::read(wrong).is_none(), "{wrong}");
    }
}

#[test]
fn those_that_are_over_go_with_the_waiters_behind_them() {
    let mut queue = full();
    queue.take_freed();
    assert!(!queue.remove_those(|one| one.kept == Word(8)) && !queue.take_freed());
    assert!(queue.remove_those(|one| one.kept == Word(7)));
    assert!(queue.find(id(1)).is_none() && queue.find(id(2)).is_none() && queue.find(id(3)).is_some());
    assert!(queue.take_freed());
}

#[test]
fn a_waiter_is_told_whom_it_waits_for() {
    let mut queue: Queue<Word> = Queue::default();
    for (number, mode) in [(1, Read), (2, Read), (3, Write), (4, Read)] {
        queue.join(&request(number, mode), || super::Ticket::from_number(number as i64), at(0));
    }
    let waits_for = |queue: &Queue<Word>, number| -> Vec<_> {
        queue.in_the_way(id(number)).map(|other: &Contender<Word>| other.id().as_u128()).collect()
    };
    assert!(queue.enter(id(1), token(1), at(0)) && queue.enter(id(2), token(2), at(0)));
    assert_eq!(waits_for(&queue, 1), []);
    assert_eq!(waits_for(&queue, 3), [1, 2]);
    assert_eq!(waits_for(&queue, 4), [3]);
    assert_eq!(waits_for(&queue, 5), []);
    queue.expire(Moment::ZERO.plus(Duration::from_secs(100)));
    assert_eq!(waits_for(&queue, 3), []);
}
