//! The keeper's knowledge of one key: the holders and the waiters of this process, and where its one contender
//! stands in the store.
//!
//! Everything here is decided under the lock of the entry's shard and without waiting. What follows from a
//! decision (wake a waiter, start a task) is collected in [`Effects`] and done after that lock is released.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, oneshot};

use super::effects::{Effects, Reply, Ungranted};
use super::hold::{Hold, Way};
use super::logged::Logged;
use super::renewal::{Turn, next_renewal, retry_pause};
use super::self_wait::{Caller, Site};
use super::validity::Validity;
use crate::client_name::SharedName;
use crate::contact::Contact;
use crate::engine::{AcquisitionId, Engine, Grant, LossReason, Patience, Request, Ticket, valid_until};
use crate::environment::{Environment, Moment};
use crate::error::{Error, ErrorKind, Result};
use crate::events::{ClientEvent, End};
use crate::key::Key;
use crate::mode::Mode;
use crate::options::{Fairness, Options};
use crate::owner::Owner;
use crate::token::Token;
use crate::unlocked::Unlocked;

/// The world around an entry, as far as the entry needs to know it.
pub(super) struct Context<'a> {
    pub(super) client: &'a SharedName,
    pub(super) engine: &'a Arc<dyn Engine>,
    pub(super) environment: &'a dyn Environment,
    pub(super) key: &'a Key,
    /// True if any layer hears what the client does by itself.
    pub(super) watched: bool,
}

impl Context<'_> {
    /// Returns the present moment. Not a field: most decisions do not need it, and asking costs more than they do.
    pub(super) fn now(&self) -> Moment {
        self.environment.now()
    }
}

/// The state of one key.
#[derive(Debug, Default)]
pub(super) struct Entry {
    /// The waiters of this process, in the order in which they are served.
    pub(super) queue: VecDeque<Waiter>,
    /// The holders of this process. There are some only while `store` is [`Store::Granted`].
    pub(super) holders: Vec<Holder>,
    pub(super) store: Store,
    /// The contact of the task that drives this entry's requests to the store, if one does. At most one does, so that there is one
    /// contender per key.
    pub(super) driver: Option<Arc<Contact>>,
}

/// The state of the one contender of this process.
#[derive(Debug, Default)]
pub(super) enum Store {
    /// The store knows nothing of us.
    #[default]
    Absent,
    /// A request is in the store's queue, or on its way there.
    Contending(Contender),
    /// The store has granted it.
    Granted(Box<Granted>),
    /// It is being given back, or an unknown outcome is being undone.
    Releasing(Leaving),
}

#[derive(Debug)]
pub(super) struct Contender {
    pub(super) request: Request,
    /// Rung when no waiter of this process waits for it any more.
    pub(super) cancel: Arc<Notify>,
}

#[derive(Debug)]
pub(super) struct Granted {
    /// The grant as the store was last told to show it: its mode is `Read` from the moment a downgrade is
    /// decided, because from then on the store may let readers in.
    pub(super) grant: Grant,
    pub(super) validity: Arc<Validity>,
    /// The lease that the store was asked for. It may have given a shorter one, and would not give more to the next contender that asks.
    asked_lease: Duration,
    pub(super) since: Moment,
    /// The number of times that the grant went from one local holder to the next: part of the token. At most one more than may be
    /// handed over, because a reader may join a writer that has become a reader.
    hand_overs: u32,
    /// A writer has this number in its token. A later holder needs a larger one, also a reader that shares the lock with the writer once
    /// that has given up writing: otherwise a resource could not tell a write that is still on its way from a new one.
    written: bool,
    /// The grant has had no holder yet.
    fresh: bool,
    /// Other contenders went first in the store.
    waited: bool,
    /// A local waiter that conflicts, as the store shall show it.
    pub(super) next: Option<Request>,
    /// True if renewals name `next`. Not after a renewal that failed: what the store has against the announcement must not cost the
    /// holders their lock.
    pub(super) announces: bool,
    /// The moment at which the store last told whether a conflicting contender waits elsewhere.
    looked: Moment,
    pub(super) renewing: bool,
    /// The error of the last renewal, if it failed.
    pub(super) failure: Option<Error>,
    /// Something changed during a renewal that the store must be told.
    pub(super) renew_again: bool,
    /// The number of the current entry in the schedule; the others are stale.
    pub(super) turn: u64,
    /// The callers that wait for the store to show a downgrade.
    pub(super) shown: Vec<oneshot::Sender<Result<()>>>,
    /// The holder that was the last one to give back.
    pub(super) last_holder: Option<LastHolder>,
}

/// A holder that has given back, as the log names it.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastHolder {
    pub(super) owner: Owner,
    pub(super) token: Option<Token>,
}

#[derive(Debug)]
pub(super) struct Leaving {
    pub(super) id: AcquisitionId,
    /// The request that follows in the same trip. The store may have it as soon as the release was sent once, whatever the answer: it
    /// stays the same in every attempt, and is undone if the release is given up.
    pub(super) next: Option<Request>,
    /// The time after which the store has freed what is not given back.
    pub(super) lease: Duration,
    pub(super) since: Moment,
    /// The end of the grant's validity, if it was granted: until then the store has the grant.
    pub(super) valid_until: Moment,
    /// The moment at which the first attempt began, once that has failed.
    pub(super) began: Option<Moment>,
    /// The failed attempts, and those that were dropped. The request of each may have been sent.
    pub(super) attempts: u32,
    /// True if it had to wait for a place among the releases that are on their way.
    pub(super) throttled: bool,
    /// The driver's wait for that place. Rung when a waiter comes.
    pub(super) waits_for_place: Option<Arc<Notify>>,
    /// It was granted.
    pub(super) held: bool,
    /// The last of its holders, if it had any.
    pub(super) last_holder: Option<LastHolder>,
    /// The result for the callers that wait for the release.
    pub(super) result: Unlocked,
    pub(super) done: Vec<oneshot::Sender<Result<Unlocked>>>,
}

/// One owner's hold and its counts.
#[derive(Debug)]
pub(super) struct Holder {
    pub(super) hold: Arc<Hold>,
    pub(super) writes: u32,
    pub(super) reads: u32,
    /// The moment at which its first acquisition was granted. Without layers no clock is read for it, and it is that of the grant.
    pub(super) since: Moment,
    pub(super) caller: Caller,
    /// The place of the last acquisition by which the owner entered again, whether its guard is still there or not.
    pub(super) again: Option<Site>,
}

impl Holder {
    pub(super) fn mode(&self) -> Mode {
        if self.writes > 0 { Mode::Write } else { Mode::Read }
    }

    /// Returns what the layers are told of the end of this hold.
    pub(super) fn ended(&self, context: &Context<'_>, mode: Mode, end: End) -> ClientEvent {
        ClientEvent::HoldEnded {
            key: context.key.clone(),
            owner: self.hold.owner,
            mode,
            held: context.now().since(self.since),
            end,
        }
    }

    /// Counts one more acquisition of the same owner, made at this place.
    fn reenter(&mut self, mode: Mode, at: Site, key: &Key) -> Result<()> {
        if mode == Mode::Write && self.writes == 0 {
            let message =
                "the owner holds this lock as a reader and wants to write: give the read guard back first";
            return Err(Error::new(ErrorKind::WouldDeadlock, message).with_key(key));
        }
        let count = if mode == Mode::Write { &mut self.writes } else { &mut self.reads };
        *count = count.checked_add(1).ok_or_else(|| {
            Error::new(ErrorKind::Invalid, "one owner holds this lock more than 4 294 967 295 times")
                .with_key(key)
        })?;
        self.again = Some(at);
        Ok(())
    }
}

/// A waiter of this process.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) number: u64,
    pub(super) owner: Owner,
    /// The owner was named by the caller, so that other waiters may have the same one.
    pub(super) named: bool,
    pub(super) mode: Mode,
    /// Does not stay in the store's queue.
    pub(super) tries: bool,
    /// This process held the lock, or waited for it, when the waiter came.
    pub(super) met_others: bool,
    pub(super) arrived: Moment,
    /// For `Fairness::Strict`: the place in the queue of all processes, taken on arrival.
    pub(super) ticket: Option<Ticket>,
    pub(super) options: Arc<Options>,
    pub(super) caller: Caller,
    pub(super) reply: oneshot::Sender<Reply>,
}

impl Waiter {
    /// Returns whether this request is at the place of this waiter. Only a [`Fairness::Strict`] waiter has a place of its own: in one order
    /// over all processes no waiter may take the place of an earlier waiter that has gone.
    fn stands_at(&self, request: &Request) -> bool {
        self.ticket.is_none_or(|own| request.ticket == Some(own))
    }
}

/// The next step in the store.
pub(super) enum Step {
    Acquire(Request, Arc<Notify>),
    Release { id: AcquisitionId, next: Option<Request>, attempts: u32, lease: Duration },
    Nothing,
}

impl Entry {
    pub(super) fn is_forgettable(&self) -> bool {
        matches!(self.store, Store::Absent) && self.queue.is_empty() && self.driver.is_none()
    }

    /// Grants at once if this owner holds the key already.
    pub(super) fn reenter(
        &mut self,
        key: &Key,
        owner: Owner,
        mode: Mode,
        at: Site,
    ) -> Option<Result<Arc<Hold>>> {
        let Store::Granted(granted) = &self.store else { return None };
        let holder = self.holders.iter_mut().find(|holder| holder.hold.owner == owner)?;
        if !granted.validity.is_valid() {
            return None;
        }
        Some(holder.reenter(mode, at, key).map(|()| Arc::clone(&holder.hold)))
    }

    /// Returns whether a `try_*` may stay in the queue for the answer of the store: only if no holder or waiter is known to be before it.
    pub(super) fn may_try(&self, mode: Mode) -> bool {
        let may_be_free = match &self.store {
            Store::Absent | Store::Releasing(_) => true,
            Store::Contending(_) => false,
            Store::Granted(_) => mode == Mode::Read && self.is_shared(),
        };
        may_be_free && self.queue.is_empty()
    }

    pub(super) fn push(&mut self, mut waiter: Waiter) {
        let is_given_back = matches!(self.store, Store::Absent | Store::Releasing(_));
        waiter.met_others = !is_given_back || !self.queue.is_empty();
        let unfair = waiter.options.fairness() == Fairness::Unfair;
        if unfair && waiter.mode == Mode::Read && self.is_shared() {
            // A newcomer may overtake: readers are inside, and the writers that wait do not keep it out.
            self.queue.push_front(waiter);
        } else {
            self.queue.push_back(waiter);
        }
    }

    /// Returns whether readers hold it, and no writer.
    fn is_shared(&self) -> bool {
        !self.holders.is_empty() && self.holders.iter().all(|holder| holder.mode() == Mode::Read)
    }

    /// Removes a waiter that stopped waiting. `None` if it was not in the queue any more. Dropping the waiter may wake its task.
    pub(super) fn remove(&mut self, number: u64) -> Option<Waiter> {
        let position = self.queue.iter().position(|waiter| waiter.number == number)?;
        self.queue.remove(position)
    }

    /// Returns why the waiters here wait for the store, and not for other holders; `None` if they do not.
    pub(super) fn silence(&self, now: Moment) -> Option<Error> {
        self.driver.as_ref()?.silence(now)
    }

    /// Returns the acquisition as which the store may show the waiters here.
    pub(super) fn shown_as(&self) -> Option<AcquisitionId> {
        match &self.store {
            Store::Contending(contender) => Some(contender.request.id),
            Store::Granted(granted) => granted.next.as_ref().map(|next| next.id),
            Store::Releasing(leaving) => leaving.next.as_ref().map(|next| next.id),
            Store::Absent => None,
        }
    }

    /// Decides everything that follows from a change: which waiters are granted, and what the store must be told.
    pub(super) fn advance(&mut self, context: &Context<'_>, effects: &mut Effects) {
        match &self.store {
            Store::Absent => self.contend(context, effects),
            Store::Contending(contender) if !self.wants(&contender.request) => {
                effects.rung.push(Arc::clone(&contender.cancel));
                let id = contender.request.id;
                self.leave(context, id, Unlocked::Released, None, effects);
            }
            Store::Contending(_) => self.ensure_driven(effects),
            Store::Releasing(_) => {
                self.hurry(effects);
                self.ensure_driven(effects);
            }
            Store::Granted(granted) if !granted.validity.is_valid() => {
                self.lose(context, LossReason::Lapsed, effects);
            }
            Store::Granted(_) => self.advance_granted(context, effects),
        }
    }

    /// Returns whether the first waiter still waits for the answer to this request. A waiter that only tries must not be left to a request
    /// that stays in the queue, nor a waiter with a place of its own to a request at the place of a waiter that has gone.
    fn wants(&self, request: &Request) -> bool {
        self.queue.front().is_some_and(|first| {
            first.stands_at(request) && (!first.tries || request.patience == Patience::Try)
        })
    }

    fn advance_granted(&mut self, context: &Context<'_>, effects: &mut Effects) {
        loop {
            if self.admits_first(context, effects) {
                self.admit_first(context, effects);
            } else if self.refuses_first() {
                effects.answer(self.queue.pop_front(), Ungranted::NotFree);
            } else {
                break;
            }
        }
        if !self.holders.is_empty() {
            self.show(context, effects);
            return;
        }
        let next = self.request_after(context);
        let Store::Granted(granted) = &self.store else { return };
        granted.validity.finish();
        let id = granted.grant.id;
        self.leave(context, id, Unlocked::Released, next, effects);
    }

    /// Starts contending for the first waiter.
    fn contend(&mut self, context: &Context<'_>, effects: &mut Effects) {
        let Some(first) = self.queue.front() else { return };
        let request = request_for(context, first, None);
        self.store = Store::Contending(Contender { request, cancel: Arc::default() });
        self.ensure_driven(effects);
    }

    fn ensure_driven(&mut self, effects: &mut Effects) {
        if self.driver.is_none() {
            effects.drive = Some(Arc::clone(self.driver.insert(Arc::default())));
        }
    }

    /// Returns whether the first waiter may enter under the grant that this process has.
    fn admits_first(&mut self, context: &Context<'_>, effects: &mut Effects) -> bool {
        let shared = self.is_shared();
        let Store::Granted(granted) = &mut self.store else { return false };
        let Some(first) = self.queue.front() else { return false };
        if first.mode == Mode::Write && granted.grant.mode == Mode::Read {
            return false;
        }
        if !granted.lasts_for(first) {
            return false;
        }
        if granted.fresh {
            return true;
        }
        if !self.holders.is_empty() && (first.mode == Mode::Write || !shared) {
            return false;
        }
        match granted.grant.mode {
            Mode::Write => granted.may_hand_over(&first.options, context.now()),
            Mode::Read => granted.may_join(first, effects),
        }
    }

    /// Returns whether the first waiter, which may not enter, only tries and has nothing to wait for: there are holders, and no
    /// look at the waiters elsewhere is on its way.
    fn refuses_first(&self) -> bool {
        let (Store::Granted(granted), Some(first)) = (&self.store, self.queue.front()) else { return false };
        let shares = first.mode == Mode::Read && granted.grant.mode == Mode::Read && self.is_shared();
        let waits_for_a_look = shares && !granted.has_looked_for(first);
        first.tries && !self.holders.is_empty() && !waits_for_a_look
    }

    /// Makes the first waiter a holder, and with it all other waiters of the same owner.
    fn admit_first(&mut self, context: &Context<'_>, effects: &mut Effects) {
        let Store::Granted(granted) = &mut self.store else { return };
        let Some(first) = self.queue.pop_front() else { return };
        let is_handed_over = self.holders.is_empty() && granted.grant.mode == Mode::Write;
        if !granted.fresh && (is_handed_over || granted.written) {
            granted.hand_overs += 1;
        }
        if is_handed_over && !granted.fresh && context.watched {
            effects.events.push(ClientEvent::HandedOver { key: context.key.clone() });
        }
        let since = if granted.fresh || !context.watched { granted.since } else { context.now() };
        let waited = effects.arriving != Some(first.number) && (first.met_others || granted.waited);
        granted.fresh = false;
        granted.written = first.mode == Mode::Write;
        let token = granted.grant.token.map(|token| Token::local(token, granted.hand_overs));
        let hold = Arc::new(Hold::new(Arc::clone(&granted.validity), first.owner, token));
        let (writes, reads) = if first.mode == Mode::Write { (1, 0) } else { (0, 1) };
        let caller = first.caller;
        self.holders.push(Holder { hold: Arc::clone(&hold), writes, reads, since, caller, again: None });
        let (owner, named) = (first.owner, first.named);
        effects.grant(first, hold, Way::In { waited });
        if named {
            self.admit_same_owner(owner, effects);
        }
    }

    /// Admits all waiters of an owner that has just entered. One owner may wait in several places at once: a waiter that
    /// is left in the queue would wait for a holder that may be waiting for this waiter.
    fn admit_same_owner(&mut self, owner: Owner, effects: &mut Effects) {
        while let Some(position) = self.queue.iter().position(|waiter| waiter.owner == owner) {
            let Some(waiter) = self.queue.remove(position) else { return };
            let Some(holder) = self.holders.iter_mut().find(|holder| holder.hold.owner == owner) else {
                return;
            };
            match holder.reenter(waiter.mode, waiter.caller.site(), &holder.hold.validity.key.clone()) {
                Ok(()) => effects.grant(waiter, Arc::clone(&holder.hold), Way::Again),
                Err(error) => effects.fail(waiter, error),
            }
        }
    }

    /// Makes the store show what has changed: that no holder writes any more, or that a local writer waits.
    fn show(&mut self, context: &Context<'_>, effects: &mut Effects) {
        let reads_only = self.is_shared();
        let Store::Granted(granted) = &mut self.store else { return };
        let writer_waits = self.queue.iter().any(|waiter| waiter.mode == Mode::Write);
        // With a local writer waiting the exclusive grant is kept for it, as long as it may still be handed over.
        let keep = writer_waits
            && self.queue.front().is_some_and(|first| {
                granted.lasts_for(first) && granted.may_hand_over(&first.options, context.now())
            });
        let mut changed = false;
        if granted.grant.mode == Mode::Write && reads_only && !keep {
            granted.grant.mode = Mode::Read;
            changed = true;
        }
        let first_writer = self.queue.front().filter(|first| first.mode == Mode::Write && !first.tries);
        let announce = first_writer.filter(|_| granted.grant.mode == Mode::Read);
        let is_announced = match (announce, &granted.next) {
            (Some(first), Some(next)) => first.stands_at(next),
            (announce, next) => announce.is_some() == next.is_some(),
        };
        if !is_announced {
            granted.next =
                announce.map(|first| request_for(context, first, Some(first_ticket(context, first))));
            changed = true;
        }
        if changed {
            granted.renew_soon(effects);
        }
    }

    /// Returns the request that follows when the grant is given back: joining again costs no trip of its own.
    fn request_after(&mut self, context: &Context<'_>) -> Option<Request> {
        let Store::Granted(granted) = &mut self.store else { return None };
        let first = self.queue.front().filter(|first| !first.tries)?;
        match granted.next.take() {
            Some(announced)
                if announced.mode == first.mode
                    && announced.lease >= first.options.lease()
                    && first.stands_at(&announced) =>
            {
                Some(announced)
            }
            _ => Some(request_for(context, first, None)),
        }
    }

    /// Begins to give back what the store has of us.
    pub(super) fn leave(
        &mut self,
        context: &Context<'_>,
        id: AcquisitionId,
        result: Unlocked,
        next: Option<Request>,
        effects: &mut Effects,
    ) {
        let (granted, last_holder) = match &self.store {
            Store::Granted(granted) => {
                (Some(valid_until(granted.grant.sent, granted.grant.lease)), granted.last_holder)
            }
            _ => (None, None),
        };
        self.store = Store::Releasing(Leaving {
            id,
            next,
            lease: self.store.lease(),
            since: context.now(),
            valid_until: granted.unwrap_or_default(),
            began: None,
            attempts: 0,
            throttled: false,
            waits_for_place: None,
            held: granted.is_some(),
            last_holder,
            result,
            done: Vec::new(),
        });
        self.ensure_driven(effects);
    }

    /// Ends a grant that is lost: it has no holders any more, and the waiters must contend afresh.
    pub(super) fn lose(&mut self, context: &Context<'_>, reason: LossReason, effects: &mut Effects) {
        let next = self.request_after(context);
        let Store::Granted(granted) = &mut self.store else { return };
        if reason != LossReason::Closed {
            effects.logged.push(Logged::lost(&self.holders, reason, granted.failure.as_ref()));
        }
        granted.validity.lose(reason);
        effects.lost.push(Arc::clone(&granted.validity));
        let (id, shown) = (granted.grant.id, std::mem::take(&mut granted.shown));
        let error = Error::new(ErrorKind::Lost, format!("the lock was lost: {}", reason.as_str()));
        effects
            .shown
            .extend(shown.into_iter().map(|sender| (sender, Err(error.clone().with_key(context.key)))));
        let holders = std::mem::take(&mut self.holders);
        if context.watched {
            effects
                .events
                .extend(holders.iter().map(|holder| holder.ended(context, holder.mode(), End::Lost(reason))));
        }
        self.leave(context, id, Unlocked::WasLost, next, effects);
    }

    /// Handles the grant of the contender's request by the store.
    pub(super) fn granted(&mut self, context: &Context<'_>, grant: Grant, effects: &mut Effects) {
        let asked_lease = match &self.store {
            Store::Contending(contender) if contender.request.id == grant.id => contender.request.lease,
            // Cancelled meanwhile: the release that is already decided undoes it.
            _ => return,
        };
        let environment = context.engine.environment();
        let validity = Arc::new(Validity::new(&grant, environment));
        effects.renew = Some(Turn { at: next_renewal(&grant), id: grant.id, number: 0 });
        self.store = Store::Granted(Box::new(Granted {
            validity,
            since: context.now(),
            waited: grant.waited,
            looked: grant.sent,
            grant,
            asked_lease,
            hand_overs: 0,
            written: false,
            fresh: true,
            next: None,
            announces: true,
            renewing: false,
            failure: None,
            renew_again: false,
            turn: 0,
            shown: Vec::new(),
            last_holder: None,
        }));
        self.advance(context, effects);
    }

    /// Handles the store's refusal of a request that only tried.
    pub(super) fn not_free(&mut self, context: &Context<'_>, id: AcquisitionId, effects: &mut Effects) {
        match &self.store {
            Store::Contending(contender) if contender.request.id == id => self.store = Store::Absent,
            _ => return,
        }
        if self.queue.front().is_some_and(|first| first.tries) {
            effects.answer(self.queue.pop_front(), Ungranted::NotFree);
        }
        self.advance(context, effects);
    }

    /// Handles a request that failed, or whose outcome is unknown: the attempt is undone, and the waiters that wait no longer are told.
    pub(super) fn failed(
        &mut self,
        context: &Context<'_>,
        id: AcquisitionId,
        error: &Error,
        effects: &mut Effects,
    ) {
        let lease = match &self.store {
            Store::Contending(contender) if contender.request.id == id => contender.request.lease,
            _ => return,
        };
        // What is wrong with a request is the fault of the waiter that it was made for, and of no other.
        if matches!(error.kind(), ErrorKind::Config | ErrorKind::Invalid) {
            if let Some(first) = self.queue.pop_front() {
                effects.fail(first, error.clone());
            }
        } else {
            self.fail_those_who_waited(context, lease, error, effects);
        }
        self.leave(context, id, Unlocked::Released, None, effects);
    }

    /// Fails the waiters that would not wait longer for a store that has not answered for this lease; the others go on.
    pub(super) fn fail_those_who_waited(
        &mut self,
        context: &Context<'_>,
        lease: Duration,
        error: &Error,
        effects: &mut Effects,
    ) {
        let now = context.now();
        for waiter in std::mem::take(&mut self.queue) {
            let patience = waiter.options.lease();
            if waiter.tries || patience <= lease || now.since(waiter.arrived) >= patience {
                effects.fail(waiter, error.clone());
            } else {
                self.queue.push_back(waiter);
            }
        }
    }

    /// Fails the callers that only try: they have asked for an answer, and wait for no outage to end.
    pub(super) fn fail_those_who_try(&mut self, error: &Error, effects: &mut Effects) {
        while self.queue.front().is_some_and(|first| first.tries) {
            let Some(waiter) = self.queue.pop_front() else { break };
            effects.fail(waiter, error.clone());
        }
    }

    pub(super) fn fail_all(&mut self, error: &Error, effects: &mut Effects) {
        for waiter in self.queue.drain(..) {
            effects.fail(waiter, error.clone());
        }
    }

    /// Returns what the driver does next.
    pub(super) fn step(&mut self) -> Step {
        match &mut self.store {
            Store::Contending(contender) => {
                Step::Acquire(contender.request.clone(), Arc::clone(&contender.cancel))
            }
            Store::Releasing(leaving) => Step::Release {
                id: leaving.id,
                next: leaving.next.clone(),
                attempts: leaving.attempts,
                lease: leaving.lease,
            },
            Store::Absent | Store::Granted(_) => {
                self.driver = None;
                Step::Nothing
            }
        }
    }
}

impl Store {
    /// Returns how long the store keeps what it has of us, if it hears nothing more.
    pub(super) fn lease(&self) -> Duration {
        match self {
            Self::Absent => Duration::ZERO,
            Self::Contending(contender) => contender.request.lease,
            Self::Granted(granted) => granted.grant.lease,
            Self::Releasing(leaving) => leaving.lease,
        }
    }
}

impl Granted {
    /// Returns whether the lease that the store was asked for is as long as this waiter wants it: a shorter one could be lost in a pause
    /// that the waiter has asked to survive.
    fn lasts_for(&self, waiter: &Waiter) -> bool {
        waiter.options.lease() <= self.asked_lease
    }

    /// Returns whether the next local waiter may have the exclusive grant without a trip to the store.
    fn may_hand_over(&self, options: &Options, now: Moment) -> bool {
        let bound = options.hand_over();
        options.fairness() != Fairness::Strict
            && self.hand_overs < bound.count()
            && now.since(self.since) < bound.time()
    }

    /// Returns whether a local reader may share the grant. It must not overtake a writer that waits elsewhere, so what is known
    /// of such writers must be fresh; if it is not, the store is asked first.
    fn may_join(&mut self, reader: &Waiter, effects: &mut Effects) -> bool {
        match reader.options.fairness() {
            Fairness::Unfair => return true,
            // Readers that waited together are one batch.
            Fairness::Fair if reader.arrived <= self.since => return true,
            Fairness::Fair | Fairness::Strict => {}
        }
        let fresh = self.has_looked_for(reader);
        if !fresh {
            self.renew_soon(effects);
        }
        fresh && !self.grant.contended
    }

    /// Returns whether what is known of the waiters elsewhere is as fresh as this reader must have it: learned since the reader came,
    /// or not longer before that than a process may keep a lock to itself.
    fn has_looked_for(&self, reader: &Waiter) -> bool {
        let bound = reader.options.hand_over();
        let keeps = reader.options.fairness() != Fairness::Strict && bound.count() > 0;
        self.looked.plus(if keeps { bound.time() } else { Duration::ZERO }) >= reader.arrived
    }

    /// Handles a renewal that was confirmed. `mode` is the mode that it showed, `asked` the moment just before it began: what it says of
    /// other contenders is not older.
    pub(super) fn confirm(
        &mut self,
        mode: Mode,
        asked: Moment,
        sent: Moment,
        contended: bool,
        effects: &mut Effects,
    ) {
        self.looked = asked;
        self.grant.sent = sent;
        self.grant.contended = contended;
        self.failure = None;
        // The next renewal names `next` again.
        let announces = std::mem::replace(&mut self.announces, true);
        if self.renew_again || (!announces && self.next.is_some()) {
            self.schedule(Moment::ZERO, effects);
        } else {
            // A renewal may count from a moment that is long past, and be due again before it was answered.
            let soonest = asked.plus(retry_pause(self.grant.lease)).min(self.validity.until());
            self.schedule(next_renewal(&self.grant).max(soonest), effects);
        }
        // The mode is shown, whatever becomes of the announcement, and whichever other caller wants another look.
        if mode == self.grant.mode {
            effects.shown.extend(self.shown.drain(..).map(|shown| (shown, Ok(()))));
        }
    }

    /// Has the store told at once, not only when the next renewal is due.
    pub(super) fn renew_soon(&mut self, effects: &mut Effects) {
        if self.renewing {
            self.renew_again = true;
        } else {
            self.schedule(Moment::ZERO, effects);
        }
    }

    /// Makes `at` the one moment at which the renewal looks at this grant next.
    pub(super) fn schedule(&mut self, at: Moment, effects: &mut Effects) {
        self.turn += 1;
        effects.renew = Some(Turn { at, id: self.grant.id, number: self.turn });
    }
}

fn request_for(context: &Context<'_>, first: &Waiter, ticket: Option<Ticket>) -> Request {
    Request {
        key: context.key.clone(),
        id: AcquisitionId::new(&*context.engine.environment()),
        mode: first.mode,
        owner: first.owner,
        client: context.client.get(),
        lease: first.options.lease(),
        patience: if first.tries { Patience::Try } else { Patience::Queue },
        fairness: first.options.fairness(),
        ticket: first.ticket.or(ticket),
    }
}

fn first_ticket(context: &Context<'_>, first: &Waiter) -> Ticket {
    first.ticket.unwrap_or_else(|| context.engine.ticket())
}
