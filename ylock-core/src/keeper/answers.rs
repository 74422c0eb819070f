//! What follows from the store's answer to a request, or from none: a grant, a refusal, an error.

use std::sync::Arc;
use std::time::Duration;

use super::effects::Effects;
use super::entry::{Context, Entry, Phase};
use super::granted::Granted;
use super::renewal::{Turn, next_renewal};
use super::validity::Validity;
use crate::engine::{AcquisitionId, Grant, Request};
use crate::error::{Error, ErrorKind, Result};
use crate::unlocked::Unlocked;

impl Entry {
    /// Handles the answer to the contender's request.
    pub(super) fn answered(
        &mut self,
        context: &Context<'_>,
        request: &Request,
        answer: Result<Option<Grant>>,
        effects: &mut Effects,
    ) {
        match answer {
            Ok(Some(grant)) => self.granted(context, grant, effects),
            Ok(None) => self.not_free(context, request.id, effects),
            Err(error) => {
                let error = error.with_engine(context.engine.name()).with_key(&request.key);
                self.failed(context, request.id, &error, effects);
            }
        }
    }

    /// Handles the grant of the contender's request by the store.
    fn granted(&mut self, context: &Context<'_>, grant: Grant, effects: &mut Effects) {
        let asked_lease = match &self.phase {
            Phase::Contending(contender) if contender.request.id == grant.id => contender.request.lease,
            // Cancelled meanwhile: the release that is already decided undoes it.
            _ => return,
        };
        let environment = context.engine.environment();
        let validity = Arc::new(Validity::new(&grant, environment));
        let due = next_renewal(&grant);
        effects.renew = Some(Turn { at: due, id: grant.id, number: 0 });
        self.phase = Phase::Granted(Box::new(Granted {
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
            due,
            first_end: None,
            turn: 0,
            shown: Vec::new(),
            last_hold: None,
        }));
        self.advance(context, effects);
    }

    /// Handles the store's refusal of a request that only tried.
    fn not_free(&mut self, context: &Context<'_>, id: AcquisitionId, effects: &mut Effects) {
        match &self.phase {
            Phase::Contending(contender) if contender.request.id == id => self.phase = Phase::Absent,
            _ => return,
        }
        if self.queue.front().is_some_and(|first| first.tries) {
            effects.not_free(self.queue.pop_front());
        }
        self.advance(context, effects);
    }

    /// Handles a request that failed, or whose outcome is unknown: the attempt is undone, and the waiters that wait no longer are told.
    fn failed(&mut self, context: &Context<'_>, id: AcquisitionId, error: &Error, effects: &mut Effects) {
        let lease = match &self.phase {
            Phase::Contending(contender) if contender.request.id == id => contender.request.lease,
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
        self.begin_release(context, id, Unlocked::Released, None, effects);
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
}
