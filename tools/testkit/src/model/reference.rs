//! What is compared with: the queue that the in-memory engine runs on. Added here is only what servers do beyond it: they let waiters in by
//! themselves, and tell them.

use std::collections::HashMap;
use std::time::Duration;

use ylock_core::engine::{AcquisitionId, Grant, Holding, Release, Renewal, Request, Ticket};
use ylock_core::environment::Moment;
use ylock_core::queue::{Now, Queue};
use ylock_core::{ClientName, Key, Mode, Owner, StoreToken};

/// So long that none ends while operations are compared.
pub const LEASE: Duration = Duration::from_secs(3600);

/// The way in which a waiter learns that it was let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hears {
    /// By a message.
    Told,
    /// By asking.
    Asks,
    /// Its connection is gone.
    Nothing,
}

/// The answer to an acquisition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It is inside.
    Granted {
        /// Whether a conflicting contender waits.
        contended: bool,
    },
    /// It waits.
    Queued,
    /// It is not inside, and does not wait.
    Busy,
    /// It was released before.
    Undone,
}

/// An acquisition, as a script is asked for it.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// Which one.
    pub id: AcquisitionId,
    /// Shared or exclusive.
    pub mode: Mode,
    /// How it learns of its turn.
    pub hears: Hears,
}

/// How one is asked for that does not come along with another operation.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// Whether it does not wait.
    pub tries: bool,
    /// Whether it goes before those who wait.
    pub unfair: bool,
    /// The place that it takes, if it brings one.
    pub ticket: Option<Ticket>,
}

/// Holders in any order, and the queue with its tickets.
#[derive(Debug, PartialEq, Eq)]
pub struct Shown {
    /// The holders, in the order of their identities.
    pub holders: Vec<(AcquisitionId, Mode)>,
    /// The waiters, in order.
    pub queue: Vec<(AcquisitionId, Mode, Ticket)>,
}

impl Shown {
    /// Returns the ticket that the server gave to a waiter. One that was let in at once had the last place.
    pub(crate) fn ticket_of(&self, id: AcquisitionId) -> Ticket {
        let waiter = self.queue.iter().find(|(waiter, ..)| *waiter == id);
        waiter.map_or(Ticket::from_number(i64::MAX), |(.., ticket)| *ticket)
    }

    /// Returns the ticket that the server gave to a waiter, which must not have got in before one that was there: no waiter brings a ticket
    /// that is larger than all others.
    fn given_behind(&self, last: Option<Ticket>, id: AcquisitionId) -> Ticket {
        let ticket = self.ticket_of(id);
        assert!(
            Some(ticket) >= last,
            "the server gave {ticket:?} to {id:?}, and there is {last:?}: {self:?}"
        );
        ticket
    }
}

/// See the [module](self). Where the server gives out a ticket, `shown` has it.
#[derive(Debug, Default)]
pub(crate) struct Reference {
    queue: Queue,
    /// Of all that ever were in the queue.
    hears: HashMap<AcquisitionId, Hears>,
}

impl Reference {
    pub(crate) fn show(&self) -> Shown {
        let mut holders: Vec<_> = self.queue.holders().map(|held| (held.id(), held.mode())).collect();
        holders.sort_unstable_by_key(|(id, _)| *id);
        let queue = self.queue.waiters().map(|waits| (waits.id(), waits.mode(), waits.ticket()));
        Shown { holders, queue: queue.collect() }
    }

    pub(crate) fn mode_of_holder(&self, id: AcquisitionId) -> Option<Mode> {
        self.queue.find(id).filter(|held| held.holds()).map(|held| held.mode())
    }

    pub(crate) fn acquire(&mut self, asked: Asked, manner: Manner, shown: &Shown) -> Reply {
        let Asked { id, mode, hears } = asked;
        if self.queue.is_undone(id) {
            return Reply::Undone;
        }
        if self.queue.find(id).is_some() {
            self.join(asked, None, shown);
            self.hears.insert(id, hears);
        }
        self.settle(Some(id));
        if self.queue.find(id).is_none() {
            let is_first = manner.unfair || self.queue.waiters().next().is_none();
            if self.queue.is_free(mode) && is_first {
                self.join(asked, None, shown);
                self.enter(id);
            } else if manner.tries {
                return Reply::Busy;
            } else {
                self.join(asked, manner.ticket, shown);
                self.settle(Some(id));
            }
        }
        if self.mode_of_holder(id).is_some() {
            return Reply::Granted { contended: self.queue.is_contended(id, None) };
        }
        if manner.tries {
            self.queue.release(id, None, || shown.ticket_of(id), Now::default());
            return Reply::Busy;
        }
        Reply::Queued
    }

    pub(crate) fn release(
        &mut self,
        id: AcquisitionId,
        is_late: bool,
        next: Option<Asked>,
        shown: &Shown,
    ) -> bool {
        let next_id = next.map(|next| next.id);
        let request = next.map(|next| self.request(next));
        let last = self.last_ticket();
        let take = || shown.given_behind(last, next_id.expect("it is there"));
        let was_there = self.queue.release(id, request.as_ref(), take, Now::default());
        if is_late {
            self.queue.undo(id, Moment::ZERO.plus(LEASE));
        }
        self.settle(next_id);
        was_there == Release::Released
    }

    pub(crate) fn renew(
        &mut self,
        id: AcquisitionId,
        mode: Mode,
        behind: Option<Asked>,
        shown: &Shown,
    ) -> Renewal {
        let before = self.mode_of_holder(id);
        let next = behind.map(|behind| self.request(behind));
        let grant = Grant::of(&request(id, mode), None, Moment::ZERO, false);
        let last = self.last_ticket();
        let take = || shown.given_behind(last, behind.expect("it is there").id);
        let answer = self.queue.renew(&Holding::new(grant, next), take, Now::default());
        if self.mode_of_holder(id) != before {
            self.settle(None);
        }
        answer
    }

    pub(crate) fn revoke(&mut self, id: AcquisitionId) -> bool {
        self.queue.revoke(id)
    }

    fn join(&mut self, asked: Asked, ticket: Option<Ticket>, shown: &Shown) {
        let request = self.request(asked).with_ticket(ticket);
        let last = self.last_ticket();
        self.queue.join(&request, || shown.given_behind(last, asked.id), Now::default());
    }

    fn last_ticket(&self) -> Option<Ticket> {
        self.queue.waiters().map(|waits| waits.ticket()).max()
    }

    /// Returns the request of an acquisition, and notes how it hears if it was not in the queue before.
    fn request(&mut self, asked: Asked) -> Request {
        if self.queue.find(asked.id).is_none() {
            self.hears.insert(asked.id, asked.hears);
        }
        request(asked.id, asked.mode)
    }

    fn enter(&mut self, id: AcquisitionId) {
        assert!(self.queue.enter(id, StoreToken::LOWEST, Now::default()), "{id:?} beside a rival: {self:?}");
    }

    /// Lets in each waiter whose turn it is and that hears of it. One that does not hear keeps its place, and the next one goes first. One
    /// that asks by itself has its turn until it asks.
    fn settle(&mut self, own: Option<AcquisitionId>) {
        let waiting: Vec<_> = self.queue.waiters().map(|waits| (waits.id(), waits.behind())).collect();
        let mut is_passed_over = false;
        for (id, behind) in waiting {
            let waits = self.queue.find(id).expect("nothing leaves meanwhile");
            if !self.queue.is_free(waits.mode()) {
                return;
            }
            let hears = if Some(id) == own { Hears::Told } else { self.hears[&id] };
            match hears {
                _ if behind.is_some() => {}
                Hears::Nothing => is_passed_over = true,
                Hears::Asks => return,
                Hears::Told => {
                    assert!(is_passed_over || self.queue.may_enter(id), "{id:?} is not next: {self:?}");
                    self.enter(id);
                }
            }
        }
    }
}

fn request(id: AcquisitionId, mode: Mode) -> Request {
    Request::new(
        Key::new("compared", "with the scripts").expect("a key"),
        id,
        mode,
        Owner::new(),
        ClientName::stored("a client"),
        LEASE,
    )
}
