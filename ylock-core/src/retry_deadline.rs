//! The time for which an engine bears that its store does not answer: neither a short outage nor a pause of the process must throw waiters
//! out of the queue.

use std::fmt;
use std::time::Duration;

use crate::contact;
use crate::engine::{Patience, Request};
use crate::environment::{Environment, Moment};
use crate::error::{Error, Result};

/// The longest lease that the pauses between tries are derived from: a store that is back should not be left alone for longer.
const LONGEST_LEASE: Duration = Duration::from_secs(10);
/// The number of times that a waiter asks again within a lease, more or less.
const TRIES_PER_LEASE: u32 = 50;
/// No step of a waiter, from one of its looks at the time to the next, counts for more than this part of the lease: a request takes less
/// than that, so in a step that took longer the process was not running. While it was paused the store was not silent: it was not asked.
const LONGEST_STEP: u32 = 3;

/// The time for which a store has not answered a waiter, in *running* time of the process. A waiter bears one lease at most; a request that
/// only tries bears less.
#[derive(Clone)]
pub struct RetryDeadline<'a> {
    environment: &'a dyn Environment,
    lease: Duration,
    /// The longest outage that is borne.
    longest: Duration,
    /// The moment of the last answer.
    answered: Moment,
    /// Running time between that and `counted`.
    borne: Duration,
    counted: Moment,
}

impl<'a> RetryDeadline<'a> {
    /// Creates a deadline that counts from now on.
    pub fn new(environment: &'a dyn Environment, lease: Duration) -> Self {
        let now = environment.now();
        Self { environment, lease, longest: lease, answered: now, borne: Duration::ZERO, counted: now }
    }

    /// Creates the deadline of a request, which counts from now on. A request that only tries bears no more than one `request_timeout`: its
    /// caller has asked for an answer, not for a wait.
    pub fn of(environment: &'a dyn Environment, request: &Request, request_timeout: Duration) -> Self {
        let longest = match request.patience {
            Patience::Queue => request.lease,
            Patience::Try => request_timeout.min(request.lease),
        };
        Self { longest, ..Self::new(environment, request.lease) }
    }

    /// Notes that the store has answered now.
    pub fn answered(&mut self) {
        self.answered_at(self.environment.now());
    }

    /// Notes that the store has answered at `moment` or later.
    pub fn answered_at(&mut self, moment: Moment) {
        if moment <= self.answered {
            return;
        }
        self.answered = moment;
        self.borne = self.borne.min(self.counted.since(moment));
        self.counted = self.counted.max(moment);
    }

    /// Returns for how much longer an outage is borne.
    pub fn left(&self) -> Duration {
        self.longest.saturating_sub(self.borne + self.step())
    }

    /// Waits a little before the next try.
    ///
    /// # Errors
    /// `error` itself, if the deadline has passed, or if waiting does not mend the error.
    pub async fn retry_or_fail(&mut self, error: Error) -> Result<()> {
        self.count();
        contact::failed(&error);
        if !error.kind().is_silence() || self.left().is_zero() {
            return Err(error);
        }
        self.environment.sleep(self.environment.jitter(self.pause())).await;
        Ok(())
    }

    /// Waits until the deadline has passed.
    ///
    /// # Cancel safety
    /// Can be dropped and called again: what was counted is kept.
    pub async fn outlast(&mut self) {
        while !self.left().is_zero() {
            self.environment.sleep(self.pause().min(self.left())).await;
            self.count();
        }
    }

    fn pause(&self) -> Duration {
        self.lease.min(LONGEST_LEASE) / TRIES_PER_LEASE
    }

    fn count(&mut self) {
        self.borne += self.step();
        self.counted = self.environment.now();
    }

    fn step(&self) -> Duration {
        self.environment.now().since(self.counted).min(self.lease / LONGEST_STEP)
    }
}

impl fmt::Debug for RetryDeadline<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryDeadline").field("lease", &self.lease).field("left", &self.left()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::SystemEnvironment;
    use crate::error::ErrorKind;

    const LEASE: Duration = Duration::from_secs(9);

    fn away() -> Error {
        Error::new(ErrorKind::Unavailable, "the store is away")
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_is_borne_for_one_lease() {
        let environment = SystemEnvironment::on_tokio_clock();
        let mut deadline = RetryDeadline::new(&*environment, LEASE);
        let before = environment.now();
        while deadline.retry_or_fail(away()).await.is_ok() {}
        let took = environment.now().since(before);
        assert!(took >= LEASE && took < LEASE * 11 / 10, "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_of_the_process_is_no_outage() {
        let environment = SystemEnvironment::on_tokio_clock();
        let mut deadline = RetryDeadline::new(&*environment, LEASE);
        tokio::time::advance(LEASE * 5).await;
        deadline.retry_or_fail(away()).await.unwrap();
        assert!(deadline.left() > LEASE / 2, "{deadline:?}");
        tokio::time::advance(LEASE).await;
        deadline.retry_or_fail(away()).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_begins_the_deadline_again_and_an_earlier_one_does_not() {
        let environment = SystemEnvironment::on_tokio_clock();
        let mut deadline = RetryDeadline::new(&*environment, LEASE);
        let before = environment.now();
        tokio::time::advance(LEASE / 4).await;
        deadline.retry_or_fail(away()).await.unwrap();
        let borne = deadline.left();
        deadline.answered_at(before);
        assert_eq!(deadline.left(), borne);
        deadline.answered();
        assert_eq!(deadline.left(), LEASE);
    }

    #[tokio::test(start_paused = true)]
    async fn what_waiting_does_not_mend_is_not_borne() {
        let environment = SystemEnvironment::on_tokio_clock();
        let mut deadline = RetryDeadline::new(&*environment, LEASE);
        let error =
            deadline.retry_or_fail(Error::new(ErrorKind::Config, "a wrong password")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
    }

    #[tokio::test(start_paused = true)]
    async fn outlasting_takes_one_lease_of_running_time_however_often_it_is_dropped() {
        let environment = SystemEnvironment::on_tokio_clock();
        let mut deadline = RetryDeadline::new(&*environment, LEASE);
        let before = environment.now();
        while tokio::time::timeout(LEASE / 7, deadline.outlast()).await.is_err() {}
        assert!(environment.now().since(before) <= LEASE * 11 / 10);
    }
}
