//! Records of this client's acquisitions: one for each, and nothing about them anywhere else.
//!
//! A record says whether every request was answered that could let its acquisition in. If not, a copy of such a request may still be on
//! its way, and the release that undoes the acquisition must make the server remember that it is undone. So the record begins before the
//! first such request is sent, and ends when the acquisition begins to be given back. From then on nothing is known of the acquisition,
//! and what is not known counts as not answered: neither an acquisition that failed nor a release that was given up leaves anything here.
//!
//! For engines whose server lets acquisitions in and tells their clients. Not covered by semver.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::engine::AcquisitionId;
use crate::error::Error;
use crate::token::StoreToken;

/// The records of one client; see the [module](self).
#[derive(Default)]
pub struct Records(Mutex<HashMap<AcquisitionId, Record>>);

#[derive(Default)]
struct Record {
    /// The number of requests that could let the acquisition in: sent, and neither answered nor given up.
    on_their_way: u32,
    /// True once such a request was given up. It may still arrive, whatever other requests were answered since.
    doubtful: bool,
    /// True once such a request was answered: it may have let the acquisition in, or given it a
    /// place.
    answered: bool,
    /// True once such a request has certainly had no effect.
    refused: bool,
    /// `None` until it is asked for, or a message comes: most acquisitions are let in by the answer to their first request.
    receiver: Option<Arc<NotificationReceiver>>,
}

/// A request that could let an acquisition in. Dropped without an answer, it may still do so.
#[derive(Debug)]
#[must_use = "dropped, the request counts as not answered"]
pub struct Mark {
    records: Arc<Records>,
    id: AcquisitionId,
    outcome: Outcome,
}

/// The outcome of a request that could let an acquisition in.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    Unknown,
    Answered,
    Refused,
}

/// What the store may have of an acquisition that is about to be given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "not covered by semver")]
pub enum Left {
    /// Nothing, now and later: no request has had an effect, and none will.
    Nothing,
    /// What the answers say: all requests were answered.
    Answered,
    /// More than the answers say: a request may still let the acquisition in, or nothing is known
    /// of it.
    InDoubt,
}

/// The server's notice that an acquisition was let in.
#[derive(Clone, Copy, Debug)]
pub struct Notification {
    /// The token of the grant.
    pub token: StoreToken,
    /// Whether another contender that conflicts waits.
    pub contended: bool,
}

/// The receiver of messages to an acquisition.
#[derive(Debug, Default)]
pub struct NotificationReceiver {
    notification: Mutex<Option<Notification>>,
    wake: Notify,
}

impl Records {
    /// Notes that a request is about to be sent that could let the acquisition in.
    pub fn begin(self: &Arc<Self>, id: AcquisitionId) -> Mark {
        self.0.lock().entry(id).or_default().on_their_way += 1;
        Mark { records: Arc::clone(self), id, outcome: Outcome::Unknown }
    }

    /// Returns the receiver of messages to an acquisition, which has the one that came before it was asked for.
    pub fn receiver(&self, id: AcquisitionId) -> Arc<NotificationReceiver> {
        Arc::clone(self.0.lock().entry(id).or_default().receiver.get_or_insert_default())
    }

    /// Returns whether all requests that could let the acquisition in were answered.
    pub fn is_clear(&self, id: AcquisitionId) -> bool {
        self.0.lock().get(&id).is_some_and(Record::is_clear)
    }

    /// Ends the record of an acquisition that is about to be given back, and not used any more.
    /// Returns what the store may have of it.
    pub fn end(&self, id: AcquisitionId) -> Left {
        self.0.lock().remove(&id).map_or(Left::InDoubt, |record| record.left())
    }

    /// Delivers a message. Returns whether it is about an acquisition of this client.
    pub fn deliver(&self, id: AcquisitionId, notification: Notification) -> bool {
        let receiver =
            self.0.lock().get_mut(&id).map(|record| Arc::clone(record.receiver.get_or_insert_default()));
        let Some(receiver) = receiver else { return false };
        *receiver.notification.lock() = Some(notification);
        receiver.wake.notify_one();
        true
    }

    /// Wakes all waiters, so that they ask: messages may have been missed. They are woken in the order of their ids, and not in that of the
    /// map, which its random seed decides: so a run of the simulation can be repeated.
    pub fn wake_all(&self) {
        let mut records = self.0.lock();
        // What is held has no receiver, unless it has waited, and none is made for it.
        let may_wait =
            records.iter_mut().filter(|(_, record)| record.on_their_way > 0 || record.receiver.is_some());
        let mut may_wait: Vec<_> = may_wait.collect();
        may_wait.sort_unstable_by_key(|(id, _)| **id);
        let receivers = may_wait.into_iter().map(|(_, record)| record.receiver.get_or_insert_default());
        let receivers: Vec<_> = receivers.map(|receiver| Arc::clone(receiver)).collect();
        // Before anything is woken: a waker is its owner's code, which may drop a guard, and that
        // is given back with a record.
        drop(records);
        receivers.iter().for_each(|receiver| receiver.wake.notify_one());
    }

    /// Returns how many acquisitions have a record.
    pub fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// Returns whether no acquisition has a record.
    pub fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// Ends the records of all acquisitions.
    pub fn clear(&self) {
        self.0.lock().clear();
    }

    fn finish(&self, id: AcquisitionId, outcome: Outcome) {
        if let Some(record) = self.0.lock().get_mut(&id) {
            record.on_their_way = record.on_their_way.saturating_sub(1);
            match outcome {
                Outcome::Unknown => record.doubtful = true,
                Outcome::Answered => record.answered = true,
                Outcome::Refused => record.refused = true,
            }
        }
    }
}

impl Record {
    fn is_clear(&self) -> bool {
        self.on_their_way == 0 && !self.doubtful
    }

    fn left(&self) -> Left {
        match self.is_clear() {
            // Of a record without any request nothing is known.
            true if self.refused && !self.answered => Left::Nothing,
            true => Left::Answered,
            false => Left::InDoubt,
        }
    }
}

impl Mark {
    /// Notes that the answer has come.
    pub fn answered(mut self) {
        self.outcome = Outcome::Answered;
    }

    /// Notes that this error came instead of an answer. Returns it.
    pub fn failed(mut self, error: Error) -> Error {
        if error.had_no_effect() {
            self.outcome = Outcome::Refused;
        }
        error
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.records.finish(self.id, self.outcome);
    }
}

impl NotificationReceiver {
    /// Waits until there is something new: a grant, or a reason to ask.
    pub async fn notified(&self) -> Option<Notification> {
        self.wake.notified().await;
        self.notification.lock().take()
    }
}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::{Context, Wake};

    use futures_util::FutureExt;

    use super::*;
    use crate::error::ErrorKind;

    fn id() -> AcquisitionId {
        AcquisitionId::from_u128(1)
    }

    #[test]
    fn a_request_without_an_answer_is_not_made_up_for_by_the_answer_to_the_next_one() {
        let records = Arc::new(Records::default());
        drop(records.begin(id()));
        records.begin(id()).answered();
        assert!(!records.is_clear(id()));
        assert_eq!(records.end(id()), Left::InDoubt);
        assert_eq!(records.len(), 0);
    }

    #[test]
    fn a_request_on_its_way_may_still_let_in() {
        let records = Arc::new(Records::default());
        let mark = records.begin(id());
        records.begin(id()).answered();
        assert_eq!(records.end(id()), Left::InDoubt);
        mark.answered();
        assert_eq!(records.len(), 0, "its end does not begin a record anew");
    }

    fn notification() -> Notification {
        Notification { token: StoreToken::new(7).unwrap(), contended: true }
    }

    #[test]
    fn a_message_reaches_the_acquisition_that_waits_for_it() {
        let records = Arc::new(Records::default());
        let receiver = records.receiver(id());
        assert!(records.deliver(id(), notification()));
        let heard = receiver.notified().now_or_never().expect("it was woken");
        assert_eq!(heard.map(|heard| heard.token), Some(notification().token));
        assert!(receiver.notified().now_or_never().is_none(), "a message is heard once");
    }

    /// The acquisition learns only from its answer that it waits.
    #[test]
    fn a_message_is_kept_that_comes_before_the_answer() {
        let records = Arc::new(Records::default());
        let mark = records.begin(id());
        assert!(records.deliver(id(), notification()));
        let receiver = records.receiver(id());
        mark.answered();
        assert!(receiver.notified().now_or_never().expect("it was woken").is_some());
    }

    #[test]
    fn an_acquisition_that_asks_while_all_are_woken_asks_again() {
        let records = Arc::new(Records::default());
        let mark = records.begin(id());
        records.wake_all();
        assert!(records.receiver(id()).notified().now_or_never().is_some());
        mark.answered();
    }

    #[test]
    fn what_was_let_in_by_the_first_answer_has_no_receiver() {
        let records = Arc::new(Records::default());
        records.begin(id()).answered();
        records.wake_all();
        assert!(records.0.lock()[&id()].receiver.is_none());
    }

    /// The client gives back what no acquisition of its own waits for.
    #[test]
    fn a_message_to_no_acquisition_is_not_delivered() {
        let records = Arc::new(Records::default());
        assert!(!records.deliver(id(), notification()));
        drop(records.receiver(id()));
        records.clear();
        assert!(!records.deliver(id(), notification()) && records.is_empty());
    }

    #[test]
    fn all_waiters_are_woken_without_a_message_and_ask() {
        let records = Arc::new(Records::default());
        let receivers = [1, 2].map(|number| records.receiver(AcquisitionId::from_u128(number)));
        assert_eq!(records.len(), 2);
        records.wake_all();
        for receiver in receivers {
            assert!(receiver.notified().now_or_never().expect("it was woken").is_none());
        }
    }

    /// A waker may drop a guard, whose release ends a record.
    #[test]
    fn nothing_is_locked_while_the_waiters_are_woken() {
        struct Looks(Arc<Records>, AtomicBool);
        impl Wake for Looks {
            fn wake(self: Arc<Self>) {
                self.1.store(self.0.0.try_lock().is_some(), Ordering::SeqCst);
            }
        }
        let records = Arc::new(Records::default());
        let looks = Arc::new(Looks(Arc::clone(&records), AtomicBool::new(false)));
        let receiver = records.receiver(id());
        let mut waits = pin!(receiver.notified());
        assert!(waits.as_mut().poll(&mut Context::from_waker(&Arc::clone(&looks).into())).is_pending());
        records.wake_all();
        assert!(looks.1.load(Ordering::SeqCst));
    }

    #[test]
    fn what_is_not_known_counts_as_not_answered() {
        let records = Arc::new(Records::default());
        assert!(!records.is_clear(id()));
        assert_eq!(records.end(id()), Left::InDoubt);
        records.begin(id()).answered();
        assert!(records.is_clear(id()));
        assert_eq!([records.end(id()), records.end(id())], [Left::Answered, Left::InDoubt]);
    }
    fn failed(records: &Arc<Records>, error: Error) {
        drop(records.begin(id()).failed(error));
    }

    #[test]
    fn nothing_is_left_where_every_request_was_refused_before_it_did_anything() {
        let refused = || Error::new(ErrorKind::Config, "it may not").without_effect();
        let records = Arc::new(Records::default());
        failed(&records, refused());
        failed(&records, refused());
        assert_eq!(records.end(id()), Left::Nothing);
        assert_eq!(records.end(id()), Left::InDoubt, "it is said once");
    }

    #[test]
    fn something_may_be_left_where_a_request_was_answered_is_in_doubt_or_is_on_its_way() {
        let refused = || Error::new(ErrorKind::Config, "it may not").without_effect();
        let records = Arc::new(Records::default());
        records.begin(id()).answered();
        failed(&records, refused());
        assert_eq!(records.end(id()), Left::Answered);
        for unknown in [ErrorKind::Unavailable, ErrorKind::Config] {
            failed(&records, Error::new(unknown, "no answer"));
            failed(&records, refused());
            assert_eq!(records.end(id()), Left::InDoubt);
        }
        failed(&records, refused());
        let mark = records.begin(id());
        assert_eq!(records.end(id()), Left::InDoubt);
        mark.answered();
        drop(records.receiver(id()));
        assert_ne!(records.end(id()), Left::Nothing, "no request was refused");
    }
}
