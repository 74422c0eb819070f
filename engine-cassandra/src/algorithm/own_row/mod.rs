//! One client's row at one key, and the only place that writes it.
//!
//! Contents and timestamp of a write are decided together, under one lock, and what is decided last has the largest timestamp.
//! Writes may be on their way side by side and arrive in any order, late or twice: the last decision wins. So a write with
//! unknown outcome is never forgotten: it is sent again, with the same contents and a new timestamp, or superseded by the next
//! one.

mod burying;
mod client;
mod hints;
mod last_write;
mod release;
mod seen;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use ylock_core::engine::{AcquisitionId, Request, Ticket};
use ylock_core::environment::Moment;
use ylock_core::{Fairness, Key, Mode, Result, StoreToken};

pub(crate) use self::client::Client;
use self::last_write::LastWrite;
use self::seen::Seen;
use super::judge::{self, Contender};
use super::line::Line;
use super::notebook::Notebook;
use super::pace::Estimates;
use super::store::{LastTokens, Next, Partition, Row, State};
use crate::hints::{Endpoint, Inbox};

/// One client's row at one key; see the [module](self).
#[derive(Debug)]
pub(crate) struct OwnRow {
    /// The key of the lock.
    pub(crate) key: Key,
    /// The client that owns the row.
    pub(crate) client: Arc<Client>,
    inner: Mutex<Inner>,
    /// Where hints for this row arrive; nothing where the client cannot be told.
    inbox: Option<Arc<Inbox>>,
}

#[derive(Debug, Default)]
struct Inner {
    last_write: LastWrite,
    seen: Seen,
    /// Empty where the rows of dead clients go by their TTL alone.
    notebook: Notebook,
    /// The front of the queue, as the last look has shown it. Empty without hints, as the next one.
    line: Line,
    /// True if the row shall say that the client is inside, or in which mode, and those that wait do not know so yet.
    is_entry_untold: bool,
    /// Those to be told when a quorum has the write that leaves.
    behind: Vec<(Endpoint, bool)>,
}

impl OwnRow {
    /// Creates the state of the row of `client` at `key`, without writing the row.
    pub(crate) fn new(key: Key, client: Arc<Client>) -> Self {
        let inbox = client.hints.as_ref().map(|_| Arc::new(Inbox::new(key.clone())));
        Self { key, client, inner: Mutex::default(), inbox }
    }

    /// Joins the queue, claiming at once or not. For a request that has joined, nothing is decided anew, but what was decided last is
    /// sent again unless a quorum has it. Returns the contender as it stands.
    pub(super) async fn join(&self, request: &Request, claiming: bool) -> Result<Contender> {
        self.decide(|client, inner| {
            if inner.last_write.row_of(request.id).is_some() {
                return Ok(());
            }
            let state = if claiming { State::Claimed } else { State::Waiting };
            let row = Row { state, ..inner.new_row(client, request) };
            inner.last_write.overwrite(client, row, None)
        })?;
        self.arrive().await?;
        self.contender(request)
    }

    /// Returns whether an acquisition has joined, and not left.
    pub(super) fn takes_part(&self, id: AcquisitionId) -> bool {
        self.inner.lock().last_write.row_of(id).is_some()
    }

    /// Reads the partition for a client that wants in, and remembers what it shows of other clients.
    pub(super) async fn look(&self) -> Result<Partition> {
        self.look_and_learn(true).await
    }

    /// Reads the last tokens alone.
    pub(super) async fn last_tokens(&self) -> Result<LastTokens> {
        self.client.store.read_last_tokens(&self.key).await
    }

    /// Reads the partition for a client that is inside.
    pub(super) async fn look_from_inside(&self) -> Result<Partition> {
        self.look_and_learn(false).await
    }

    async fn look_and_learn(&self, wants_in: bool) -> Result<Partition> {
        let look = self.watch(wants_in).await?;
        let mut inner = self.inner.lock();
        inner.last_write.take_note(judge::largest_token(&look));
        inner.seen.take_note(&look, &self.client);
        self.note_line(&mut inner, &look);
        Ok(look)
    }

    /// Returns whether the place was taken by a clock that is behind that of a waiter: then it is unknown which of the two came first.
    /// Asked once, after the first look of an acquisition; a place that was given to the request is kept.
    pub(super) fn is_misplaced(&self, request: &Request) -> bool {
        let seen = &mut self.inner.lock().seen;
        let is_first = seen.placed.replace(request.id) != Some(request.id);
        is_first && seen.is_slow && request.ticket.is_none() && request.fairness != Fairness::Unfair
    }

    /// Returns whether the place is far behind one that would be taken now: the clock that it was taken by was wrong and has been set back, and
    /// all that come would go first.
    pub(super) fn is_far_behind(&self, request: &Request, me: &Contender) -> bool {
        let may_move = request.ticket.is_none() && request.fairness != Fairness::Unfair;
        may_move && self.client.is_far_ahead(me.ticket, self.ticket())
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
            let row = inner.last_write.own_row(request)?;
            let acquisition = AcquisitionId::new(&*client.environment);
            inner.last_write.overwrite(client, Row { acquisition, ..row }, None)?;
            // Only after the write is decided: where that fails, the row goes on under the old name, and is left under it.
            inner.last_write.rename(request.id, acquisition);
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
            let row = change(inner.last_write.own_row(request)?);
            inner.last_write.overwrite(client, row, floor)
        })?;
        self.arrive().await.map(drop)
    }

    /// Enters with the claim, which has won: from here on its token counts as used. If another client may be watching, the row says so
    /// at once, without keeping the new holder waiting. `is_contended`: the look by which it enters shows a waiter that conflicts.
    pub(super) fn enter(self: &Arc<Self>, request: &Request, is_contended: bool) -> Result<()> {
        let mut inner = self.inner.lock();
        let row = inner.last_write.own_row(request)?;
        inner.last_write.enter();
        inner.notebook.enters();
        if row.mode == Mode::Read && !is_contended {
            self.expect_writers();
        }
        if !inner.seen.others_within(request.lease, self.client.now()) {
            return Ok(());
        }
        let row = Row { state: State::Held, since: self.client.environment.wall_micros(), ..row };
        inner.last_write.overwrite(&self.client, row, None)?;
        inner.is_entry_untold = true;
        drop(inner);
        let own_row = Arc::clone(self);
        self.client.environment.spawn(Box::pin(async move {
            // If it is not acknowledged, the next renewal or the release supersedes it.
            if own_row.arrive().await.is_ok() {
                own_row.tell_of_entry();
            }
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
        let Inner { last_write, notebook, .. } = &mut *self.inner.lock();
        last_write.own_row(request)?;
        last_write.enter();
        notebook.enters();
        Ok(last_write.claim().map(|claim| claim.token))
    }

    /// Rewrites the held row for another lease. Returns the moment just before the write was sent, or nothing if the acquisition was
    /// released already: a renewal never brings back what a release has ended.
    pub(super) async fn hold(
        &self,
        id: AcquisitionId,
        mode: Mode,
        next: Option<Next>,
    ) -> Result<Option<Moment>> {
        let holds = self.decide(|client, inner| {
            let Some(row) = inner.last_write.row_of(id).cloned() else { return Ok(false) };
            // The next one can claim once the row says that this client is inside, and readers enter where it goes on as a reader.
            inner.is_entry_untold |= row.state != State::Held || row.mode != mode;
            // The time since which it is shown stays: a client whose row did not say that it is inside had entered as soon as it came.
            let row = Row { state: State::Held, mode, next, ..row };
            inner.last_write.overwrite(client, row, None).map(|()| true)
        })?;
        if !holds {
            return Ok(None);
        }
        let sent = self.arrive().await?;
        self.tell_of_entry();
        Ok(Some(sent))
    }

    /// Returns the name under which the row shows an acquisition.
    pub(super) fn shown_as(&self, id: AcquisitionId) -> AcquisitionId {
        self.inner.lock().last_write.shown_as(id)
    }

    /// Returns the moment just before the write was sent that this claim's lease counts from.
    pub(super) fn sent(&self) -> Moment {
        self.inner.lock().last_write.sent()
    }

    /// Returns whether the last look showed no other client that takes part.
    pub(super) fn is_alone(&self) -> bool {
        self.inner.lock().seen.others == 0
    }

    /// Returns how fast the queue moves here, as far as it is known.
    pub(super) fn estimates(&self) -> Estimates {
        self.inner.lock().seen.estimates
    }

    pub(super) fn remember(&self, estimates: Estimates) {
        self.inner.lock().seen.estimates = estimates;
    }

    /// Returns the pause of a newcomer before its first look, if the last look for this row has shown a queue just now; and those of which it is
    /// expected that they tell of the turn, if it relies on that.
    pub(super) fn first_pause(&self) -> Option<(Duration, Vec<SocketAddr>)> {
        let (inner, now) = (self.inner.lock(), self.client.now());
        let seen = &inner.seen;
        let ends: Vec<_> = inner.line.ends().map(|end| end.address).collect();
        let relies = seen.told.works() && !ends.is_empty() && !seen.mute.includes(&ends, now);
        let pause = match relies {
            true => seen.estimates.first_pause_until_told(seen.others),
            false => seen.estimates.first_pause(seen.others),
        };
        let last = ends.last().copied().filter(|_| relies);
        seen.others_within(pause, now).then(|| (pause, last.into_iter().collect()))
    }

    /// Returns a place in the queue: behind every ticket that the last look showed and the clock follows, unless there is a global time.
    pub(super) fn ticket(&self) -> Ticket {
        let largest = self.inner.lock().seen.largest_ticket;
        self.client.ticket_after(largest)
    }

    /// Decides the next write. Nothing else may happen between reading the last write and deciding this one.
    fn decide<T>(&self, decide: impl FnOnce(&Client, &mut Inner) -> Result<T>) -> Result<T> {
        let mut inner = self.inner.lock();
        let decided = decide(&self.client, &mut inner);
        self.receive_for(&inner);
        decided
    }

    /// Sends what was decided last, unless a quorum has it. Returns the moment just before it was sent.
    async fn arrive(&self) -> Result<Moment> {
        let (attempt, sent) = {
            let last_write = &mut self.inner.lock().last_write;
            match last_write.attempt(&self.client) {
                Some(attempt) => (attempt, self.client.now()),
                None => return Ok(last_write.sent()),
            }
        };
        if let Err(error) = self.client.store.write(&self.key, self.client.slot, &attempt.write).await {
            if error.had_no_effect() {
                self.inner.lock().last_write.refused(&attempt);
            }
            return Err(error);
        }
        self.inner.lock().last_write.acknowledge(&attempt.write, sent, self.client.now());
        self.tell_of_leaving();
        Ok(sent)
    }

    /// Returns the contender as it was last written.
    fn contender(&self, request: &Request) -> Result<Contender> {
        let last_write = &self.inner.lock().last_write;
        let row = last_write.own_row(request)?;
        let claim = last_write.claim().filter(|_| row.state == State::Claimed);
        Ok(Contender {
            slot: self.client.slot,
            acquisition: row.acquisition,
            mode: row.mode,
            ticket: row.ticket,
            fairness: request.fairness,
            claimed: claim.map(|claim| claim.token),
        })
    }
}

impl Inner {
    fn new_row(&self, client: &Client, request: &Request) -> Row {
        Row {
            acquisition: self.last_write.shown_as(request.id),
            mode: request.mode,
            state: State::Waiting,
            ticket: request.ticket.unwrap_or_else(|| client.ticket_after(self.seen.largest_ticket)),
            owner: request.owner,
            client: request.client.clone(),
            since: client.environment.wall_micros(),
            lease: request.lease,
            next: None,
            hints: client.hints.as_ref().map(|hints| hints.new_endpoint()),
        }
    }
}
