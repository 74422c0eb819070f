//! The words that the scripts, the stored locks and the messages have in common.

use std::borrow::Cow;
use std::time::Duration;

use ylock_core::Mode;
use ylock_core::engine::{Request, Ticket};

use crate::options::Eviction;

/// Stands for nothing where a word is needed: no ticket, no channel, no next waiter. No identity and no ticket is written like this.
pub(crate) const NONE: &str = "-";
/// Says that the server may throw away locks.
pub(crate) const ACCEPTS: &str = "accepts";
/// The character between two words.
pub(crate) const BETWEEN: char = ' ';

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

pub(crate) fn eviction_word(eviction: Eviction) -> &'static str {
    match eviction {
        Eviction::Refused => NONE,
        Eviction::LostLocksAccepted => ACCEPTS,
    }
}

pub(crate) fn ticket_word(ticket: Option<Ticket>) -> Cow<'static, str> {
    ticket.map_or(NONE.into(), |ticket| ticket.get().to_string().into())
}

/// Returns how long a waiter counts as alive after a question: not shorter than a pause that a busy machine may bring.
pub(crate) fn alive(request: &Request) -> Duration {
    request.lease * 2 / 3
}
