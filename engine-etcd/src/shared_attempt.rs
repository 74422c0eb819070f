//! Work that several callers need and one task does: connecting, and making an etcd lease.

use std::fmt;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::{Unconstrained, unconstrained};
use ylock_core::environment::{Environment, Moment};

type Outcome<T> = Shared<Unconstrained<oneshot::Receiver<T>>>;

/// Work that is under way, if it is. It goes on in a task of its own, also after the callers that need it have ended, and whether or not their
/// futures are polled: none of them holds up the others.
pub(crate) struct SharedAttempt<T>(Mutex<Option<(Moment, Outcome<T>)>>);

impl<T: Clone + Send + Sync + 'static> SharedAttempt<T> {
    /// Returns the outcome of the work that is under way; begins it if none is, or it has been under way for `patience`, so that no runtime
    /// may run it any more. `None` if the runtime of that task has ended.
    pub(crate) async fn join(
        &self,
        environment: &Arc<dyn Environment>,
        patience: std::time::Duration,
        work: impl FnOnce() -> BoxFuture<'static, T>,
    ) -> Option<T> {
        let outcome = {
            let now = environment.now();
            let mut under_way = self.0.lock();
            let usable = under_way.as_ref().filter(|(began, outcome)| {
                outcome.peek().is_none()
                    && outcome.clone().now_or_never().is_none()
                    && now.since(*began) < patience
            });
            match usable {
                Some((_, outcome)) => outcome.clone(),
                None => {
                    let (publish, outcome) = oneshot::channel();
                    let outcome = unconstrained(outcome).shared();
                    *under_way = Some((now, outcome.clone()));
                    let work = work();
                    environment.spawn(Box::pin(async move {
                        // The callers may have ended.
                        let _ = publish.send(work.await);
                    }));
                    outcome
                }
            }
        };
        outcome.await.ok()
    }
}

impl<T> Default for SharedAttempt<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> fmt::Debug for SharedAttempt<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedAttempt")
    }
}
