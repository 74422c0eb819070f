//! The effects of a decision, which happen after the lock of the shard is released: waking a waiter may run its drop,
//! and that locks the shard again. So may a subscriber of the log.
//!
//! Each effect happens whatever becomes of the others: a waker that panics costs the caller that it
//! belongs to, and no other one.

use std::sync::Arc;

use smallvec::SmallVec;
use tokio::sync::{Notify, oneshot};

use super::Keeper;
use super::at_once::{Origin, Outermost};
use super::caller_drives::{CallerDrives, DriverSlot};
use super::entry::{Contender, Entry, Running, Step};
use super::hold::{Acquired, Admission, Hold};
use super::logged::Logged;
use super::renewal::Turn;
use super::validity::Validity;
use super::waiter::Waiter;
use crate::error::{Error, Result};
use crate::events::ClientEvent;
use crate::foreign::woken;
use crate::key::Key;
use crate::mode::Mode;
use crate::unlocked::Unlocked;

/// The answer that a waiter gets.
pub(super) type Reply = Result<Option<Acquired>>;

#[derive(Default)]
pub(super) struct Effects {
    /// What callers are told. Most changes tell one caller or none, and allocate nothing for that.
    answers: SmallVec<[Answer; 1]>,
    /// The grants that are lost, or under which a hold is: callers that wait for the loss are
    /// woken.
    pub(super) lost: Vec<Arc<Validity>>,
    /// The request that no waiter waits for any more: the driver's wait for its answer is over.
    pub(super) cancelled: Option<Arc<Contender>>,
    /// The driver's wait for the place of a release that a waiter waits for now.
    pub(super) hurried: Option<Arc<Notify>>,
    pub(super) told: Told,
    pub(super) origin: Origin,
    /// True if this thread is to carry out what the entry decides, because the engine answers at once.
    pub(super) begins_at_once: bool,
    /// What it does first.
    step: Option<Step>,
    /// The entry's driver, if that is to be started.
    pub(super) drive: Option<Running>,
    /// The driver that another caller polls, and that must go on without it.
    pub(super) spawned: Option<Arc<DriverSlot>>,
    /// The moment at which to look at the grant for its renewal.
    pub(super) renew: Option<Turn>,
}

/// What is told of a change, and of those that follow from it at once, in their order.
#[derive(Default)]
pub(super) struct Told {
    /// What the log is told.
    pub(super) logged: Vec<Logged>,
    /// The events that the layers are told. Empty if there are no layers.
    pub(super) events: Vec<ClientEvent>,
}

impl Told {
    fn append(&mut self, mut later: Self) {
        self.logged.append(&mut later.logged);
        self.events.append(&mut later.events);
    }

    fn tell(self, keeper: &Arc<Keeper>, key: &Key) {
        for logged in self.logged {
            logged.write(keeper, key);
        }
        for event in self.events {
            keeper.tell(&event);
        }
    }
}

/// What a caller is told.
enum Answer {
    Granted(oneshot::Sender<Reply>, Arc<Hold>, Mode, Admission),
    NotFree(oneshot::Sender<Reply>),
    Failed(oneshot::Sender<Reply>, Error),
    Shown(oneshot::Sender<Result<()>>, Result<()>),
    Done(oneshot::Sender<Result<Unlocked>>, Result<Unlocked>),
}

impl Effects {
    /// Creates the effects of a waiter's arrival.
    pub(super) fn for_arrival(number: u64) -> Self {
        Self { origin: Origin { arriving: Some(number), caller_drives: true }, ..Self::default() }
    }

    /// Creates the effects of a change by a caller that waits for what follows.
    pub(super) fn of_caller() -> Self {
        Self { origin: Origin { arriving: None, caller_drives: true }, ..Self::default() }
    }

    /// Notes what is to be done first, if this thread is to carry out what the entry decides. The last act of a change.
    pub(super) fn note_step(&mut self, entry: &mut Entry) {
        self.step = self.begins_at_once.then(|| entry.step());
    }

    pub(super) fn grant(&mut self, waiter: Waiter, hold: Arc<Hold>, admission: Admission) {
        self.answers.push(Answer::Granted(waiter.reply, hold, waiter.mode, admission));
    }

    pub(super) fn fail(&mut self, waiter: Waiter, error: Error) {
        self.answers.push(Answer::Failed(waiter.reply, error));
    }

    pub(super) fn not_free(&mut self, waiter: Option<Waiter>) {
        self.answers.extend(waiter.map(|waiter| Answer::NotFree(waiter.reply)));
    }

    /// Answers a caller that waits for the store to show a downgrade.
    pub(super) fn shown(&mut self, caller: oneshot::Sender<Result<()>>, result: Result<()>) {
        self.answers.push(Answer::Shown(caller, result));
    }

    /// Answers callers that wait for a release.
    pub(super) fn done(
        &mut self,
        callers: impl IntoIterator<Item = oneshot::Sender<Result<Unlocked>>>,
        result: &Result<Unlocked>,
    ) {
        self.answers.extend(callers.into_iter().map(|caller| Answer::Done(caller, result.clone())));
    }

    /// Does everything that follows. Returns the driver, if the caller is to poll it.
    pub(super) fn happen(self, keeper: &Arc<Keeper>, key: &Key) -> Option<CallerDrives> {
        let mut told = Told::default();
        let drives = self.happen_untold(keeper, key, &mut told);
        // Last: a layer or a subscriber of the log may be slow, and no waiter should wait for it.
        told.tell(keeper, key);
        drives
    }

    /// Does what follows, but adds to `told` what log and layers are to be told.
    pub(super) fn happen_untold(
        self,
        keeper: &Arc<Keeper>,
        key: &Key,
        told: &mut Told,
    ) -> Option<CallerDrives> {
        let outermost = Outermost::begin();
        if let Some(turn) = self.renew {
            keeper.schedule.push(key, turn, keeper.len());
        }
        if let Some(contender) = self.cancelled {
            woken(|| contender.cancel.notify_one());
        }
        if let Some(hurried) = self.hurried {
            woken(|| hurried.notify_one());
        }
        for validity in self.lost {
            validity.ring();
        }
        for answer in self.answers {
            woken(|| answer.send(keeper));
        }
        if let Some(slot) = self.spawned {
            slot.spawn(&*keeper.environment);
        }
        told.append(self.told);
        match (self.step, self.drive) {
            (Some(step), _) => keeper.go_on_at_once(key, step, self.origin, told, outermost.as_ref()),
            (None, Some(running)) => keeper.drive(key, running),
            (None, None) => None,
        }
    }
}

impl Answer {
    fn send(self, keeper: &Arc<Keeper>) {
        match self {
            Self::Granted(caller, hold, mode, admission) => {
                let acquired = Acquired { hold, mode, admission, keeper: Arc::clone(keeper), spent: false };
                // If the waiter has just stopped waiting, the acquisition comes back in the error, and dropping that gives it back.
                drop(caller.send(Ok(Some(acquired))));
            }
            Self::NotFree(caller) => drop(caller.send(Ok(None))),
            Self::Failed(caller, error) => drop(caller.send(Err(error))),
            Self::Shown(caller, result) => drop(caller.send(result)),
            Self::Done(caller, result) => drop(caller.send(result)),
        }
    }
}
