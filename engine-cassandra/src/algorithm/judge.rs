//! Judges what one look at the partition means for one contender. Pure: no store, no clock.
//!
//! **Safety** is one rule: enter only if the look shows my own claim and no other claimed or held row that conflicts. Of any two
//! contenders that enter, each had its claim acknowledged by a quorum before its own look began. If neither look had shown the other's
//! claim, each look would have begun before the other's claim was acknowledged, and so before its own: impossible. So one of them saw
//! the other's claim and did not enter.
//!
//! **Order** is advisory: a ticket that is wrong costs a waiter its turn, not exclusion.

use ylock_core::engine::{AcquisitionId, Ticket};
use ylock_core::{Fairness, Mode, Owner, StoreToken};

use super::notebook::Dead;
use super::store::{LastTokens, Partition, Row, SeenRow, Slot, State};

/// A contender, as it last wrote itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contender {
    /// The slot of its client.
    pub(crate) slot: Slot,
    /// The identity of the attempt.
    pub(crate) acquisition: AcquisitionId,
    /// Shared or exclusive.
    pub(crate) mode: Mode,
    /// Its place in the queue.
    pub(crate) ticket: Ticket,
    /// The rule that says whether contenders that came earlier go first.
    pub(crate) fairness: Fairness,
    /// The token of its claim; nothing while it has none.
    pub(crate) claimed: Option<StoreToken>,
}

/// The next step of a contender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The own claim is shown, and no other that conflicts: the contender is inside.
    Enter,
    /// First, and not claimed yet.
    Claim,
    /// Everything allows it but the token, which must be above this one: claim again.
    ClaimAbove(StoreToken),
    /// A contender that came earlier has not entered yet: take the claim back.
    Withdraw,
    /// Wait: `before` contenders that conflict and have not entered go first. With none, wait for the holders.
    Wait {
        /// The number of contenders that go first.
        before: usize,
        /// True if another client that conflicts says that it is inside.
        held: bool,
    },
    /// The row does not show what the contender last wrote, for example because its lease has ended. Join again.
    Gone,
    /// This acquisition was asked to give up what it does not have yet.
    Revoked,
}

impl Contender {
    /// Returns the verdict on a look.
    pub(crate) fn judge(&self, look: &Partition) -> Verdict {
        match look.rows.iter().find(|seen| seen.slot == self.slot) {
            Some(own) if own.revoked == Some(self.acquisition) => return Verdict::Revoked,
            Some(own) if self.is_shown_by(own) => {}
            _ => return Verdict::Gone,
        }
        let before = self.before(look);
        let held = self.others(look).any(|row| row.is_held() && self.conflicts_with(&row));
        match self.claimed {
            None if before == 0 => Verdict::Claim,
            None => Verdict::Wait { before, held },
            // Of two contenders that conflict and have not entered, the later one gives way, so that one always stays.
            Some(_) if before > 0 => Verdict::Withdraw,
            Some(_) if self.others(look).any(|row| row.is_in_main() && self.conflicts_with(&row)) => {
                Verdict::Wait { before, held }
            }
            Some(token) => match self.floor(look) {
                Some(floor) if token <= floor => Verdict::ClaimAbove(floor),
                _ => Verdict::Enter,
            },
        }
    }

    /// Returns how many contenders that conflict and have not entered go first.
    pub(crate) fn before(&self, look: &Partition) -> usize {
        self.others(look).filter(|place| self.is_before(place)).count()
    }

    /// Returns how many turns are before: readers that follow each other in the queue are inside together.
    pub(crate) fn turns_before(&self, look: &Partition) -> usize {
        let mut before: Vec<_> = self.others(look).filter(|place| self.is_before(place)).collect();
        before.sort_unstable_by_key(|place| (place.ticket, place.slot));
        before.chunk_by(|one, next| !one.mode.conflicts_with(next.mode)).count()
    }

    /// Returns whether the last tokens will show when what stands in the way leaves: a client that has entered gives its token back, and each of these
    /// tokens is above the last one. They do not show that a holder goes on as a reader, or has died, nor that a claim is taken back; so the first
    /// looks itself while one stands beside its own.
    pub(crate) fn is_shown_by_tokens(&self, look: &Partition) -> bool {
        let is_in_the_way = |place: Place| place.is_in_main() && self.conflicts_with(&place);
        let others = look.rows.iter().filter(|seen| seen.slot != self.slot);
        let mut in_the_way = others
            .filter_map(|seen| Some((seen, seen.row.as_ref()?)))
            .filter(|(seen, row)| Place::all_of(seen.slot, row).any(is_in_the_way));
        let before = self.before(look);
        let is_awaited = |row: &Row| match (self.claimed, before) {
            (Some(_), 0) => row.state == State::Held,
            // Until the first has entered, the second has nothing to do.
            (None, 1) => row.state == State::Claimed,
            _ => false,
        };
        in_the_way.all(|(seen, row)| {
            let claim = seen.present_claim();
            is_awaited(row)
                && claim.is_some_and(|claim| Some(claim.token) > look.last_tokens().of(claim.mode))
        })
    }

    /// Returns whether no other client goes first any more, by the last tokens that were read after the look: the only one that did had claimed,
    /// and has given back just that token.
    pub(crate) fn is_first_after(&self, look: &Partition, last: LastTokens) -> bool {
        let mut before = self.others(look).filter(|place| self.is_before(place));
        let (Some(only), None) = (before.next(), before.next()) else { return false };
        let row = look.rows.iter().find(|seen| seen.slot == only.slot);
        let claim = row.and_then(SeenRow::present_claim).filter(|_| only.state == State::Claimed);
        claim.is_some_and(|claim| Some(claim.token) == last.of(claim.mode))
    }

    /// Returns how many clients wait earlier in the line, and are not `dead`: they bury what is dead before this one does. All of them count,
    /// also those that do not conflict with this contender: readers that wait side by side would else all bury the same rows at once.
    pub(crate) fn buriers_before(&self, look: &Partition, dead: &[Dead]) -> usize {
        let is_dead = |place: &Place| dead.iter().any(|dead| dead.slot == place.slot);
        let is_earlier = |place: &Place| (place.ticket, place.slot) < (self.ticket, self.slot);
        self.others(look).filter(|place| !place.is_held() && is_earlier(place) && !is_dead(place)).count()
    }

    /// Returns whether the row shows this very attempt, in the state and with the token that it last wrote: identity, not count.
    fn is_shown_by(&self, own: &SeenRow) -> bool {
        let Some(row) = &own.row else { return false };
        row.acquisition == self.acquisition
            && match self.claimed {
                None => row.state == State::Waiting,
                Some(token) => {
                    row.state == State::Claimed && own.claim.is_some_and(|claim| claim.token == token)
                }
            }
    }

    fn others(&self, look: &Partition) -> impl Iterator<Item = Place> {
        places_of_others(look, self.slot)
    }

    fn conflicts_with(&self, other: &Place) -> bool {
        self.mode.conflicts_with(other.mode)
    }

    /// Returns whether `other` conflicts, has not entered, and goes first.
    pub(super) fn is_before(&self, other: &Place) -> bool {
        // An unfair contender does not care for those that only wait; but of two claims one must still give way.
        let counts = self.fairness != Fairness::Unfair || other.is_in_main();
        counts
            && !other.is_held()
            && self.mode.conflicts_with(other.mode)
            && (other.ticket, other.slot) < (self.ticket, self.slot)
    }

    fn floor(&self, look: &Partition) -> Option<StoreToken> {
        floor(look, self.slot, self.mode)
    }
}

/// Returns the largest token that a grant of this mode must exceed: of the tokens of all clients that conflict, also of rows that
/// are idle or whose lease has ended, and of the last holders.
pub(crate) fn floor(look: &Partition, slot: Slot, mode: Mode) -> Option<StoreToken> {
    let counts = |other: Mode| mode == Mode::Write || other == Mode::Write;
    let others = look.rows.iter().filter(|seen| seen.slot != slot);
    let claims =
        others.filter_map(|seen| seen.claim).filter(|claim| counts(claim.mode)).map(|claim| claim.token);
    let last_read = look.last_read.filter(|_| counts(Mode::Read));
    claims.chain(look.last_write).chain(last_read).max()
}

/// One place in the queue, or inside.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The slot whose row shows it.
    pub(crate) slot: Slot,
    /// The identity of the attempt.
    pub(crate) acquisition: AcquisitionId,
    /// The owner that acquires.
    pub(crate) owner: Owner,
    /// Shared or exclusive.
    pub(crate) mode: Mode,
    /// Its ticket.
    pub(crate) ticket: Ticket,
    /// The state; a waiter behind its own client's hold is `Waiting`.
    pub(crate) state: State,
}

impl Place {
    /// Returns the places that a row stands for: none when it is idle, two when a waiter is announced behind what it holds.
    pub(crate) fn all_of(slot: Slot, row: &Row) -> impl Iterator<Item = Self> + use<> {
        let Row { acquisition, owner, mode, ticket, state, next, .. } = *row;
        let own =
            Some(Self { slot, acquisition, owner, mode, ticket, state }).filter(|_| state != State::Idle);
        let behind = next.filter(|_| state == State::Held).map(|next| Self {
            slot,
            acquisition: next.acquisition,
            owner: next.owner,
            mode: next.mode,
            ticket: next.ticket,
            state: State::Waiting,
        });
        own.into_iter().chain(behind)
    }

    /// Returns whether it says that it is inside.
    pub(crate) fn is_held(&self) -> bool {
        self.state == State::Held
    }

    /// Returns whether it has a cell in the main row: claimed, or inside.
    pub(crate) fn is_in_main(&self) -> bool {
        matches!(self.state, State::Claimed | State::Held)
    }
}

/// Returns how many other clients take part. With any, being optimistic would disturb them.
pub(crate) fn others(look: &Partition, slot: Slot) -> usize {
    let others = look.rows.iter().filter(|seen| seen.slot != slot);
    others.filter(|seen| seen.row.as_ref().is_some_and(|row| row.state != State::Idle)).count()
}

/// Returns the places of all other clients: that of each row itself, and that of the waiter behind it in the same client.
pub(crate) fn places_of_others(look: &Partition, slot: Slot) -> impl Iterator<Item = Place> {
    let others = look.rows.iter().filter(move |seen| seen.slot != slot);
    others
        .filter_map(|seen| Some((seen.slot, seen.row.as_ref()?)))
        .flat_map(|(slot, row)| Place::all_of(slot, row))
}

/// Returns whether another client that conflicts with `mode` waits.
pub(crate) fn is_contended(look: &Partition, slot: Slot, mode: Mode) -> bool {
    places_of_others(look, slot).any(|place| !place.is_held() && place.mode.conflicts_with(mode))
}

/// Returns the largest ticket that each of the other clients shows.
pub(crate) fn tickets(look: &Partition, slot: Slot) -> impl Iterator<Item = i64> {
    let others = look.rows.iter().filter(move |seen| seen.slot != slot);
    others.filter_map(|seen| seen.row.as_ref()).map(|row| {
        let next = row.next.map_or(row.ticket, |next| next.ticket);
        row.ticket.max(next).get()
    })
}

/// Returns the tickets of all waiters of other clients.
pub(crate) fn waiting(look: &Partition, slot: Slot) -> impl Iterator<Item = Ticket> {
    places_of_others(look, slot).filter(|place| !place.is_held()).map(|place| place.ticket)
}

/// Returns the largest token that is left of any client.
pub(crate) fn largest_token(look: &Partition) -> Option<StoreToken> {
    let claims = look.rows.iter().filter_map(|seen| seen.claim).map(|claim| claim.token);
    claims.chain(look.last_write).chain(look.last_read).max()
}

#[cfg(test)]
mod tests;
