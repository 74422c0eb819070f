//! The front of the queue, as a look shows it: those that are told when a client enters or leaves. Pure.

use std::net::SocketAddr;

use ylock_core::Mode;

use super::judge::{Contender, Place};
use super::store::{Partition, Row, Slot, State};
use crate::hints::{Endpoint, Waiter};

/// The most readers that are told at once. The others are told by these, when they have entered.
const MOST_READERS: usize = 8;
/// As many as can be told, and one more.
const MOST: usize = MOST_READERS + 1;

/// The waiters at the front of the queue; see the [module](self).
#[derive(Debug, Default)]
pub(super) struct Line(Vec<InLine>);

/// A waiter that can be told something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct InLine {
    endpoint: Endpoint,
    reads: bool,
}

impl Line {
    /// Returns the line that a look shows behind the client of `own`: of those that have not entered and can be told something.
    pub(super) fn of(look: &Partition, own: Slot) -> Self {
        let others = look.rows.iter().filter(|seen| seen.slot != own);
        let rows = others.filter_map(|seen| Some((seen.slot, seen.row.as_ref()?)));
        let waiting = rows.filter(|(_, row)| matches!(row.state, State::Waiting | State::Claimed));
        let mut waiting: Vec<_> = waiting
            .filter_map(|(slot, row)| {
                let reads = row.mode == Mode::Read;
                Some(((row.ticket, slot), InLine { endpoint: row.hints?, reads }))
            })
            .collect();
        waiting.sort_unstable_by_key(|(place, _)| *place);
        Self(waiting.into_iter().take(MOST).map(|(_, waiter)| waiter).collect())
    }

    /// Returns those that a newcomer tells that it waits: the one that enters next, and the last that is known.
    pub(super) fn ends(&self) -> impl Iterator<Item = Endpoint> {
        let last = self.0.last().filter(|_| self.0.len() > 1);
        self.0.first().into_iter().chain(last).map(|waiter| waiter.endpoint)
    }

    /// Returns who is first, and who is second and looks if the first does not enter, which may be dead. Readers are first together, up to the
    /// next writer. Those that have said that they wait come behind those that the look has shown: they came later, mostly.
    pub(super) fn front(&self, said: &[Waiter]) -> Vec<(Endpoint, bool)> {
        let is_shown = |waiter: &Waiter| self.0.iter().any(|shown| shown.endpoint.key == waiter.key);
        let said = said
            .iter()
            .filter(|waiter| !is_shown(waiter))
            .map(|waiter| InLine { endpoint: waiter.endpoint(), reads: waiter.reads });
        let line: Vec<_> = self.0.iter().copied().chain(said).take(MOST).collect();
        let readers = line.iter().take_while(|waiter| waiter.reads).take(MOST_READERS).count();
        let first = readers.max(1);
        let told = line.iter().take(first + 1).enumerate();
        told.map(|(number, waiter)| (waiter.endpoint, number >= first)).collect()
    }
}

/// Those before a waiter: who could tell it that its turn has come.
#[derive(Debug, Default)]
pub(crate) struct Before {
    /// Those of them that can be told something themselves, and so tell others.
    pub(super) endpoints: Vec<Endpoint>,
    /// True if one must tell of the next turn, and each can: where none stands in the way a look is due at once.
    pub(super) tells: bool,
    /// The addresses, as their rows show them, of those that tell of the next turn: the last one that goes first, which tells when it enters and
    /// when it leaves; or, where none does, those inside that conflict, of which the last one that leaves tells.
    pub(super) tellers: Vec<SocketAddr>,
}

impl Before {
    /// Returns those whose leaving makes room, and the one directly before in the queue. Where neither is shown, another client has claimed too
    /// early and is about to give way, of which it tells no client.
    pub(super) fn of(look: &Partition, own: &Contender) -> Self {
        let rows = look.rows.iter().filter(|seen| seen.slot != own.slot);
        let rows: Vec<_> = rows.filter_map(|seen| Some((seen.slot, seen.row.as_ref()?))).collect();
        let held =
            rows.iter().filter(|(_, row)| row.state == State::Held && own.mode.conflicts_with(row.mode));
        let earlier = rows.iter().filter(|(slot, row)| {
            matches!(row.state, State::Waiting | State::Claimed)
                && (row.ticket, *slot) < (own.ticket, own.slot)
        });
        let directly = earlier.max_by_key(|(slot, row)| (row.ticket, *slot));
        let inside: Vec<_> = held.take(MOST_READERS).map(|(_, row)| row.hints).collect();
        let all: Vec<_> = inside.iter().copied().chain(directly.map(|(_, row)| row.hints)).collect();
        let tellers = last_before(&rows, own).map_or(inside, |teller| vec![teller]);
        let tells = !tellers.is_empty() && tellers.iter().chain(&all).all(Option::is_some);
        let mut tellers: Vec<_> = tellers.into_iter().flatten().map(|teller| teller.address).collect();
        tellers.sort_unstable();
        tellers.dedup();
        Self { tells, tellers, endpoints: all.into_iter().flatten().collect() }
    }
}

/// Returns where the last of those can be told something that go first, if any does.
fn last_before(rows: &[(Slot, &Row)], own: &Contender) -> Option<Option<Endpoint>> {
    let places =
        rows.iter().flat_map(|(slot, row)| Place::all_of(*slot, row).map(|place| (place, row.hints)));
    let before = places.filter(|(place, _)| own.is_before(place));
    before.max_by_key(|(place, _)| (place.ticket, place.slot)).map(|(_, hints)| hints)
}

#[cfg(test)]
mod tests;
