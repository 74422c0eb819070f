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

    /// One heartbeat for all who ask while it is on its way: it begins after each of them asked.
    pub(super) async fn beat<N, B, F>(&self, now: N, beat: B) -> Result<Moment, Fault>
    where
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
        let sent = now();
        let result = beat().await;
        if result.is_ok() {
            self.confirm(sent);
        }
        *last = Some((sent, result.clone()));
        result.map(|()| sent)
    }
}
