//! Decides what one client's row at one key shall say, and knows what of it has arrived. It sends nothing.
//!
//! **A timestamp is sent once.** A write whose outcome is unknown is sent again under a new one. Two copies of one timestamp would
//! end at different times, because each coordinator counts the TTL from when it takes its copy: a replica that has only
//! the first copy answers, once that has ended, a tombstone, and at equal timestamps a tombstone beats a cell that is alive. The
//! row would be gone although a quorum had acknowledged the second copy, from which its holder counts.

use ylock_core::engine::{AcquisitionId, Request, valid_until};
use ylock_core::environment::Moment;
use ylock_core::{Error, ErrorKind, Result, StoreToken};

use super::client::Client;
use crate::algorithm::store::{Claim, Row, State, TimedClaim, Write};

/// The last write of one row, and what is known of it; see the [module](self).
#[derive(Debug, Default)]
pub(super) struct LastWrite {
    last: Option<Write>,
    delivery: Delivery,
    /// The write that was decided before `last`, with its delivery, leaving out those of which
    /// nothing is in the store or can come.
    before: Option<(Write, Delivery)>,
    /// The moment just before the attempt was sent with which `last` was acknowledged.
    sent: Moment,
    /// True from when a grant was entered with the claim that the row shows until it is left.
    inside: bool,
    /// True if the grant that is inside has lapsed: a heartbeat that was acknowledged when the validity of the one before had ended counts for
    /// nothing, and what has lapsed stays lapsed.
    lapsed: bool,
    /// The token that a grant by way of this row used last.
    used: Option<Claim>,
    /// `used`, as long as no write is acknowledged that saved it in the last holders' cells. Part of every write from the one that
    /// leaves the lock on, because that write may never arrive.
    unsaved: Option<Claim>,
    /// The largest token that was ever seen or claimed here. The tokens of one row grow, because they are timestamps of its
    /// revocations.
    largest_token: Option<StoreToken>,
    /// An acquisition that was revoked before it had entered, and the name under which the row shows it since.
    renamed: Option<(AcquisitionId, AcquisitionId)>,
    /// The acquisition that was left by a write of which the caller has not yet heard that it arrived.
    pub(super) releasing: Option<AcquisitionId>,
}

/// The progress of the last write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Delivery {
    /// Its timestamp has never been sent.
    #[default]
    Decided,
    /// It was sent, and certainly had no effect.
    Refused,
    /// It was sent, and its outcome is unknown.
    InDoubt,
    /// A quorum has it.
    Acknowledged,
}

impl Delivery {
    /// Returns whether no replica has the write, or can get it.
    fn has_nothing(self) -> bool {
        matches!(self, Self::Decided | Self::Refused)
    }
}

/// A write that is about to be sent.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) write: Write,
    /// True if no replica has an earlier copy of it, or can get one.
    is_first: bool,
}

impl LastWrite {
    pub(super) fn row(&self) -> Option<&Row> {
        self.last.as_ref().map(|last| &last.row)
    }

    /// Returns the token cell, as it was last written.
    pub(super) fn claim(&self) -> Option<Claim> {
        self.last.as_ref()?.claim.map(|timed| timed.claim)
    }

    pub(super) fn row_ttl(&self) -> u32 {
        self.last.as_ref().map_or(0, |last| last.row_ttl)
    }

    pub(super) fn sent(&self) -> Moment {
        self.sent
    }

    /// Returns whether a grant was entered with the claim that the row shows, and not left.
    pub(super) fn is_inside(&self) -> bool {
        self.inside
    }

    /// Returns whether a grant by way of this row may still be relied on, by the last heartbeat that counts.
    pub(super) fn is_valid(&self, now: Moment) -> bool {
        let until = self.row().map(|row| valid_until(self.sent, row.lease));
        !self.lapsed && until.is_some_and(|until| now < until)
    }

    pub(super) fn is_acknowledged(&self) -> bool {
        self.delivery == Delivery::Acknowledged
    }

    /// Returns whether no acquisition takes part by way of this row, or is about to.
    pub(super) fn is_left(&self) -> bool {
        self.row().is_none_or(|row| row.state == State::Idle)
    }

    pub(super) fn has_unsaved_token(&self) -> bool {
        self.unsaved.is_some()
    }

    /// Takes note of a token that a look shows.
    pub(super) fn take_note(&mut self, token: Option<StoreToken>) {
        self.largest_token = self.largest_token.max(token);
    }

    /// Returns the name under which the row shows an acquisition.
    pub(super) fn shown_as(&self, id: AcquisitionId) -> AcquisitionId {
        self.renamed.filter(|(own, _)| *own == id).map_or(id, |(_, shown)| shown)
    }

    /// Shows this acquisition under another name from now on.
    pub(super) fn rename(&mut self, id: AcquisitionId, shown: AcquisitionId) {
        self.renamed = Some((id, shown));
    }

    /// Returns the row, if this acquisition takes part with it.
    pub(super) fn row_of(&self, id: AcquisitionId) -> Option<&Row> {
        let shown = self.shown_as(id);
        self.row().filter(|row| row.acquisition == shown && row.state != State::Idle)
    }

    /// Returns the row, if it is this request's.
    pub(super) fn own_row(&self, request: &Request) -> Result<Row> {
        self.row_of(request.id).cloned().ok_or_else(|| {
            let message = "the acquisition was released while it was under way";
            Error::new(ErrorKind::Indeterminate, message)
        })
    }

    /// Notes that a grant is entered with the claim that the row shows.
    pub(super) fn enter(&mut self) {
        let claim = self.claim();
        (self.inside, self.lapsed, self.used, self.unsaved) = (true, false, claim, claim);
    }

    /// Notes that the grant is left again, or is about to be.
    pub(super) fn exit(&mut self) {
        self.inside = false;
    }

    /// Decides a write. It says everything that the row shall say, so that it does not matter whether the write before it arrives. A
    /// claim gets a token above `floor`.
    pub(super) fn overwrite(&mut self, client: &Client, row: Row, floor: Option<StoreToken>) -> Result<()> {
        let row_ttl = match row.state {
            State::Idle => client.idle_ttl(row.lease),
            _ => client.row_ttl(row.lease),
        };
        let claim = self.claim_for(client, &row, floor)?;
        let ttl = if is_claimed(row.state) { client.token_ttl } else { row_ttl };
        let save = self.unsaved.filter(|_| !self.inside);
        if !self.delivery.has_nothing() {
            self.before = self.last.take().map(|last| (last, self.delivery));
        }
        self.last = Some(Write {
            stamp: client.stamps.next(&*client.environment),
            row,
            row_ttl,
            claim: claim.map(|claim| TimedClaim { claim, ttl: ttl.max(row_ttl) }),
            used: save.map(|claim| TimedClaim { claim, ttl: client.token_ttl }),
        });
        self.delivery = Delivery::Decided;
        Ok(())
    }

    /// Returns what the token cell shall say.
    fn claim_for(&mut self, client: &Client, row: &Row, floor: Option<StoreToken>) -> Result<Option<Claim>> {
        let claimed = is_claimed(row.state);
        let same =
            self.row().is_some_and(|last| last.acquisition == row.acquisition && is_claimed(last.state));
        match self.claim() {
            // A claim goes on with its token, unless that is too small.
            Some(claim) if claimed && same && floor.is_none() => Ok(Some(claim)),
            _ if claimed => {
                let token = client.token_after(self.largest_token.max(floor))?;
                self.largest_token = Some(token);
                Ok(Some(Claim { token, mode: row.mode }))
            }
            // Without a claim the cell goes back to a token that was used: else a client that only came and went would push the first
            // waiter into another round.
            Some(_) => Ok(Some(self.used.unwrap_or(Claim { token: StoreToken::LOWEST, mode: row.mode }))),
            None => Ok(None),
        }
    }

    /// Returns the write to send now: the one that was decided last, unless a quorum has it; under a new timestamp if it was sent
    /// before.
    pub(super) fn attempt(&mut self, client: &Client) -> Option<Attempt> {
        let last = self.last.as_mut().filter(|_| self.delivery != Delivery::Acknowledged)?;
        if self.delivery != Delivery::Decided {
            last.stamp = client.stamps.next(&*client.environment);
        }
        let is_first = self.delivery.has_nothing();
        self.delivery = Delivery::InDoubt;
        Some(Attempt { write: last.clone(), is_first })
    }

    /// Notes that this attempt has certainly had no effect. That says nothing of other copies of
    /// the same write.
    pub(super) fn refused(&mut self, attempt: &Attempt) {
        if attempt.is_first && self.last.as_ref().is_some_and(|last| last.stamp == attempt.write.stamp) {
            self.delivery = Delivery::Refused;
        }
    }

    /// Takes the part of an acquisition back of which nothing is in the store, or can come: the row
    /// says again what the write before said. Returns `false`, and changes nothing, if something
    /// may be there. Not where that write shows another acquisition taking part: it was to be left
    /// by the same write.
    pub(super) fn take_back(&mut self, id: AcquisitionId) -> bool {
        let was_idle = self.before.as_ref().is_none_or(|(before, _)| before.row.state == State::Idle);
        let is_nothing = self.delivery == Delivery::Refused && was_idle && self.row_of(id).is_some();
        if is_nothing {
            let before = self.before.take();
            self.delivery = before.as_ref().map_or(Delivery::Decided, |(_, delivery)| *delivery);
            self.last = before.map(|(write, _)| write);
        }
        is_nothing
    }

    /// Notes that a quorum has this attempt, which was sent at `sent`. It is the last write only if its timestamp says so: an earlier
    /// attempt may be superseded by a write that is still on its way.
    pub(super) fn acknowledge(&mut self, attempt: &Write, sent: Moment, now: Moment) {
        if attempt.used.map(|used| used.claim) == self.unsaved {
            self.unsaved = None;
        }
        if self.last.as_ref().is_some_and(|last| last.stamp == attempt.stamp) {
            self.lapsed |= self.inside && !self.is_valid(now);
            (self.delivery, self.sent, self.before) = (Delivery::Acknowledged, sent, None);
        }
    }
}

fn is_claimed(state: State) -> bool {
    matches!(state, State::Claimed | State::Held)
}
