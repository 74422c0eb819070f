//! The changes of who leads, as looks at the store show them.

use crate::environment::Moment;
use crate::error::Result;

use super::{Election, Leader};

/// The stream of who leads an election, from [`Election::observe`]. It never ends by itself.
#[derive(Debug)]
pub struct Leaders {
    election: Election,
    /// Who led at the last look; `None` before the first one.
    last: Option<Option<Leader>>,
    /// When to look next. Kept here, so that a call which is dropped and made again does not begin its pause anew.
    next_look: Moment,
}

impl Leaders {
    pub(super) fn new(election: Election) -> Self {
        Self { election, last: None, next_look: Moment::ZERO }
    }

    /// Waits for the next change, and returns who leads then, or that there is no leader. The first call returns who leads now.
    ///
    /// # Cancel safety
    /// No change is lost when the future is dropped.
    ///
    /// # Errors
    /// Those of [`Election::leader`]: nothing is known of who leads while the store does not answer. The next call looks again, after a pause.
    pub async fn next(&mut self) -> Result<Option<Leader>> {
        let environment = self.election.terms.handle.keeper.environment().clone();
        loop {
            environment.sleep(self.next_look.since(environment.now())).await;
            let look = self.election.leader().await;
            // From the end of the look on: a store that is slow is not asked more often.
            self.next_look = environment.now().plus(self.election.pace);
            let leader = look?;
            if self.last.as_ref().is_none_or(|last| is_change(last.as_ref(), leader.as_ref())) {
                self.last = Some(leader.clone());
                return Ok(leader);
            }
        }
    }
}

fn is_change(last: Option<&Leader>, now: Option<&Leader>) -> bool {
    match (last, now) {
        (Some(last), Some(now)) => !last.is_same_lead(now),
        (None, None) => false,
        _ => true,
    }
}
