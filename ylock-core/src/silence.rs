//! How long an engine bears that its store does not answer: a short outage must not throw everybody out of the queue.

use std::fmt;
use std::time::Duration;

use crate::environment::{Environment, Moment};
use crate::error::{Error, ErrorKind, Result};

/// However long the lease is: a store that is back should not be left alone for longer than this takes.
const LONGEST_LEASE: Duration = Duration::from_secs(10);
/// How often somebody asks again within a lease, more or less.
const TRIES_PER_LEASE: u32 = 50;

/// Since when a store has not answered to somebody who waits; one lease is the most that is borne.
#[derive(Clone)]
pub struct Silence<'a> {
    environment: &'a dyn Environment,
    lease: Duration,
    answered: Moment,
}

impl<'a> Silence<'a> {
    /// Begins now.
    pub fn new(environment: &'a dyn Environment, lease: Duration) -> Self {
        Self { environment, lease, answered: environment.now() }
    }

    /// The store has answered.
    pub fn end(&mut self) {
        self.end_at(self.environment.now());
    }

    /// The store has answered, then or later.
    pub fn end_at(&mut self, moment: Moment) {
        self.answered = self.answered.max(moment);
    }

    /// For how much longer it is borne.
    pub fn left(&self) -> Duration {
        self.lease.saturating_sub(self.environment.now().since(self.answered))
    }

    /// Waits a little before the next try.
    ///
    /// # Errors
    /// The one that is to be borne, if the silence has lasted for a lease, or if waiting does not mend it.
    pub async fn bear(&self, error: Error) -> Result<()> {
        if error.kind() != ErrorKind::Unavailable || self.left().is_zero() {
            return Err(error);
        }
        let pause = self.lease.min(LONGEST_LEASE) / TRIES_PER_LEASE;
        self.environment.sleep(self.environment.jitter(pause)).await;
        Ok(())
    }
}

impl fmt::Debug for Silence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Silence").field("lease", &self.lease).field("answered", &self.answered).finish()
    }
}
