//! An attempt to connect, for all requests that wait for it.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::Shared;
use tokio::sync::oneshot;
use tokio::task::Unconstrained;
use ylock_core::Result;
use ylock_core::environment::Moment;

/// The time for which no request tries again after a connection could not be made: very many may want one when a server is back.
const PAUSE: Duration = Duration::from_millis(100);

/// The result of an attempt. Whatever else a task has done in its turn: a result that is there must not look as if it were not.
pub(super) type Connected = Shared<Unconstrained<oneshot::Receiver<Result<()>>>>;

/// An attempt to connect. It goes on in a task of its own, also after the requests that need it have ended: each request ends in its own
/// time, and a server that is far away is reached all the same.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    pub(super) began: Moment,
    pub(super) result: Connected,
}

impl Attempt {
    /// Returns whether a request shall take the result of this attempt: of one that failed, for a moment; of one that is under way, unless
    /// it takes so long that nothing runs it any more.
    pub(super) fn is_of_use(&self, now: Moment, connect_timeout: Duration) -> bool {
        let age = now.since(self.began);
        match self.result.clone().now_or_never() {
            None => age < connect_timeout,
            Some(Ok(Err(_))) => age < connect_timeout.min(PAUSE),
            // The connection is there; or the runtime of the attempt has ended.
            Some(Ok(Ok(())) | Err(_)) => false,
        }
    }
}
