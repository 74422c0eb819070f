//! A waiter of this process, and the request that the store is asked for it.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::attendance::Attendance;
use super::effects::Reply;
use super::entry::Context;
use super::self_wait::Caller;
use crate::engine::{AcquisitionId, Patience, Request, Ticket};
use crate::environment::Moment;
use crate::mode::Mode;
use crate::options::Options;
use crate::owner::Owner;

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
    /// Of a call that holds this lock on its way to others.
    pub(super) attendance: Option<Arc<Attendance>>,
    pub(super) caller: Caller,
    pub(super) reply: oneshot::Sender<Reply>,
}

impl Waiter {
    /// Returns whether this request is at the place of this waiter. Only a [`Fairness::Strict`] waiter has a place of its own: in one order
    /// over all processes no waiter may take the place of an earlier waiter that has gone.
    pub(super) fn stands_at(&self, request: &Request) -> bool {
        self.ticket.is_none_or(|own| request.ticket == Some(own))
    }
}

pub(super) fn request_for(context: &Context<'_>, first: &Waiter, ticket: Option<Ticket>) -> Request {
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

pub(super) fn first_ticket(context: &Context<'_>, first: &Waiter) -> Ticket {
    first.ticket.unwrap_or_else(|| context.engine.ticket())
}
