//! The one future per key that talks to the store for it: contends, and gives back. It carries out what the entry
//! decides and decides nothing itself.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::Notify;

use super::{Keeper, caught};
use crate::backoff::Backoff;
use crate::contact::{Contact, away};
use crate::engine::{AcquisitionId, Release, Request};
use crate::environment::Moment;
use crate::environment::shift::{Ending, Shift};
use crate::error::{Error, ErrorKind, Result};
use crate::foreign::tell;
use crate::key::Key;
use crate::unlocked::Unlocked;

use super::effects::Effects;
use super::entry::{Entry, Phase, Releasing, Running, Step};
use super::logged::Logged;
use super::throttle::{self, Place, Throttle, Throttles};

/// A release is given up after one lease and not before this many attempts; if they hang, this many fit into the lease.
const ATTEMPTS_PER_LEASE: u32 = 3;
const STEPS_PER_ATTEMPT: u32 = 5;

/// The driver of one entry. If its runtime ends before it is done, another driver goes on elsewhere.
pub(super) struct Driver {
    keeper: Arc<Keeper>,
    key: Key,
    contact: Arc<Contact>,
    /// True while an attempt to release is under way.
    asking: AtomicBool,
}

impl Driver {
    pub(super) fn new(keeper: Arc<Keeper>, key: Key, contact: Arc<Contact>) -> Self {
        Self { keeper, key, contact, asking: AtomicBool::new(false) }
    }
}

impl Shift for Driver {
    async fn work(&self) {
        loop {
            let step = self.keeper.change(&self.key, |entry, _, _| entry.step());
            match step {
                Some(Step::Acquire(contender)) => {
                    tokio::select! {
                        // No waiter is left: the engine must not be asked to go on even once. This rings at most once
                        // for a request, so it cannot keep an answer from a waiter.
                        biased;
                        // The future is dropped and the outcome unknown: the entry has decided to release already.
                        () = contender.cancel.notified() => {}
                        () = self.acquire(&contender.request) => {}
                    }
                }
                Some(Step::Release { id, next, attempts, lease }) => {
                    // Taken before the pause: a throttle that no release uses is forgotten, with what it has learnt.
                    let throttle = self.keeper.throttles.as_ref().map(Throttles::of_this_runtime);
                    if attempts > 0 {
                        Backoff::RELEASE.wait(&**self.keeper.environment(), attempts - 1).await;
                    }
                    let place = match &throttle {
                        Some(throttle) => Box::pin(self.place(throttle, id, lease)).await,
                        None => None,
                    };
                    let is_answered = self.release(id, next.as_deref(), lease, place).await;
                    if let (Some(throttle), true) = (&throttle, is_answered) {
                        throttle.store_answered();
                    }
                }
                Some(Step::Nothing) | None => break,
            }
        }
    }

    fn ended(&self, how: Ending) {
        // An attempt to release may have been sent.
        if how != Ending::Done && self.asking.load(Ordering::Relaxed) {
            self.keeper.change(&self.key, |entry, _, _| entry.release_dropped());
        }
        match how {
            Ending::Done => {}
            // The timers of a runtime that ends panic, where a caller polls the driver in it on a thread of its own.
            Ending::Panicked if self.keeper.environment().runs_here() => {
                self.fail("the background work panicked; it needs a tokio runtime with timers");
            }
            Ending::Interrupted | Ending::Panicked => {
                let running = Running { contact: Arc::clone(&self.contact), slot: None };
                drop(self.keeper.drive(&self.key, running));
            }
            Ending::NeverBegan => self.fail("no runtime is left for the background work"),
        }
    }
}

impl Driver {
    /// Fails the callers that wait. What is under way goes on with the next change of the entry.
    fn fail(&self, message: &'static str) {
        let error = Error::new(ErrorKind::Unexpected, message).with_key(&self.key);
        self.keeper.change(&self.key, |entry, _, effects| {
            entry.driver = None;
            entry.fail_all(&error, effects);
            entry.fail_release(&error, effects);
        });
    }

    async fn acquire(&self, request: &Request) {
        let answer = caught(self.contact.scope(self.keeper.engine().acquire(request))).await;
        self.keeper.change(&self.key, |entry, context, effects| {
            entry.answered(context, request, answer, effects);
        });
    }

    /// Waits for a place among the releases that are on their way. Before the attempt begins, because nothing is asked meanwhile: were the
    /// wait a part of it, a store with much to do would be taken for one that does not answer.
    ///
    /// Returns `None`, and the release goes without a place, if a waiter waits for it or comes: a waiter waits for no other key's release.
    /// Also if no release is answered for as long as an attempt may take: where the store is away, each release must come to its end by
    /// itself.
    async fn place<'a>(
        &self,
        throttle: &'a Throttle,
        id: AcquisitionId,
        lease: Duration,
    ) -> Option<Place<'a>> {
        if let Some(place) = throttle.try_enter() {
            return Some(place);
        }
        let hurried = self.keeper.change(&self.key, |entry, _, _| entry.wait_for_place(id)).flatten()?;
        let began = self.keeper.environment().now();
        let place = tokio::select! {
            // Each of these ends the wait, so none can starve another. A place that is there is taken.
            biased;
            place = throttle.enter() => Some(place),
            () = hurried.notified() => None,
            () = self.until_silent(throttle, (lease / ATTEMPTS_PER_LEASE).max(throttle::SLOW)) => None,
        };
        let waited = self.keeper.environment().now().since(began);
        self.keeper.change(&self.key, |entry, _, _| entry.waited_for_place(id, waited));
        place
    }

    /// Waits until no release has been answered for this long, or not at all if that was so before and none was answered since.
    async fn until_silent(&self, throttle: &Throttle, time: Duration) {
        while !throttle.is_silent() {
            let store_answers = throttle.store_answers();
            self.outlast(time).await;
            throttle.time_passed_since(store_answers);
        }
    }

    /// Makes an attempt. Returns whether the store has answered it.
    async fn release(
        &self,
        id: AcquisitionId,
        next: Option<&Request>,
        lease: Duration,
        place: Option<Place<'_>>,
    ) -> bool {
        let began = self.keeper.environment().now();
        self.asking.store(true, Ordering::Relaxed);
        let is_asked = AtomicBool::new(false);
        // Pinned, and what is rare in a box: the driver of each key has room for this.
        let attempt = pin!(async {
            let mut attempt = pin!(self.attempt(id, next, lease));
            match futures_util::poll!(attempt.as_mut()) {
                // What is there at once does not come from the store: an engine may know that it has nothing to give back.
                Poll::Ready(answer) => answer,
                Poll::Pending => {
                    is_asked.store(true, Ordering::Relaxed);
                    attempt.await
                }
            }
        });
        let answer = match place {
            Some(place) => Box::pin(place.during(self.outlast(throttle::SLOW), attempt)).await,
            None => attempt.await,
        };
        self.asking.store(false, Ordering::Relaxed);
        match answer {
            Ok(answer) => {
                self.keeper.change(&self.key, |entry, context, effects| {
                    entry.released(context, id, answer, effects)
                });
                is_asked.load(Ordering::Relaxed)
            }
            Err(error) => {
                // An attempt that hung was dropped, and a request that is dropped says nothing by itself.
                self.contact.failed(&error);
                self.release_failed(id, began, error);
                false
            }
        }
    }

    async fn attempt(&self, id: AcquisitionId, next: Option<&Request>, lease: Duration) -> Result<Release> {
        tokio::select! {
            // An answer that comes at the last moment counts. An engine that does not answer is not ready, so the end of the time is
            // always seen.
            biased;
            answer = caught(self.contact.scope(self.keeper.engine().release(&self.key, id, next))) => answer,
            // One attempt that hangs must not keep the key, and the waiters for it, for ever.
            () = self.outlast(lease / ATTEMPTS_PER_LEASE) => {
                Err(Error::new(ErrorKind::Indeterminate, "the store did not answer a release"))
            }
        }
    }

    /// Waits for this long. In steps, so that a pause of the process counts for one of them: while the process stood still, the store was
    /// not silent; the client did not listen. In few steps, because thousands of releases may be under way.
    async fn outlast(&self, time: Duration) {
        for _ in 0..STEPS_PER_ATTEMPT {
            self.keeper.environment().sleep(time / STEPS_PER_ATTEMPT).await;
        }
    }

    fn release_failed(&self, id: AcquisitionId, began: Moment, error: Error) {
        let error = self.keeper.about(&self.key, error);
        tell!(debug, error = format!("{error:#}"), "a release failed");
        let is_closed = self.keeper.closed.load(Ordering::SeqCst);
        self.keeper.change(&self.key, |entry, context, effects| {
            let Some(releasing) = entry.releasing(id) else { return };
            releasing.attempts += 1;
            // Not since it was given back: it may have waited for a place for longer than a lease.
            let tried_for = context.now().since(*releasing.began.get_or_insert(began));
            let given_up = releasing.gives_up(tried_for, is_closed, &error);
            let was_held = releasing.held && releasing.result != Unlocked::WasLost;
            let hold = releasing.last_hold.clone();
            entry.fail_those_who_try(&self.keeper.about(context.key, away(error.clone())), effects);
            if let Some(message) = given_up {
                let error = self
                    .keeper
                    .about(context.key, Error::new(ErrorKind::Indeterminate, message).with_source(error));
                // A holder that has lost the lock was told already, and has nothing to give back.
                if was_held {
                    effects.told.logged.push(Logged::GivenUp { hold, error: error.clone() });
                }
                entry.gave_up(context, id, &error, effects);
            }
        });
    }
}

impl Releasing {
    /// Returns why the release is not tried again; `None` if it is.
    ///
    /// The time alone proves nothing: a process that was paused in its first attempt has not been
    /// asking for a lease. What the store refuses because of its set-up, such as a right that was
    /// taken away, may still be set right within the lease, so a client that is open tries on. One
    /// that closes ends with it: it would make its caller wait for a lease, as a rule for nothing.
    fn gives_up(&self, tried_for: Duration, is_closed: bool, error: &Error) -> Option<&'static str> {
        if tried_for >= self.lease && self.attempts >= ATTEMPTS_PER_LEASE {
            return Some(
                "the store did not confirm the release within one lease; it frees the lock by itself",
            );
        }
        let is_refused = error.kind() == ErrorKind::Config;
        (is_closed && is_refused).then_some(
            "the store refuses the release, and the client is closed; the store frees the lock by itself when its lease is over",
        )
    }
}

impl Entry {
    /// Returns the release of this acquisition, if it is under way.
    fn releasing(&mut self, id: AcquisitionId) -> Option<&mut Releasing> {
        match &mut self.phase {
            Phase::Releasing(releasing) if releasing.id == id => Some(releasing),
            _ => None,
        }
    }

    /// Begins to wait for a place among the releases that are on their way. Returns what is rung when a waiter comes; `None` if there is one.
    fn wait_for_place(&mut self, id: AcquisitionId) -> Option<Arc<Notify>> {
        let is_awaited = !self.queue.is_empty();
        // The waiter that is to follow may have gone, and the store have let it in: then it keeps other clients out.
        let releasing = self.releasing(id).filter(|releasing| !is_awaited && releasing.next.is_none())?;
        releasing.throttled = true;
        Some(Arc::clone(releasing.waits_for_place.insert(Arc::default())))
    }

    /// Notes that a release had to wait for a place for this long. Nothing was asked meanwhile, so the time for which the store has been
    /// silent to this release does not go on.
    fn waited_for_place(&mut self, id: AcquisitionId, waited: Duration) {
        if let Some(releasing) = self.releasing(id) {
            releasing.began = releasing.began.map(|began| began.plus(waited));
        }
    }

    /// Ends the wait of a release for a place, if a waiter waits for the release.
    pub(super) fn hurry(&mut self, effects: &mut Effects) {
        if let Phase::Releasing(releasing) = &mut self.phase
            && !self.queue.is_empty()
        {
            effects.hurried = releasing.waits_for_place.take().or(effects.hurried.take());
        }
    }

    /// Notes an attempt to release of which no answer comes, such as one whose runtime has ended: it may have happened.
    pub(super) fn release_dropped(&mut self) {
        if let Phase::Releasing(releasing) = &mut self.phase {
            releasing.attempts += 1;
        }
    }
}
