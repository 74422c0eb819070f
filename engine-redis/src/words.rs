//! The words in which a request is written for the scripts.

use std::time::Duration;

use ylock_core::Mode;
use ylock_core::engine::{Request, Ticket};

pub(crate) fn mode_word(mode: Mode) -> &'static str {
    match mode {
        Mode::Read => "r",
        Mode::Write => "w",
    }
}

pub(crate) fn ticket_word(ticket: Option<Ticket>) -> String {
    ticket.map_or("-".to_owned(), |ticket| ticket.get().to_string())
}

/// Returns how long a waiter counts as alive after a question: not shorter than a pause that a busy machine may bring.
pub(crate) fn alive(request: &Request) -> Duration {
    request.lease * 2 / 3
}
