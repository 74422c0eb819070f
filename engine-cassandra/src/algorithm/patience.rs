//! How long failing requests are borne: a short outage must not throw everybody out of the queue.

use std::time::Duration;

use ylock_core::engine::Request;
use ylock_core::environment::Moment;
use ylock_core::{Error, ErrorKind, Result};

use super::seat::Seat;

/// See the [module](self).
pub(super) struct Patience<'a> {
    seat: &'a Seat,
    lease: Duration,
    last_answer: Moment,
}

impl<'a> Patience<'a> {
    pub(super) fn new(seat: &'a Seat, request: &Request) -> Self {
        Self { seat, lease: request.lease, last_answer: seat.client.now() }
    }

    /// The store has answered.
    pub(super) fn renew(&mut self) {
        self.last_answer = self.seat.client.now();
    }

    /// Waits a little before the next try, or gives up.
    pub(super) async fn bear(&self, error: Error) -> Result<()> {
        let silent = self.seat.client.now().since(self.last_answer);
        if error.kind() != ErrorKind::Unavailable || silent >= self.lease {
            return Err(error);
        }
        let environment = &self.seat.client.environment;
        environment.sleep(environment.jitter(self.lease / 50)).await;
        Ok(())
    }
}
