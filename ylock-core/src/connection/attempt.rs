//! Work that several callers need and one task does: connecting, opening a session.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::Shared;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::{Unconstrained, unconstrained};

use crate::environment::{Answer, Environment, Moment};
use crate::error::Result;

/// The time for which no caller tries again after an attempt has failed: very many may want a
/// connection when a server is back.
pub const REST: Duration = Duration::from_millis(100);

/// The outcome of an attempt, for all callers that wait for it. They are woken in an order that
/// follows from the order in which they began and ceased to wait: those of a channel `watch` would
/// be woken in an order of chance, and no run of the simulation could be repeated.
///
/// Unconstrained: whatever else a task has done in its turn, an outcome that is there must not look
/// as if it were not.
type Outcome = Shared<Unconstrained<oneshot::Receiver<Result<()>>>>;

/// The last attempt, under way or over. It goes on in a task of its own, also after the callers
/// that need it have ended, and whether or not their futures are polled: none of them holds up the
/// others, and a server that is far away is reached all the same.
#[derive(Default)]
pub struct SharedAttempt(Mutex<Option<(Moment, Outcome)>>);

/// Where an attempt runs.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// In the runtime of the caller that begins it: what is made there is nearest to that caller.
    WithCaller,
    /// Where no work of the program can block it.
    ForAll,
}

impl SharedAttempt {
    /// Returns the outcome of the attempt that is under way, or has just failed, or of a new one.
    /// `None` if the runtime of the attempt has ended.
    ///
    /// `longest`: an attempt that has been under way for so long is left alone. `patience`: how
    /// long a runtime may run nothing that the attempt may rest on.
    pub async fn join(
        &self,
        environment: &Arc<dyn Environment>,
        place: Place,
        (longest, patience): (Duration, Duration),
        work: impl FnOnce() -> Answer<Result<()>>,
    ) -> Option<Result<()>> {
        let mut outcome = self.outcome(environment, place, longest, work);
        loop {
            let stands = async {
                environment.sleep(patience).await;
                environment.abandon_standing(None, patience).await
            };
            tokio::select! {
                biased;
                outcome = &mut outcome => return outcome.ok(),
                // Where the attempt was in such a runtime, its outcome says so now.
                _ = stands => {}
            }
        }
    }

    fn outcome(
        &self,
        environment: &Arc<dyn Environment>,
        place: Place,
        longest: Duration,
        work: impl FnOnce() -> Answer<Result<()>>,
    ) -> Outcome {
        let now = environment.now();
        let mut last = self.0.lock();
        let is_of_use = |(began, outcome): &&(Moment, Outcome)| {
            let age = now.since(*began);
            match (*outcome).clone().now_or_never() {
                None => age < longest,
                Some(Ok(Err(_))) => age < longest.min(REST),
                // It has succeeded; or its runtime has ended.
                Some(Ok(Ok(())) | Err(_)) => false,
            }
        };
        if let Some((_, outcome)) = last.as_ref().filter(is_of_use) {
            return outcome.clone();
        }
        let (publish, outcome) = oneshot::channel();
        let outcome = unconstrained(outcome).shared();
        *last = Some((now, outcome.clone()));
        let work = work();
        let task = Box::pin(async move {
            // The callers may have ended.
            let _ = publish.send(work.await);
        });
        match place {
            Place::WithCaller => environment.spawn(task),
            Place::ForAll => environment.spawn_for_all(task),
        }
        outcome
    }
}

impl fmt::Debug for SharedAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedAttempt")
    }
}
