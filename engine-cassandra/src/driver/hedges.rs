//! Counts how often a request was sent to one more node, as the driver says.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use scylla::errors::{RequestAttemptError, RequestError};
use scylla::observability::history::{AttemptId, HistoryListener, RequestId, SpeculativeId};
use scylla::policies::retry::RetryDecision;

/// The number of copies that were sent.
#[derive(Debug, Default)]
pub(super) struct Hedges(AtomicU64);

impl Hedges {
    pub(super) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl HistoryListener for Hedges {
    fn log_new_speculative_fiber(&self, _: RequestId) -> SpeculativeId {
        self.0.fetch_add(1, Ordering::Relaxed);
        SpeculativeId(0)
    }

    // Of what else happens nothing is kept.
    fn log_request_start(&self) -> RequestId {
        RequestId(0)
    }

    fn log_request_success(&self, _: RequestId) {}

    fn log_request_error(&self, _: RequestId, _: &RequestError) {}

    fn log_attempt_start(&self, _: RequestId, _: Option<SpeculativeId>, _: SocketAddr) -> AttemptId {
        AttemptId(0)
    }

    fn log_attempt_success(&self, _: AttemptId) {}

    fn log_attempt_error(&self, _: AttemptId, _: &RequestAttemptError, _: &RetryDecision) {}
}
