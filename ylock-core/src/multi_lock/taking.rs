//! The way to all locks of a set: tries for all that are left, and a wait for the first that is not free.
//!
//! An owner that waits for a key holds only keys before it, and a try waits for no holder: so no ring of waiters can close, whatever others
//! take together.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::join_all;

use super::leases::first_lost;
use super::wanted::Member;
use crate::deadline::{AT_ONCE, Deadline};
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::keeper::{AcquireArgs, Acquired, Attendance, Before, Site, attended};
use crate::lease::Lease;
use crate::owner::Owner;
use crate::terms::Terms;

/// One acquisition of a set.
pub(super) struct Taking<'a> {
    pub(super) terms: &'a Terms,
    pub(super) owner: Owner,
    /// In the order of their keys, each once.
    pub(super) members: &'a [Member],
    pub(super) deadline: Deadline,
    /// True if a wait that is over is to say which holders and waiters were before it.
    pub(super) explains: bool,
    pub(super) at: Site,
}

/// A set that was not free, or not in time.
#[derive(Debug)]
pub(super) struct Missed {
    /// The member that the caller waited for, by its place.
    pub(super) place: usize,
    pub(super) before: Option<Before>,
}

/// The end of one attempt.
enum Attempt {
    Took(Vec<Acquired>),
    /// A member was lost while others were waited for.
    Lost,
    Missed(Missed),
}

enum Waited {
    Granted(Acquired),
    /// A member that is held was lost.
    Lost,
    Late(Option<Before>),
}

impl Taking<'_> {
    /// Takes all members, or returns which of them was missed. Nothing is held in between but what an earlier attempt gives back.
    pub(super) async fn take(&self) -> Result<Result<Vec<Acquired>, Missed>> {
        let lease = self.terms.options().lease();
        attended(self.environment(), lease, |attendance| self.take_attended(attendance)).await
    }

    async fn take_attended(&self, attendance: Arc<Attendance>) -> Result<Result<Vec<Acquired>, Missed>> {
        loop {
            match self.attempt(&attendance).await? {
                // Once more a look: a member may have been lost beside the last answer, or given to others
                // while this call was not polled.
                Attempt::Took(held) if held.iter().all(|one| one.hold.receive() && is_valid(one)) => {
                    return Ok(Ok(held));
                }
                // The caller has not seen the set yet, so nothing is lost but time.
                Attempt::Took(_) | Attempt::Lost => {}
                Attempt::Missed(missed) => return Ok(Err(missed)),
            }
        }
    }

    async fn attempt(&self, attendance: &Arc<Attendance>) -> Result<Attempt> {
        let mut held = Vec::with_capacity(self.members.len());
        loop {
            self.try_rest(&mut held, attendance).await?;
            let place = held.len();
            let Some(next) = self.members.get(place) else { return Ok(Attempt::Took(held)) };
            match self.wait_for(next, &held, attendance).await? {
                Waited::Granted(acquired) => held.push(acquired),
                Waited::Lost => return Ok(Attempt::Lost),
                Waited::Late(before) => return Ok(Attempt::Missed(Missed { place, before })),
            }
        }
    }

    /// Tries all members that are left, at once, and keeps those before the first that is not free. Those after it are given back: who
    /// waits must hold no key after the one that it waits for.
    async fn try_rest(&self, held: &mut Vec<Acquired>, attendance: &Arc<Attendance>) -> Result<()> {
        let rest = &self.members[held.len()..];
        let waits = !self.deadline.is_now();
        // A wait for the only one that is left is a try, too, and often a cheaper one.
        if self.is_late() || waits && rest.len() < 2 {
            return Ok(());
        }
        let answers = join_all(rest.iter().map(|member| self.ask(member, AT_ONCE, None, attendance))).await;
        let refused = answers.iter().any(|answer| matches!(answer, Ok(None)));
        // A wait bears that the store is silent for a while. Without time to wait the caller is told of it, unless a holder was in the way, too.
        let silence_is_told = (!waits || self.is_late()) && !refused;
        let is_told = |error: &&Error| !error.kind().is_silence() || silence_is_told;
        if let Some(error) = answers.iter().filter_map(|answer| answer.as_ref().err()).find(is_told) {
            return Err(error.clone());
        }
        held.extend(answers.into_iter().map_while(|answer| answer.ok().flatten()));
        Ok(())
    }

    /// Waits for one member as every caller does, in its queue, as long as no member that is held is lost.
    async fn wait_for(
        &self,
        next: &Member,
        held: &[Acquired],
        attendance: &Arc<Attendance>,
    ) -> Result<Waited> {
        if self.deadline.is_now() || self.is_late() {
            return Ok(Waited::Late(None));
        }
        let max_wait = self.deadline.max_wait(self.environment());
        let before = OnceLock::new();
        let granted = self.ask(next, max_wait, self.explains.then_some(&before), attendance);
        let leases: Vec<_> = held.iter().map(lease).collect();
        let answer = tokio::select! {
            // A set with a member that is lost is not worth one more grant.
            biased;
            _ = first_lost(&leases) => return Ok(Waited::Lost),
            answer = granted => answer?,
        };
        Ok(answer.map_or_else(|| Waited::Late(before.into_inner()), Waited::Granted))
    }

    async fn ask(
        &self,
        member: &Member,
        max_wait: Option<Duration>,
        before: Option<&OnceLock<Before>>,
        attendance: &Arc<Attendance>,
    ) -> Result<Option<Acquired>> {
        let args = AcquireArgs {
            key: member.key.clone(),
            mode: member.mode,
            owner: Some(self.owner),
            max_wait,
            answer_within: self.deadline.left(self.environment()),
            options: &self.terms.handle.options,
            attendance: Some(attendance),
            before,
            at: self.at,
        };
        self.terms.handle.keeper.acquire(args).await
    }

    fn is_late(&self) -> bool {
        self.deadline.is_over(self.environment())
    }

    fn environment(&self) -> &dyn Environment {
        &**self.terms.handle.keeper.environment()
    }
}

fn lease(acquired: &Acquired) -> Lease {
    Lease::new(Arc::clone(&acquired.hold), acquired.mode)
}

fn is_valid(acquired: &Acquired) -> bool {
    lease(acquired).is_valid()
}
