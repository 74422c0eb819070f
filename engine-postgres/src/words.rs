//! The words that functions and engine have in common.

use std::time::Duration;

use ylock_core::engine::{Request, Ticket};
use ylock_core::{Key, Mode};

use crate::driver::{Call, Function, Value};
use crate::place;

pub(crate) fn mode_word(mode: Mode) -> &'static str {
    match mode {
        Mode::Read => "r",
        Mode::Write => "w",
    }
}

/// Returns the mode that [`mode_word`] wrote.
pub(crate) fn mode_of(word: &str) -> Option<Mode> {
    Mode::ALL.iter().copied().find(|mode| mode_word(*mode) == word)
}

/// Returns how long a waiter counts as alive after a question: not shorter than a pause that a busy machine may bring.
pub(crate) fn alive(request: &Request) -> Duration {
    request.lease * 2 / 3
}

/// Returns microseconds, of which a part counts as a whole one.
pub(crate) fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_nanos().div_ceil(1_000)).unwrap_or(i64::MAX)
}

impl Call {
    /// Creates a call of a function for a lock.
    pub(crate) fn at(function: Function, key: &Key) -> Self {
        Self::of(function).with(Value::Bytes(Some(place::of(key))))
    }

    pub(crate) fn time(self, time: Duration) -> Self {
        self.with(Value::Number(Some(micros(time))))
    }

    pub(crate) fn word(self, word: &'static str) -> Self {
        self.with(Value::text(word))
    }

    pub(crate) fn ticket(self, ticket: Option<Ticket>) -> Self {
        self.with(Value::Number(ticket.map(Ticket::get)))
    }
}
