//! What this client knows of its acquisitions: one record for each, and nothing anywhere else.
//!
//! A record says whether everything was answered that could let its acquisition in. Otherwise a copy of it may still be on its way, and
//! whoever undoes the acquisition must have the server remember that. So the record begins before the first such request is sent, and
//! ends when the acquisition begins to be given back. From then on nothing is known, and what is not known counts as not answered:
//! neither an acquisition that failed nor a release that was given up leaves anything here.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use ylock_core::StoreToken;
use ylock_core::engine::AcquisitionId;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Records(Mutex<HashMap<AcquisitionId, Record>>);

#[derive(Default)]
struct Record {
    /// Requests that could let it in: sent, and neither answered nor given up.
    on_their_way: u32,
    /// One was given up. It may still arrive, whatever others were answered since.
    doubtful: bool,
    waiter: Arc<Waiter>,
}

/// A request that could let an acquisition in. Dropped without an answer, it may still do so.
pub(crate) struct Mark {
    records: Arc<Records>,
    id: AcquisitionId,
    is_answered: bool,
}

/// Somebody was let in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    pub(crate) token: StoreToken,
    pub(crate) contended: bool,
}

/// Where messages to an acquisition arrive.
#[derive(Default)]
pub(crate) struct Waiter {
    told: Mutex<Option<Told>>,
    wake: Notify,
}

impl Records {
    /// A request is about to be sent.
    pub(crate) fn begin(self: &Arc<Self>, id: AcquisitionId) -> Mark {
        self.lock().entry(id).or_default().on_their_way += 1;
        Mark { records: Arc::clone(self), id, is_answered: false }
    }

    /// To be called before the server hears of the acquisition: the message may come before the answer.
    pub(crate) fn waiter(&self, id: AcquisitionId) -> Arc<Waiter> {
        Arc::clone(&self.lock().entry(id).or_default().waiter)
    }

    /// Whether all requests that could let it in were answered.
    pub(crate) fn is_clear(&self, id: AcquisitionId) -> bool {
        self.lock().get(&id).is_some_and(Record::is_clear)
    }

    /// It is about to be given back, and not used any more. Answers whether all requests that could let it in were answered.
    pub(crate) fn end(&self, id: AcquisitionId) -> bool {
        self.lock().remove(&id).is_some_and(|record| record.is_clear())
    }

    /// A message came. Answers whether it is about an acquisition of this client.
    pub(crate) fn deliver(&self, id: AcquisitionId, told: Told) -> bool {
        let Some(waiter) = self.lock().get(&id).map(|record| Arc::clone(&record.waiter)) else {
            return false;
        };
        *waiter.told() = Some(told);
        waiter.wake.notify_one();
        true
    }

    /// Messages may have been missed: all who wait ask.
    pub(crate) fn wake_all(&self) {
        self.lock().values().for_each(|record| record.waiter.wake.notify_one());
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    fn finish(&self, id: AcquisitionId, is_answered: bool) {
        if let Some(record) = self.lock().get_mut(&id) {
            record.on_their_way = record.on_their_way.saturating_sub(1);
            record.doubtful |= !is_answered;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<AcquisitionId, Record>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Record {
    fn is_clear(&self) -> bool {
        self.on_their_way == 0 && !self.doubtful
    }
}

impl Mark {
    /// The answer has come.
    pub(crate) fn answered(mut self) {
        self.is_answered = true;
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.records.finish(self.id, self.is_answered);
    }
}

impl Waiter {
    /// Waits until there is something new: a grant, or a reason to ask.
    pub(crate) async fn news(&self) -> Option<Told> {
        self.wake.notified().await;
        self.told().take()
    }

    fn told(&self) -> MutexGuard<'_, Option<Told>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> AcquisitionId {
        AcquisitionId::from_u128(1)
    }

    #[test]
    fn a_request_without_an_answer_is_not_made_up_for_by_the_answer_to_the_next_one() {
        let records = Arc::new(Records::default());
        drop(records.begin(id()));
        records.begin(id()).answered();
        assert!(!records.is_clear(id()) && !records.end(id()));
        assert_eq!(records.len(), 0);
    }

    #[test]
    fn a_request_on_its_way_may_still_let_in() {
        let records = Arc::new(Records::default());
        let mark = records.begin(id());
        records.begin(id()).answered();
        assert!(!records.end(id()));
        mark.answered();
        assert_eq!(records.len(), 0, "its end does not begin a record anew");
    }

    #[test]
    fn what_is_not_known_counts_as_not_answered() {
        let records = Arc::new(Records::default());
        assert!(!records.is_clear(id()) && !records.end(id()));
        records.begin(id()).answered();
        assert!(records.is_clear(id()) && records.end(id()) && !records.end(id()));
    }
}
