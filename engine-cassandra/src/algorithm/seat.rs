//! One client's row at one key, and the only place that writes it.
//!
//! Contents and timestamp of a write are decided together, under one lock, and what is decided last has the largest timestamp.
//! Writes may be on their way side by side and arrive in any order, late or twice: the last decision wins. So a write with
//! unknown outcome is never forgotten: it is sent again as it was, or superseded by the next one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ylock_core::engine::{AcquisitionId, Request, Ticket};
use ylock_core::environment::{Environment, Moment};
use ylock_core::{Error, ErrorKind, Fairness, Key, Mode, Result, StoreToken};

use super::clock::{GlobalTime, HybridClock, Stamps};
use super::judge::{self, Contender};
use super::pace::Learnt;
use super::store::{Claim, Next, Partition, Row, Slot, State, Store, TimedClaim, Write};

/// What all seats of one client share.
#[derive(Debug)]
pub struct Client {
    /// The client's row in every partition.
    pub slot: Slot,
    /// Cassandra.
    pub store: Arc<dyn Store>,
    /// Time, randomness and tasks.
    pub environment: Arc<dyn Environment>,
    /// Tokens, and tickets unless there is a global time.
    pub clock: HybridClock,
    /// The thesis's time service, if the options want tickets from it.
    pub global_time: Option<Arc<GlobalTime>>,
    /// Write timestamps.
    pub stamps: Stamps,
    /// By how much the clocks of two servers may differ: rows live longer by this.
    pub max_clock_skew: Duration,
    /// How long a token outlives its grant, in seconds.
    pub token_ttl: u32,
}

impl Client {
    /// How long a row of this lease lives, in whole seconds. Servers count whole seconds, so up to one is lost, and they
    /// count on clocks that differ.
    pub fn row_ttl(&self, lease: Duration) -> u32 {
        let exact = lease.as_secs_f64().ceil() + 1.0 + self.max_clock_skew.as_secs_f64().ceil();
        exact as u32
    }

    /// A place in the queue, behind `largest` if that is known.
    pub(crate) fn ticket_after(&self, largest: Option<Ticket>) -> Ticket {
        if let Some(time) = &self.global_time {
            // As the thesis has it: two may have the same, and then the slot decides.
            return Ticket::from_number(time.latest());
        }
        let tick = self.clock.tick(&*self.environment);
        Ticket::from_number(largest.map_or(tick, |largest| tick.max(largest.get().saturating_add(1))))
    }

    /// A token larger than `largest`.
    fn token_after(&self, largest: Option<StoreToken>) -> Result<StoreToken> {
        let lead = largest.map_or(0, StoreToken::get).saturating_sub(self.wall());
        if Duration::from_micros(lead) > Duration::from_secs(u64::from(self.token_ttl)) / 2 {
            return Err(too_far_ahead(Duration::from_micros(lead)));
        }
        let tick = u64::try_from(self.clock.tick(&*self.environment)).unwrap_or(1);
        let next = largest.map_or(tick, |largest| tick.max(largest.get() + 1));
        StoreToken::new(next)
            .ok_or_else(|| Error::new(ErrorKind::Unexpected, "a token at this key is the largest there is"))
    }

    fn wall(&self) -> u64 {
        u64::try_from(self.environment.wall_micros()).unwrap_or(0)
    }

    pub(crate) fn now(&self) -> Moment {
        self.environment.now()
    }
}

/// See the [module](self).
#[derive(Debug)]
pub struct Seat {
    /// Which lock.
    pub key: Key,
    /// Whose.
    pub client: Arc<Client>,
    written: Mutex<Written>,
}

/// What was decided last, and what is known to have arrived.
#[derive(Debug, Default)]
struct Written {
    last: Option<Write>,
    /// A quorum has `last`.
    acknowledged: bool,
    /// Just before the attempt was sent with which `last` was acknowledged.
    sent: Moment,
    /// A grant has been entered with the claim that the row shows, and has not been left.
    inside: bool,
    /// The token that a grant of this seat used last.
    used: Option<Claim>,
    /// `used`, as long as no write is acknowledged that saved it in the last holders' cells. Part of every write from the one
    /// that leaves on, because that one may never arrive.
    unsaved: Option<Claim>,
    /// The acquisition whose place has stood a look: it is kept from then on.
    placed: Option<AcquisitionId>,
    largest_ticket: Option<Ticket>,
    /// Whether the last look showed somebody waiting with a ticket that was later than the own clock.
    is_slow: bool,
    largest_token: Option<StoreToken>,
    /// How many others the last look showed.
    others: usize,
    /// How fast the queue moves here.
    learnt: Learnt,
    /// When a look last showed somebody else.
    others_seen: Option<Moment>,
}

impl Seat {
    /// The row of `client` at `key`, not written yet.
    pub fn new(key: Key, client: Arc<Client>) -> Self {
        Self { key, client, written: Mutex::default() }
    }

    /// Joins the queue, claiming at once or not. For a request that has joined, nothing is decided anew, but what was decided
    /// last is sent again unless a quorum has it. Answers the contender as it stands.
    pub(super) async fn join(&self, request: &Request, claiming: bool) -> Result<Contender> {
        self.decide(|seat, written| {
            if written.own_row(request).is_ok() {
                return Ok(());
            }
            let state = if claiming { State::Claimed } else { State::Waiting };
            let row = Row { state, ..seat.new_row(request, written.largest_ticket) };
            written.overwrite(seat, row, None)
        })?;
        self.arrive().await?;
        self.contender(request)
    }

    /// Reads the partition, and remembers what it shows of others.
    pub(super) async fn look(&self) -> Result<Partition> {
        let look = self.client.store.read(&self.key).await?;
        let mut written = self.written();
        let client = &self.client;
        let now = client.clock.now(&*client.environment);
        let latest = client.clock.latest_of(judge::tickets(&look, client.slot), &*client.environment);
        // Not the largest ever: a place that was far ahead, and is gone, must not be followed any longer.
        written.largest_ticket = latest.map(Ticket::from_number);
        written.is_slow = judge::waiting(&look, client.slot)
            .any(|ticket| now < ticket.get() && Some(ticket.get()) <= latest);
        written.largest_token = written.largest_token.max(judge::largest_token(&look));
        written.others = judge::others(&look, self.client.slot);
        if written.others > 0 {
            written.others_seen = Some(self.client.now());
        }
        if let Some(latest) = latest {
            self.client.clock.observe(latest, &*self.client.environment);
        }
        Ok(look)
    }

    /// Whether the place was taken by a clock that is slower than that of somebody who waits: then nobody knows who came first.
    /// Asked once, after the first look of an acquisition; a place that was given to the request is kept.
    pub(super) fn is_misplaced(&self, request: &Request) -> bool {
        let mut written = self.written();
        let is_first = written.placed.replace(request.id) != Some(request.id);
        is_first && written.is_slow && request.ticket.is_none() && request.fairness != Fairness::Unfair
    }

    /// Goes behind everybody seen, without a claim.
    pub(super) async fn requeue(&self, request: &Request) -> Result<()> {
        let ticket = self.ticket();
        self.change(request, |row| Row { state: State::Waiting, ticket, ..row }, None).await
    }

    /// Writes itself into the main row, with a new token above `floor` and above all seen.
    pub(super) async fn claim(&self, request: &Request, floor: Option<StoreToken>) -> Result<()> {
        self.change(request, |row| Row { state: State::Claimed, ..row }, floor).await
    }

    /// Takes the claim back and stays in the queue.
    pub(super) async fn withdraw(&self, request: &Request) -> Result<()> {
        self.change(request, |row| Row { state: State::Waiting, ..row }, None).await
    }

    /// Shows itself for another lease, as it is.
    pub(super) async fn stay(&self, request: &Request) -> Result<()> {
        self.change(request, |row| row, None).await
    }

    /// Overwrites the row of a request that takes part.
    async fn change(
        &self,
        request: &Request,
        change: impl FnOnce(Row) -> Row,
        floor: Option<StoreToken>,
    ) -> Result<()> {
        self.decide(|seat, written| {
            let row = change(written.own_row(request)?);
            written.overwrite(seat, row, floor)
        })?;
        self.arrive().await.map(drop)
    }

    /// The claim has won: from here on its token counts as used. Says so in the row at once if somebody may be watching,
    /// without keeping the new holder waiting.
    pub(super) fn enter(self: &Arc<Self>, request: &Request) -> Result<()> {
        let mut written = self.written();
        let row = written.own_row(request)?;
        let claim = written.claim();
        (written.inside, written.used, written.unsaved) = (true, claim, claim);
        let watched = written.others_seen.is_some_and(|seen| self.client.now().since(seen) < request.lease);
        if !watched {
            return Ok(());
        }
        let row = Row { state: State::Held, since: self.client.environment.wall_micros(), ..row };
        written.overwrite(self, row, None)?;
        drop(written);
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

    /// A quorum has the cell in the main row: from here on its token, which is answered, counts as used.
    pub(super) fn moved_in(&self, request: &Request) -> Result<Option<StoreToken>> {
        let mut written = self.written();
        written.own_row(request)?;
        let claim = written.claim();
        (written.inside, written.used, written.unsaved) = (true, claim, claim);
        Ok(claim.map(|claim| claim.token))
    }

    /// Rewrites what is held for another lease. Answers the moment just before it was sent, or nothing if this seat has let go of
    /// it already: a renewal never brings back what a release has ended.
    pub(super) async fn hold(
        &self,
        id: AcquisitionId,
        mode: Mode,
        next: Option<Next>,
    ) -> Result<Option<Moment>> {
        let holds = self.decide(|seat, written| {
            let Some(row) = written.row().filter(|row| row.acquisition == id && written.inside) else {
                return Ok(false);
            };
            let since =
                if row.state == State::Held { row.since } else { seat.client.environment.wall_micros() };
            let row = Row { state: State::Held, mode, next, since, ..row.clone() };
            written.overwrite(seat, row, None).map(|()| true)
        })?;
        if holds { self.arrive().await.map(Some) } else { Ok(None) }
    }

    /// Leaves: the queue, the main row, or both, in one write; with `next` it joins the queue again in the same
    /// write. Answers whether this acquisition was the row's: if not, nothing is written.
    ///
    /// Can be repeated until it is acknowledged.
    pub(crate) async fn leave(&self, id: AcquisitionId, next: Option<&Request>) -> Result<bool> {
        let was_there = self.decide(|seat, written| {
            let Some(row) = written.row().cloned() else { return Ok(false) };
            if row.acquisition != id || row.state == State::Idle {
                // Never ours; or left already, by a write that may have to be sent again.
                let left = row.acquisition == id || next.is_some_and(|next| next.id == row.acquisition);
                return Ok(left && !written.acknowledged);
            }
            let row = seat.row_after(row, next, written);
            written.inside = false;
            written.overwrite(seat, row, None)?;
            Ok(true)
        })?;
        if was_there {
            self.arrive().await?;
        }
        Ok(was_there)
    }

    /// Whether nothing of this seat is in use, and all of it is known to have arrived.
    pub(crate) fn is_idle(&self) -> bool {
        let written = self.written();
        match written.row() {
            Some(row) => row.state == State::Idle && written.acknowledged && written.unsaved.is_none(),
            None => true,
        }
    }

    /// When the servers have forgotten what was written last, if it was not rewritten.
    pub(crate) fn expired_at(&self) -> Moment {
        let written = self.written();
        let ttl = written.last.as_ref().map_or(0, |last| last.row_ttl);
        written.sent.plus(Duration::from_secs(u64::from(ttl)) + self.client.max_clock_skew)
    }

    /// Removes the row, unless it has expired by itself, or is the only place where a used token is known to be.
    pub(crate) async fn erase(&self) -> Result<()> {
        let stamp = {
            let written = self.written();
            if written.row().is_none() || written.unsaved.is_some() {
                return Ok(());
            }
            self.client.stamps.next(&*self.client.environment)
        };
        if self.expired_at() <= self.client.now() {
            return Ok(());
        }
        self.client.store.erase(&self.key, self.client.slot, stamp).await
    }

    /// When the write was sent that this claim's lease counts from.
    pub(super) fn sent(&self) -> Moment {
        self.written().sent
    }

    /// Whether the last look showed nobody else.
    pub(super) fn is_alone(&self) -> bool {
        self.written().others == 0
    }

    /// How fast the queue moves here, as far as it is known.
    pub(super) fn learnt(&self) -> Learnt {
        self.written().learnt
    }

    pub(super) fn remember(&self, learnt: Learnt) {
        self.written().learnt = learnt;
    }

    /// How long a newcomer need not look, because it has just seen a queue.
    pub(super) fn first_pause(&self) -> Option<Duration> {
        let written = self.written();
        let pause = written.learnt.first_pause(written.others);
        let fresh = written.others_seen.is_some_and(|seen| self.client.now().since(seen) < pause);
        fresh.then_some(pause)
    }

    /// A place in the queue behind everybody this seat has seen.
    pub(super) fn ticket(&self) -> Ticket {
        let largest = self.written().largest_ticket;
        self.client.ticket_after(largest)
    }

    /// Decides the next write. Nothing else may happen between looking at the last one and deciding this one.
    fn decide<T>(&self, decide: impl FnOnce(&Self, &mut Written) -> Result<T>) -> Result<T> {
        decide(self, &mut self.written())
    }

    /// Sends what was decided last, unless a quorum has it. Answers the moment just before it was sent.
    async fn arrive(&self) -> Result<Moment> {
        let (write, sent) = {
            let written = self.written();
            match &written.last {
                Some(last) if !written.acknowledged => (last.clone(), self.client.now()),
                _ => return Ok(written.sent),
            }
        };
        self.client.store.write(&self.key, self.client.slot, &write).await?;
        let mut written = self.written();
        if write.used.map(|used| used.claim) == written.unsaved {
            written.unsaved = None;
        }
        if written.last.as_ref().is_some_and(|last| last.stamp == write.stamp) {
            (written.acknowledged, written.sent) = (true, sent);
        }
        Ok(sent)
    }

    /// The contender as it was last written.
    fn contender(&self, request: &Request) -> Result<Contender> {
        let written = self.written();
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

    fn new_row(&self, request: &Request, largest: Option<Ticket>) -> Row {
        Row {
            acquisition: request.id,
            mode: request.mode,
            state: State::Waiting,
            ticket: request.ticket.unwrap_or_else(|| self.client.ticket_after(largest)),
            owner: request.owner,
            since: self.client.environment.wall_micros(),
            lease: request.lease,
            next: None,
        }
    }

    /// What a row becomes that is left: idle, or the row of a request that follows. One that was shown waiting behind it keeps
    /// its place; one that saw nobody else claims at once.
    fn row_after(&self, left: Row, next: Option<&Request>, written: &Written) -> Row {
        let Some(next) = next else { return Row { state: State::Idle, next: None, ..left } };
        let row = self.new_row(next, written.largest_ticket);
        let shown = left.next.filter(|shown| shown.mode == next.mode).map(|shown| shown.ticket);
        let state = if written.others > 0 { State::Waiting } else { State::Claimed };
        Row { state, ticket: next.ticket.or(shown).unwrap_or(row.ticket), ..row }
    }

    fn new_claim(&self, mode: Mode, floor: Option<StoreToken>) -> Result<Claim> {
        let token = self.client.token_after(floor)?;
        Ok(Claim { token, mode })
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Written {
    fn row(&self) -> Option<&Row> {
        self.last.as_ref().map(|last| &last.row)
    }

    /// The token cell, as it was last written.
    fn claim(&self) -> Option<Claim> {
        self.last.as_ref()?.claim.map(|timed| timed.claim)
    }

    /// The row, if it is this request's.
    fn own_row(&self, request: &Request) -> Result<Row> {
        let own = self.row().filter(|row| row.acquisition == request.id && row.state != State::Idle);
        own.cloned().ok_or_else(|| {
            let message = "the acquisition was released while it was going on";
            Error::new(ErrorKind::Indeterminate, message)
        })
    }

    /// Decides a write. It says everything that the row shall say, so that it does not matter whether the one before it arrives.
    fn overwrite(&mut self, seat: &Seat, row: Row, floor: Option<StoreToken>) -> Result<()> {
        let row_ttl = seat.client.row_ttl(row.lease);
        let claim = self.claim_for(seat, &row, floor)?;
        let ttl =
            if matches!(row.state, State::Claimed | State::Held) { seat.client.token_ttl } else { row_ttl };
        let save = self.unsaved.filter(|_| !self.inside);
        self.last = Some(Write {
            stamp: seat.client.stamps.next(&*seat.client.environment),
            row,
            row_ttl,
            claim: claim.map(|claim| TimedClaim { claim, ttl: ttl.max(row_ttl) }),
            used: save.map(|claim| TimedClaim { claim, ttl: seat.client.token_ttl }),
        });
        self.acknowledged = false;
        Ok(())
    }

    /// What the token cell shall say.
    fn claim_for(&self, seat: &Seat, row: &Row, floor: Option<StoreToken>) -> Result<Option<Claim>> {
        let claimed = |state: State| matches!(state, State::Claimed | State::Held);
        let same = self.row().is_some_and(|last| last.acquisition == row.acquisition && claimed(last.state));
        match self.claim() {
            // A claim goes on with its token, unless that is too small.
            Some(claim) if claimed(row.state) && same && floor.is_none() => Ok(Some(claim)),
            _ if claimed(row.state) => seat.new_claim(row.mode, self.largest_token.max(floor)).map(Some),
            // Without a claim the cell goes back to a token that was used: else somebody who only came and went would push the
            // first waiter into another round.
            Some(_) => Ok(Some(self.used.unwrap_or(Claim { token: StoreToken::LOWEST, mode: row.mode }))),
            None => Ok(None),
        }
    }
}

/// A name whose tokens are forgotten starts anew from the clocks: a token that is still ahead of them then would be larger than
/// those that follow it. Half of the time is left to find that out.
fn too_far_ahead(lead: Duration) -> Error {
    let message = format!(
        "the last token of this lock is {lead:?} ahead of this machine's clock, more than half of token_ttl: either this          clock is slow, or somebody's clock was fast when it took the token. Set the clocks right; or connect with a          longer token_ttl"
    );
    Error::new(ErrorKind::Unexpected, message)
}
