//! One client's row at one key, and the only place that writes it.
//!
//! Contents and timestamp of a write are decided together, under one lock, and what is decided last has the largest timestamp.
//! Writes may be on their way side by side and arrive in any order, late or twice: the last decision wins. So a write with
//! unknown outcome is never forgotten: it is sent again, with the same contents and a new timestamp, or superseded by the next
//! one.

mod client;
mod seen;
mod written;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ylock_core::engine::{AcquisitionId, Request, Ticket, valid_until};
use ylock_core::environment::Moment;
use ylock_core::{Fairness, Key, Mode, Result, StoreToken};

pub use self::client::Client;
use self::seen::Seen;
use self::written::Written;
use super::judge::{self, Contender};
use super::pace::Learnt;
use super::store::{Next, Partition, Row, State};

/// One client's row at one key; see the [module](self).
#[derive(Debug)]
pub struct Seat {
    /// The key of the lock.
    pub key: Key,
    /// The client that owns the row.
    pub client: Arc<Client>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    written: Written,
    seen: Seen,
}

impl Seat {
    /// Creates the seat of `client` at `key`, without writing the row.
    pub fn new(key: Key, client: Arc<Client>) -> Self {
        Self { key, client, inner: Mutex::default() }
    }

    /// Joins the queue, claiming at once or not. For a request that has joined, nothing is decided anew, but what was decided last is
    /// sent again unless a quorum has it. Returns the contender as it stands.
    pub(super) async fn join(&self, request: &Request, claiming: bool) -> Result<Contender> {
        self.decide(|client, inner| {
            if inner.written.row_of(request.id).is_some() {
                return Ok(());
            }
            let state = if claiming { State::Claimed } else { State::Waiting };
            let row = Row { state, ..inner.new_row(client, request) };
            inner.written.overwrite(client, row, None)
        })?;
        self.arrive().await?;
        self.contender(request)
    }

    /// Reads the partition, and remembers what it shows of other clients.
    pub(super) async fn look(&self) -> Result<Partition> {
        let look = self.client.store.read(&self.key).await?;
        let mut inner = self.inner();
        inner.written.take_note(judge::largest_token(&look));
        inner.seen.take_note(&look, &self.client);
        Ok(look)
    }

    /// Returns whether the place was taken by a clock that is behind that of a waiter: then it is unknown which of the two came first.
    /// Asked once, after the first look of an acquisition; a place that was given to the request is kept.
    pub(super) fn is_misplaced(&self, request: &Request) -> bool {
        let seen = &mut self.inner().seen;
        let is_first = seen.placed.replace(request.id) != Some(request.id);
        is_first && seen.is_slow && request.ticket.is_none() && request.fairness != Fairness::Unfair
    }

    /// Takes a new place with [`ticket`](Self::ticket), and waits there without a claim.
    pub(super) async fn requeue(&self, request: &Request) -> Result<()> {
        let ticket = self.ticket();
        self.change(request, |row| Row { state: State::Waiting, ticket, ..row }, None).await
    }

    /// Claims: writes the contender into the main row, with a new token above `floor` and above every token that was seen.
    pub(super) async fn claim(&self, request: &Request, floor: Option<StoreToken>) -> Result<()> {
        self.change(request, |row| Row { state: State::Claimed, ..row }, floor).await
    }

    /// Takes the claim back and stays in the queue.
    pub(super) async fn withdraw(&self, request: &Request) -> Result<()> {
        self.change(request, |row| Row { state: State::Waiting, ..row }, None).await
    }

    /// Writes the row again as it is, for another lease.
    pub(super) async fn stay(&self, request: &Request) -> Result<()> {
        self.change(request, |row| row, None).await
    }

    /// Sheds a revocation that came before the entry: only holders give up. The row goes on under another name, at the same place, and
    /// a claim gets a new token: so the revocation names no acquisition any more, and one that comes after the entry is a new one.
    pub(super) async fn shed(&self, request: &Request) -> Result<()> {
        self.decide(|client, inner| {
            let row = inner.written.own_row(request)?;
            let acquisition = AcquisitionId::new(&*client.environment);
            inner.written.overwrite(client, Row { acquisition, ..row }, None)?;
            // Only after the write is decided: where that fails, the row goes on under the old name, and is left under it.
            inner.written.rename(request.id, acquisition);
            Ok(())
        })?;
        self.arrive().await.map(drop)
    }

    /// Overwrites the row of a request that takes part.
    async fn change(
        &self,
        request: &Request,
        change: impl FnOnce(Row) -> Row,
        floor: Option<StoreToken>,
    ) -> Result<()> {
        self.decide(|client, inner| {
            let row = change(inner.written.own_row(request)?);
            inner.written.overwrite(client, row, floor)
        })?;
        self.arrive().await.map(drop)
    }

    /// Enters with the claim, which has won: from here on its token counts as used. If another client may be watching, the row says so
    /// at once, without keeping the new holder waiting.
    pub(super) fn enter(self: &Arc<Self>, request: &Request) -> Result<()> {
        let mut inner = self.inner();
        let row = inner.written.own_row(request)?;
        inner.written.enter();
        if !inner.seen.others_within(request.lease, self.client.now()) {
            return Ok(());
        }
        let row = Row { state: State::Held, since: self.client.environment.wall_micros(), ..row };
        inner.written.overwrite(&self.client, row, None)?;
        drop(inner);
        let seat = Arc::clone(self);
        self.client.environment.spawn(Box::pin(async move {
            // If it is not acknowledged, the next renewal or the release supersedes it.
            drop(seat.arrive().await);
        }));
        Ok(())
    }

    /// Moves from the shadow row to the main row, with a token above `floor`.
    pub(super) async fn move_in(&self, request: &Request, floor: Option<StoreToken>) -> Result<()> {
        let since = self.client.environment.wall_micros();
        self.change(request, |row| Row { state: State::Held, since, ..row }, floor).await
    }

    /// Returns the token of the cell in the main row, which a quorum has: from here on that token counts as used.
    pub(super) fn moved_in(&self, request: &Request) -> Result<Option<StoreToken>> {
        let written = &mut self.inner().written;
        written.own_row(request)?;
        written.enter();
        Ok(written.claim().map(|claim| claim.token))
    }

    /// Rewrites the held row for another lease. Returns the moment just before the write was sent, or nothing if this seat has released
    /// the acquisition already: a renewal never brings back what a release has ended.
    pub(super) async fn hold(
        &self,
        id: AcquisitionId,
        mode: Mode,
        next: Option<Next>,
    ) -> Result<Option<Moment>> {
        let holds = self.decide(|client, inner| {
            let Some(row) = inner.written.row_of(id).cloned() else { return Ok(false) };
            let since = if row.state == State::Held { row.since } else { client.environment.wall_micros() };
            let row = Row { state: State::Held, mode, next, since, ..row };
            inner.written.overwrite(client, row, None).map(|()| true)
        })?;
        if holds { self.arrive().await.map(Some) } else { Ok(None) }
    }

    /// Ends an acquisition in one write, wherever it stands: in the queue, in the main row, at the place behind what is held, or in
    /// doubt. With `next`, that request joins the queue in the same write. Returns whether the acquisition was there: if not, nothing
    /// is written.
    ///
    /// Can be repeated until it is acknowledged.
    pub(crate) async fn leave(&self, id: AcquisitionId, next: Option<&Request>) -> Result<bool> {
        let was_there = self.decide(|client, inner| {
            let Some(row) = inner.row_without(client, id, next) else {
                // Never there; or left already, by a write that may have to be sent again.
                return Ok(inner.written.leaving == Some(id));
            };
            inner.written.leaving = Some(id);
            inner.written.overwrite(client, row.clone(), None).or_else(|_| {
                // There is no token for the next request. That is no reason to stay: that request gets the error when it claims.
                inner.written.overwrite(client, Row { state: State::Waiting, ..row }, None)
            })?;
            Ok(true)
        })?;
        if was_there {
            self.arrive().await?;
            let leaving = &mut self.inner().written.leaving;
            leaving.take_if(|leaving| *leaving == id);
        }
        Ok(was_there)
    }

    /// Sends once more what was left in doubt.
    pub(crate) async fn settle(&self) -> Result<()> {
        if self.is_left() { self.arrive().await.map(drop) } else { Ok(()) }
    }

    /// Returns whether no acquisition of this seat takes part.
    pub(crate) fn is_left(&self) -> bool {
        self.inner().written.is_left()
    }

    /// Returns whether all that was written is known to have arrived, and every used token to be saved.
    pub(crate) fn is_settled(&self) -> bool {
        let written = &self.inner().written;
        written.row().is_none() || (written.is_acknowledged() && !written.has_unsaved_token())
    }

    /// Returns whether the servers have forgotten what was written last. It is not known when a write without an acknowledgement was
    /// sent, so such a write does not count.
    fn has_expired(&self) -> bool {
        let written = &self.inner().written;
        let ttl = Duration::from_secs(u64::from(written.row_ttl())) + self.client.max_clock_skew;
        written.is_acknowledged() && written.sent().plus(ttl) <= self.client.now()
    }

    /// Removes the row, unless it has expired by itself, or is the only place where a used token is known to be.
    pub(crate) async fn erase(&self) -> Result<()> {
        let stamp = {
            let written = &self.inner().written;
            if written.row().is_none() || written.has_unsaved_token() {
                return Ok(());
            }
            self.client.stamps.next(&*self.client.environment)
        };
        if self.has_expired() {
            return Ok(());
        }
        self.client.store.erase(&self.key, self.client.slot, stamp).await
    }

    /// Returns the name under which the row shows an acquisition.
    pub(super) fn shown_as(&self, id: AcquisitionId) -> AcquisitionId {
        self.inner().written.shown_as(id)
    }

    /// Returns the moment just before the write was sent that this claim's lease counts from.
    pub(super) fn sent(&self) -> Moment {
        self.inner().written.sent()
    }

    /// Returns whether the last look showed no other client that takes part.
    pub(super) fn is_alone(&self) -> bool {
        self.inner().seen.others == 0
    }

    /// Returns how fast the queue moves here, as far as it is known.
    pub(super) fn learnt(&self) -> Learnt {
        self.inner().seen.learnt
    }

    pub(super) fn remember(&self, learnt: Learnt) {
        self.inner().seen.learnt = learnt;
    }

    /// Returns the pause of a newcomer before its first look, if this seat has seen a queue just now.
    pub(super) fn first_pause(&self) -> Option<Duration> {
        let seen = &self.inner().seen;
        let pause = seen.learnt.first_pause(seen.others);
        seen.others_within(pause, self.client.now()).then_some(pause)
    }

    /// Returns a place in the queue: behind every ticket that the last look showed and the clock follows, unless there is a global time.
    pub(super) fn ticket(&self) -> Ticket {
        let largest = self.inner().seen.largest_ticket;
        self.client.ticket_after(largest)
    }

    /// Decides the next write. Nothing else may happen between reading the last write and deciding this one.
    fn decide<T>(&self, decide: impl FnOnce(&Client, &mut Inner) -> Result<T>) -> Result<T> {
        decide(&self.client, &mut self.inner())
    }

    /// Sends what was decided last, unless a quorum has it. Returns the moment just before it was sent.
    async fn arrive(&self) -> Result<Moment> {
        let (attempt, sent) = {
            let written = &mut self.inner().written;
            match written.attempt(&self.client) {
                Some(attempt) => (attempt, self.client.now()),
                None => return Ok(written.sent()),
            }
        };
        self.client.store.write(&self.key, self.client.slot, &attempt).await?;
        self.inner().written.acknowledge(&attempt, sent);
        Ok(sent)
    }

    /// Returns the contender as it was last written.
    fn contender(&self, request: &Request) -> Result<Contender> {
        let written = &self.inner().written;
        let row = written.own_row(request)?;
        let claim = written.claim().filter(|_| row.state == State::Claimed);
        Ok(Contender {
            slot: self.client.slot,
            acquisition: row.acquisition,
            mode: row.mode,
            ticket: row.ticket,
            fairness: request.fairness,
            claimed: claim.map(|claim| claim.token),
        })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn new_row(&self, client: &Client, request: &Request) -> Row {
        Row {
            acquisition: self.written.shown_as(request.id),
            mode: request.mode,
            state: State::Waiting,
            ticket: request.ticket.unwrap_or_else(|| client.ticket_after(self.seen.largest_ticket)),
            owner: request.owner,
            client: request.client.clone(),
            since: client.environment.wall_micros(),
            lease: request.lease,
            next: None,
        }
    }

    /// Returns the row without what it shows of this acquisition; nothing if it shows nothing of it.
    fn row_without(&mut self, client: &Client, id: AcquisitionId, next: Option<&Request>) -> Option<Row> {
        if let Some(left) = self.written.row_of(id).cloned() {
            self.written.exit();
            return Some(self.row_after(client, left, next));
        }
        let row = self.written.row().filter(|row| row.next.is_some_and(|next| next.acquisition == id))?;
        // A holder that has lost the lock does not write itself back; and the place of the waiter behind it goes with its row.
        let is_valid = client.now() < valid_until(self.written.sent(), row.lease);
        is_valid.then(|| Row { next: None, ..row.clone() })
    }

    /// Returns the row that follows one that is left: idle, or that of the `next` request. A request that was shown waiting behind the
    /// row keeps its place; if the last look showed no other client, the request claims at once.
    fn row_after(&self, client: &Client, left: Row, next: Option<&Request>) -> Row {
        let Some(next) = next else { return Row { state: State::Idle, next: None, ..left } };
        let row = self.new_row(client, next);
        let shown = left.next.filter(|shown| shown.mode == next.mode).map(|shown| shown.ticket);
        let state = if self.seen.others > 0 { State::Waiting } else { State::Claimed };
        Row { state, ticket: next.ticket.or(shown).unwrap_or(row.ticket), ..row }
    }
}
