//! The heartbeat: until when the session, and with it everything that this client holds, can be relied on.
//!
//! The session ends one timeout T after the *leader* last heard of it. A heartbeat that only the connected server answers proves
//! nothing: a server that has lost its leader goes on answering reads for several ticks, and a leader that has lost the others, too.
//! So a heartbeat is a write that changes nothing (a transaction with one check): its answer says that the leader had a quorum after
//! it was sent, and that the session was alive there. The leader is told of a session's signs of life every half tick, so it has heard of this one
//! no earlier than T/6 before (if T is three ticks or more; T/4 if it is two; there is a sign of life every T/6): it keeps the session
//! until 5/6 T after the heartbeat was sent. Validity ends at 3/4 T: nine tenths of a lease of 5/6 T. The rest is for clocks that
//! differ in speed.

use std::sync::Mutex;
use std::sync::PoisonError;

use tokio::sync::Mutex as AsyncMutex;
use ylock_core::environment::Moment;

use super::errors::Fault;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Heart {
    /// Just before the last write was sent that was confirmed.
    confirmed: Mutex<Moment>,
    /// Only one heartbeat is on its way at a time. The last one: when it was sent, and what came of it.
    last: AsyncMutex<Option<(Moment, Result<(), Fault>)>>,
}

impl Heart {
    pub(super) fn confirmed(&self) -> Moment {
        *self.confirmed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A write was confirmed that was sent then.
    pub(super) fn confirm(&self, sent: Moment) {
        let mut confirmed = self.confirmed.lock().unwrap_or_else(PoisonError::into_inner);
        *confirmed = sent.max(*confirmed);
    }

    /// Sends a write. It counts from before that, if it is confirmed. The driver sends when it is called, not when it is polled.
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

    /// One heartbeat for all who ask while it is on its way: it begins after each of them asked. None, if the last one was confirmed
    /// and `will_do`, by when it was sent.
    pub(super) async fn beat<W, N, B, F>(&self, will_do: W, now: N, beat: B) -> Result<Moment, Fault>
    where
        W: FnOnce(Moment) -> bool,
        N: Fn() -> Moment,
        B: FnOnce() -> F,
        F: Future<Output = Result<(), Fault>>,
    {
        let asked = now();
        let mut last = self.last.lock().await;
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
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// A heart, and a clock that goes on whenever somebody looks at it, and while a heartbeat is on its way.
    #[derive(Default)]
    struct Body(Heart, AtomicU64);

    impl Body {
        fn now(&self) -> Moment {
            Moment::from_nanos(self.1.fetch_add(1, Ordering::Relaxed))
        }

        async fn beat(&self, will_do: bool, answer: Result<(), Fault>) -> (Result<Moment, Fault>, bool) {
            let mut sent = false;
            let beat = self.0.beat(
                |_| will_do,
                || self.now(),
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
