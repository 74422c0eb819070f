//! The keeper's knowledge of one key: the holders and the waiters of this process, and where its one contender
//! stands in the store.
//!
//! Everything here is decided under the lock of the entry's shard and without waiting. What follows from a
//! decision (wake a waiter, start a task) is collected in [`Effects`] and done after that lock is released.

use std::cell::OnceCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;
use tokio::sync::{Notify, oneshot};

use super::at_once::Origin;
use super::caller_drives::DriverSlot;
use super::effects::Effects;
use super::granted::Granted;
use super::hold::Hold;
use super::holder::Holder;
use super::logged::Logged;
use super::self_wait::Site;
use super::waiter::{Waiter, request_for};
use crate::client_name::SharedName;
use crate::contact::Contact;
use crate::engine::{AcquisitionId, Engine, LossReason, Patience, Request, valid_until};
use crate::environment::{Environment, Moment};
use crate::error::{Error, ErrorKind, Result};
use crate::events::End;
use crate::key::Key;
use crate::mode::Mode;
use crate::options::Fairness;
use crate::owner::Owner;
use crate::unlocked::Unlocked;

/// The world around an entry, as far as the entry needs to know it.
pub(super) struct Context<'a> {
    pub(super) client: &'a SharedName,
    pub(super) engine: &'a Arc<dyn Engine>,
    pub(super) environment: &'a dyn Environment,
    pub(super) key: &'a Key,
    /// True if any layer hears what the client does by itself.
    pub(super) watched: bool,
    /// True if the engine answers at once.
    pub(super) at_once: bool,
    /// The moment of the change, once it was asked for.
    pub(super) moment: OnceCell<Moment>,
}

impl Context<'_> {
    /// Returns the moment of the change. Read when it is first asked for: many changes do not need it, and asking costs more than they do.
    /// Once is enough: if the process stands still behind this, that is as if it stood still behind the change.
    pub(super) fn now(&self) -> Moment {
        *self.moment.get_or_init(|| self.environment.now())
    }
}

/// The state of one key.
#[derive(Debug, Default)]
pub(super) struct Entry {
    /// The waiters of this process, in the order in which they are served.
    pub(super) queue: VecDeque<Waiter>,
    /// The holders of this process. There are some only while `phase` is [`Phase::Granted`].
    pub(super) holders: SmallVec<[Holder; 1]>,
    pub(super) phase: Phase,
    /// What drives this entry's requests to the store. At most one driver does, so that there is one contender per key.
    pub(super) driver: Option<Driven>,
}

/// How an entry is driven.
#[derive(Debug)]
pub(super) enum Driven {
    /// By the thread that has made it necessary, for as long as the engine answers at once.
    AtOnce,
    By(Running),
}

/// A driver that runs.
#[derive(Clone, Debug)]
pub(super) struct Running {
    pub(super) contact: Arc<Contact>,
    /// Where the driver lies while a caller polls it; `None` if it is a task.
    pub(super) slot: Option<Arc<DriverSlot>>,
}

/// The state of the one contender of this process.
#[derive(Debug, Default)]
pub(super) enum Phase {
    /// The store knows nothing of us.
    #[default]
    Absent,
    /// A request is in the store's queue, or on its way there.
    Contending(Arc<Contender>),
    /// The store has granted it.
    Granted(Box<Granted>),
    /// It is being given back, or an unknown outcome is being undone.
    /// In a box: that is soon over, and there is room for this with each key that is held.
    Releasing(Box<Releasing>),
}

#[derive(Debug)]
pub(super) struct Contender {
    pub(super) request: Request,
    /// Rung when no waiter of this process waits for it any more.
    pub(super) cancel: Notify,
}

impl Contender {
    pub(super) fn new(request: Request) -> Arc<Self> {
        Arc::new(Self { request, cancel: Notify::new() })
    }
}

#[derive(Debug)]
pub(super) struct Releasing {
    pub(super) id: AcquisitionId,
    /// The request that follows in the same trip. The store may have it as soon as the release was sent once, whatever the answer: it
    /// stays the same in every attempt, and is undone if the release is given up.
    pub(super) next: Option<Box<Request>>,
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
    /// The hold that was the last one to end, if there was any.
    pub(super) last_hold: Option<Arc<Hold>>,
    /// The result for the callers that wait for the release.
    pub(super) result: Unlocked,
    pub(super) done: SmallVec<[oneshot::Sender<Result<Unlocked>>; 1]>,
}

/// The next step in the store.
pub(super) enum Step {
    Acquire(Arc<Contender>),
    /// `next` in a box: most have none, and the driver of each key has room for a step.
    Release {
        id: AcquisitionId,
        next: Option<Box<Request>>,
        attempts: u32,
        lease: Duration,
    },
    Nothing,
}

impl Entry {
    pub(super) fn is_forgettable(&self) -> bool {
        matches!(self.phase, Phase::Absent) && self.queue.is_empty() && self.driver.is_none()
    }

    /// Grants at once if this owner holds the key already.
    pub(super) fn reenter(
        &mut self,
        key: &Key,
        owner: Owner,
        mode: Mode,
        at: Site,
    ) -> Option<Result<Arc<Hold>>> {
        let holder = self.holders.iter_mut().find(|holder| holder.hold.owner == owner)?;
        if !holder.hold.is_valid() {
            return None;
        }
        let hold = Arc::clone(&holder.hold);
        // Here, while the shard is locked: nothing takes it back meanwhile.
        Some(holder.reenter(mode, at, key).map(|()| {
            hold.receive();
            hold
        }))
    }

    /// Returns whether a try may stay in the queue for the answer of the store: only if no holder or waiter is known to be before it.
    pub(super) fn may_try(&self, mode: Mode) -> bool {
        let may_be_free = match &self.phase {
            Phase::Absent | Phase::Releasing(_) => true,
            Phase::Contending(_) => false,
            Phase::Granted(_) => mode == Mode::Read && self.is_shared(),
        };
        may_be_free && self.queue.is_empty()
    }

    pub(super) fn push(&mut self, mut waiter: Waiter) {
        let is_given_back = matches!(self.phase, Phase::Absent | Phase::Releasing(_));
        waiter.met_others = !is_given_back || !self.queue.is_empty();
        if self.queue.capacity() == 0 {
            // Most keys have one waiter, for a moment.
            self.queue.reserve_exact(1);
        }
        if self.is_overtaken_by(&waiter) {
            self.queue.push_front(waiter);
        } else {
            self.queue.push_back(waiter);
        }
    }

    /// Returns whether this newcomer goes first: readers are inside, and the writers that wait do not keep it out. Not one that wants a longer
    /// lease than they have: it could not enter either, and would be in the way of those that can.
    fn is_overtaken_by(&self, newcomer: &Waiter) -> bool {
        let Phase::Granted(granted) = &self.phase else { return false };
        let unfair = newcomer.options.fairness() == Fairness::Unfair;
        unfair && newcomer.mode == Mode::Read && self.is_shared() && granted.lasts_for(newcomer)
    }

    /// Returns whether readers hold it, and no writer.
    pub(super) fn is_shared(&self) -> bool {
        !self.holders.is_empty() && self.holders.iter().all(|holder| holder.mode() == Mode::Read)
    }

    /// Removes a waiter that stopped waiting. `None` if it was not in the queue any more. Dropping the waiter may wake its task.
    pub(super) fn remove(&mut self, number: u64) -> Option<Waiter> {
        let position = self.queue.iter().position(|waiter| waiter.number == number)?;
        self.queue.remove(position)
    }

    /// Returns why the waiters here wait for the store, and not for other holders; `None` if they do not.
    pub(super) fn silence(&self, now: Moment) -> Option<Error> {
        match self.driver.as_ref()? {
            Driven::AtOnce => None,
            Driven::By(running) => running.contact.silence(now),
        }
    }

    /// Returns the acquisition as which the store may show the waiters here.
    pub(super) fn shown_as(&self) -> Option<AcquisitionId> {
        match &self.phase {
            Phase::Contending(contender) => Some(contender.request.id),
            Phase::Granted(granted) => granted.next.as_ref().map(|next| next.id),
            Phase::Releasing(releasing) => releasing.next.as_ref().map(|next| next.id),
            Phase::Absent => None,
        }
    }

    /// Decides everything that follows from a change: which waiters are granted, and what the store must be told.
    pub(super) fn advance(&mut self, context: &Context<'_>, effects: &mut Effects) {
        self.end_long_holds(context, effects);
        match &self.phase {
            Phase::Absent => self.contend(context, effects),
            Phase::Contending(contender) if !self.wants(&contender.request) => {
                effects.cancelled = Some(Arc::clone(contender));
                let id = contender.request.id;
                self.begin_release(context, id, Unlocked::Released, None, effects);
            }
            Phase::Contending(_) => self.ensure_driven(context, effects),
            Phase::Releasing(_) => {
                self.hurry(effects);
                self.ensure_driven(context, effects);
            }
            Phase::Granted(granted) if !granted.validity.is_valid_at(context.now()) => {
                self.lose(context, LossReason::Lapsed, effects);
            }
            Phase::Granted(_) => self.advance_granted(context, effects),
        }
    }

    /// Returns whether the first waiter still waits for the answer to this request. A waiter that only tries must not be left to a request
    /// that stays in the queue, nor a waiter with a place of its own to a request at the place of a waiter that has gone.
    fn wants(&self, request: &Request) -> bool {
        self.queue.front().is_some_and(|first| {
            first.stands_at(request) && (!first.tries || request.patience == Patience::Try)
        })
    }

    /// Starts contending for the first waiter.
    pub(super) fn contend(&mut self, context: &Context<'_>, effects: &mut Effects) {
        let Some(first) = self.queue.front() else { return };
        let request = request_for(context, first, None);
        self.phase = Phase::Contending(Contender::new(request));
        self.ensure_driven(context, effects);
    }

    /// Makes sure that a driver goes on, whatever the caller does that polls it now.
    pub(super) fn ensure_driven(&mut self, context: &Context<'_>, effects: &mut Effects) {
        match &mut self.driver {
            Some(Driven::By(running)) => effects.spawned = running.slot.take().or(effects.spawned.take()),
            Some(Driven::AtOnce) => {}
            None if context.at_once => {
                self.driver = Some(Driven::AtOnce);
                effects.begins_at_once = true;
            }
            None => effects.drive = Some(self.running(effects.origin)),
        }
    }

    /// Makes a driver what drives this entry, and returns it.
    pub(super) fn running(&mut self, Origin { arriving, caller_drives }: Origin) -> Running {
        // A waiter that was there before must not wait for whatever the caller does.
        let is_alone = self.queue.iter().all(|waiter| arriving == Some(waiter.number));
        let slot = (caller_drives && is_alone).then(Arc::default);
        let running = Running { contact: Arc::default(), slot };
        self.driver = Some(Driven::By(running.clone()));
        running
    }

    /// Begins to give back what the store has of us.
    pub(super) fn begin_release(
        &mut self,
        context: &Context<'_>,
        id: AcquisitionId,
        result: Unlocked,
        next: Option<Box<Request>>,
        effects: &mut Effects,
    ) {
        let (granted, last_hold) = match &mut self.phase {
            Phase::Granted(granted) => {
                (Some(valid_until(granted.grant.sent, granted.grant.lease)), granted.last_hold.take())
            }
            _ => (None, None),
        };
        self.phase = Phase::Releasing(Box::new(Releasing {
            id,
            next,
            lease: self.phase.lease(),
            since: context.now(),
            valid_until: granted.unwrap_or_default(),
            began: None,
            attempts: 0,
            throttled: false,
            waits_for_place: None,
            held: granted.is_some(),
            last_hold,
            result,
            done: SmallVec::new(),
        }));
        self.ensure_driven(context, effects);
    }

    /// Ends a grant that is lost: it has no holders any more, and the waiters must contend afresh.
    pub(super) fn lose(&mut self, context: &Context<'_>, reason: LossReason, effects: &mut Effects) {
        // A hold whose bound was reached before is lost for that reason.
        self.end_long_holds(context, effects);
        let next = self.request_after(context);
        let Phase::Granted(granted) = &mut self.phase else { return };
        if reason != LossReason::Closed && !self.holders.is_empty() {
            effects.told.logged.push(Logged::lost(&self.holders, reason, granted.failure.as_ref()));
        }
        granted.validity.lose(reason);
        effects.lost.push(Arc::clone(&granted.validity));
        let (id, shown) = (granted.grant.id, std::mem::take(&mut granted.shown));
        let error = Error::new(ErrorKind::Lost, format!("the lock was lost: {}", reason.as_str()));
        for caller in shown {
            effects.shown(caller, Err(error.clone().with_key(context.key)));
        }
        let holders = std::mem::take(&mut self.holders);
        if context.watched {
            effects
                .told
                .events
                .extend(holders.iter().map(|holder| holder.ended(context, holder.mode(), End::Lost(reason))));
        }
        self.begin_release(context, id, Unlocked::WasLost, next, effects);
    }

    /// Returns what the driver does next.
    pub(super) fn step(&mut self) -> Step {
        match &self.phase {
            Phase::Contending(contender) => Step::Acquire(Arc::clone(contender)),
            Phase::Releasing(releasing) => Step::Release {
                id: releasing.id,
                next: releasing.next.clone(),
                attempts: releasing.attempts,
                lease: releasing.lease,
            },
            Phase::Absent | Phase::Granted(_) => {
                self.driver = None;
                Step::Nothing
            }
        }
    }
}

impl Phase {
    /// Returns how long the store keeps what it has of us, if it hears nothing more.
    pub(super) fn lease(&self) -> Duration {
        match self {
            Self::Absent => Duration::ZERO,
            Self::Contending(contender) => contender.request.lease,
            Self::Granted(granted) => granted.grant.lease,
            Self::Releasing(releasing) => releasing.lease,
        }
    }
}
