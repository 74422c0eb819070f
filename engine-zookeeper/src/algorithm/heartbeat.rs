//! The heartbeat: until when the session, and with it everything that this client holds, can be relied on.
//!
//! The session ends one timeout T after the *leader* last heard of it. A heartbeat that only the connected server answers proves
//! nothing: a server that has lost its leader goes on answering reads for several ticks, and a leader that has lost the other servers, too.
//! So a heartbeat is a write that changes nothing (a transaction with one check): its answer says that the leader had a quorum after
//! it was sent, and that the session was alive there. The leader is told of a session's signs of life every half tick, so it has heard of
//! this session no earlier than T/6 before (if T is three ticks or more; T/4 if it is two; there is a sign of life every T/6): it keeps the
//! session until 5/6 T after the heartbeat was sent. Validity ends at 3/4 T: nine tenths of a lease of 5/6 T. The rest is for clocks that
//! differ in speed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Mutex as AsyncMutex;
use ylock_core::environment::Moment;

use super::store::Fault;

/// The heartbeats of a session; see the [module](self).
#[derive(Debug, Default)]
pub(super) struct Heartbeat {
    /// The moment just before the last confirmed write was sent.
    confirmed: Mutex<Moment>,
    /// The last heartbeat, locked while one is on its way, so that there is only one at a time. The task that sends it, or is the next to,
    /// may be in a runtime that is not driven any more: then the other tasks have another one of these.
    last: Mutex<Arc<Last>>,
}

/// The last heartbeat: when it was sent, and what came of it.
type Last = AsyncMutex<Option<(Moment, Result<(), Fault>)>>;

impl Heartbeat {
    pub(super) fn confirmed(&self) -> Moment {
        *self.confirmed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a write was confirmed that was sent at this moment.
    pub(super) fn confirm(&self, sent: Moment) {
        let mut confirmed = self.confirmed.lock().unwrap_or_else(PoisonError::into_inner);
        *confirmed = sent.max(*confirmed);
    }

    /// Sends a write. If it is confirmed, it counts from before it was sent. The request is sent when `send` is called, not when its answer is polled.
    pub(super) async fn write<T, F>(
        &self,
        now: impl FnOnce() -> Moment,
        send: impl FnOnce() -> F,
    ) -> Result<T, Fault>
    where
        F: Future<Output = Result<T, Fault>>,
    {
        let sent = now();
        let answer = send().await;
        if answer.is_ok() {
            self.confirm(sent);
        }
        answer
    }

    /// Sends one heartbeat for all tasks that ask while the one before is on its way: it begins after each of them asked. Sends none if
    /// the last one was confirmed and `will_do`, by when it was sent. Returns when the heartbeat was sent. `patience` ends when a heartbeat
    /// that is on its way should long have been answered.
    pub(super) async fn beat<W, N, P, S, B, F>(
        &self,
        will_do: W,
        now: N,
        patience: P,
        beat: B,
    ) -> Result<Moment, Fault>
    where
        W: FnOnce(Moment) -> bool,
        N: Fn() -> Moment,
        P: Fn() -> S,
        S: Future<Output = ()>,
        B: FnOnce() -> F,
        F: Future<Output = Result<(), Fault>>,
    {
        let asked = now();
        let mut last = loop {
            let last = Arc::clone(&self.last());
            tokio::select! {
                biased;
                last = Arc::clone(&last).lock_owned() => break last,
                () = patience() => self.forget(&last),
            }
        };
        if let Some((sent, result)) = &*last
            && *sent >= asked
        {
            return result.clone().map(|()| *sent);
        }
        if let Some((sent, Ok(()))) = &*last
            && will_do(*sent)
        {
            return Ok(*sent);
        }
        let sent = now();
        let result = beat().await;
        if result.is_ok() {
            self.confirm(sent);
        }
        *last = Some((sent, result.clone()));
        result.map(|()| sent)
    }

    fn forget(&self, stuck: &Arc<Last>) {
        let mut last = self.last();
        if Arc::ptr_eq(&last, stuck) {
            *last = Arc::default();
        }
    }

    fn last(&self) -> MutexGuard<'_, Arc<Last>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use futures_util::FutureExt;

    use super::*;

    /// A heart, and a clock that goes on whenever it is read, and while a heartbeat is on its way.
    #[derive(Default)]
    struct Body(Heartbeat, AtomicU64);

    impl Body {
        fn now(&self) -> Moment {
            Moment::from_nanos(self.1.fetch_add(1, Ordering::Relaxed))
        }

        async fn beat(&self, will_do: bool, answer: Result<(), Fault>) -> (Result<Moment, Fault>, bool) {
            let mut sent = false;
            let beat = self.0.beat(
                |_| will_do,
                || self.now(),
                std::future::pending,
                || {
                    sent = true;
                    self.1.fetch_add(100, Ordering::Relaxed);
                    std::future::ready(answer)
                },
            );
            let moment = beat.await;
            (moment, sent)
        }
    }

    #[tokio::test]
    async fn a_heartbeat_that_will_do_counts_from_before_it_was_sent() {
        let body = Body::default();
        let before = body.now();
        let (first, sent) = body.beat(false, Ok(())).await;
        let first = first.unwrap();
        assert!(sent && first > before && first.plus(std::time::Duration::from_nanos(100)) < body.now());
        assert_eq!(body.beat(true, Ok(())).await, (Ok(first), false));
        let (second, sent) = body.beat(false, Ok(())).await;
        assert!(sent && second.unwrap() > first);
    }

    #[tokio::test]
    async fn a_write_counts_from_before_it_was_sent() {
        let body = Body::default();
        let before = body.now();
        let send = || {
            body.1.fetch_add(100, Ordering::Relaxed);
            std::future::ready(Ok(()))
        };
        body.0.write(|| body.now(), send).await.unwrap();
        assert!(body.0.confirmed() > before);
        assert!(body.0.confirmed().plus(std::time::Duration::from_nanos(100)) < body.now());
    }

    /// The first heartbeat is not driven any more, and has the lock that only one may have.
    #[tokio::test]
    async fn a_heartbeat_that_stands_still_keeps_nobody_from_another_one() {
        let body = Body::default();
        let beats = |answer| body.0.beat(|_| false, || body.now(), || std::future::ready(()), answer);
        let stuck = std::future::pending::<Result<(), Fault>>;
        let first = body.0.beat(|_| false, || body.now(), std::future::pending::<()>, stuck);
        tokio::pin!(first);
        assert!((&mut first).now_or_never().is_none());
        let second = beats(|| std::future::ready(Ok(())));
        assert_eq!(second.now_or_never().expect("it waits for the first one"), Ok(body.0.confirmed()));
        let (third, sent) = body.beat(false, Ok(())).now_or_never().expect("nothing is in the way any more");
        assert!(sent && third == Ok(body.0.confirmed()));
    }

    #[tokio::test]
    async fn a_heartbeat_without_an_answer_never_will_do() {
        let body = Body::default();
        assert_eq!(body.beat(true, Err(Fault::Timeout)).await, (Err(Fault::Timeout), true));
        let (moment, sent) = body.beat(true, Ok(())).await;
        assert!(sent && moment == Ok(body.0.confirmed()));
        assert!(body.beat(false, Err(Fault::Timeout)).await.1 && body.0.confirmed() == moment.unwrap());
        assert!(body.beat(true, Ok(())).await.1, "the last one had no answer");
    }
}
