//! The one task per key that talks to the store for it: contends, and gives back. It carries out what the entry
//! decides and decides nothing itself.

use std::sync::Arc;
use std::time::Duration;

use super::Keeper;
use crate::engine::{AcquisitionId, Request};
use crate::environment::Moment;
use crate::error::{Error, ErrorKind};
use crate::key::Key;

use super::entry::Step;

/// The first pause before a release is tried again; doubled from then on.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// A release is given up after one lease and not before so many attempts; if they hang, so many fit into it.
const ATTEMPTS_PER_LEASE: u32 = 3;

/// Runs the driver of one entry. If its task is dropped before it is done, because the runtime ends, the entry becomes an
/// orphan, and whoever looks after the client next adopts it.
pub(super) struct Driver {
    keeper: Arc<Keeper>,
    key: Key,
    done: bool,
}

impl Driver {
    pub(super) fn new(keeper: Arc<Keeper>, key: Key) -> Self {
        Self { keeper, key, done: false }
    }

    pub(super) async fn run(mut self) {
        loop {
            let step = self.keeper.change(&self.key, |entry, _, _| entry.step());
            match step {
                Some(Step::Acquire(request, cancel)) => {
                    tokio::select! {
                        // Nobody waits any more: the engine must not be asked to go on even once. It rings at most once
                        // for a request, so it cannot keep an answer from being heard that somebody waits for.
                        biased;
                        // The future is dropped and the outcome unknown: the entry has decided to release already.
                        () = cancel.notified() => {}
                        () = self.acquire(&request) => {}
                    }
                }
                Some(Step::Release { id, next, attempts }) => self.release(id, next.as_ref(), attempts).await,
                Some(Step::Nothing) | None => break,
            }
        }
        self.done = true;
    }

    async fn acquire(&self, request: &Request) {
        let answer = self.keeper.engine().acquire(request).await;
        self.keeper.change(&self.key, |entry, context, effects| match answer {
            Ok(Some(grant)) => entry.granted(context, grant, effects),
            Ok(None) => entry.not_free(context, request.id, effects),
            Err(error) => entry.failed(context, request.id, &self.keeper.about(&request.key, error), effects),
        });
    }

    async fn release(&self, id: AcquisitionId, next: Option<&Request>, attempts: u32) {
        if attempts > 0 {
            let pause = FIRST_PAUSE.saturating_mul(1 << attempts.min(8)).min(LONGEST_PAUSE);
            let environment = self.keeper.environment();
            environment.sleep(environment.jitter(pause)).await;
        }
        let environment = self.keeper.environment();
        let answer = tokio::select! {
            // An answer that comes in the last moment is one, also after a pause of the process that was longer than the
            // time. An engine that does not answer is not ready, so the end of the time is always seen.
            biased;
            answer = self.keeper.engine().release(&self.key, id, next) => answer,
            // One attempt that hangs must not keep the key, and those who wait for it, for ever.
            () = environment.sleep(self.keeper.longest_lease() / ATTEMPTS_PER_LEASE) => {
                Err(Error::new(ErrorKind::Indeterminate, "the store did not answer a release"))
            }
        };
        match answer {
            Ok(answer) => {
                self.keeper.change(&self.key, |entry, context, effects| {
                    entry.released(context, id, answer, effects)
                });
            }
            Err(error) => self.release_failed(id, error),
        }
    }

    fn release_failed(&self, id: AcquisitionId, error: Error) {
        let error = self.keeper.about(&self.key, error);
        tracing::debug!(%error, "a release failed");
        let bound = self.keeper.longest_lease();
        self.keeper.change(&self.key, |entry, context, effects| {
            let Some((since, attempts)) = entry.leaving(id) else { return };
            *attempts += 1;
            // The time alone proves nothing: a process that was paused in its first attempt has not asked for a lease.
            if context.now().since(since) >= bound && *attempts >= ATTEMPTS_PER_LEASE {
                let message =
                    "the store did not confirm a release for one lease; it frees the lock by itself";
                let error = self
                    .keeper
                    .about(context.key, Error::new(ErrorKind::Indeterminate, message).with_source(error));
                tracing::warn!(%error, "a release was given up");
                entry.gave_up(context, id, &error, effects);
            }
        });
    }
}

impl super::entry::Entry {
    /// Since when this release is tried, and how often it has failed.
    fn leaving(&mut self, id: AcquisitionId) -> Option<(Moment, &mut u32)> {
        match &mut self.store {
            super::entry::Store::Releasing(leaving) if leaving.id == id => {
                Some((leaving.since, &mut leaving.attempts))
            }
            _ => None,
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if !self.done {
            self.keeper.abandon(&self.key);
        }
    }
}
