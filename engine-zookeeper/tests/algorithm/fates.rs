//! What goes wrong: with the next request of a name, and with the server that answers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use ylock_engine_zookeeper::algorithm::store::Fault;

/// What becomes of a request.
#[derive(Clone, Debug)]
pub(crate) enum Fate {
    Done,
    /// It is done, and the answer comes so much later.
    Late(Duration),
    /// It is done, and the answer gets lost.
    Unheard,
    /// It gets lost, and is never done.
    Lost,
    /// It is not done, and answered by this fault.
    Refused(Fault),
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Fates {
    next: Mutex<Vec<(&'static str, Fate)>>,
    is_behind: AtomicBool,
}

impl Fates {
    /// Decides what becomes of the next request of this name.
    pub(crate) fn of_next(&self, request: &'static str, fate: Fate) {
        self.next.lock().push((request, fate));
    }

    /// Returns whether all these requests have come since.
    pub(crate) fn has_come(&self) -> bool {
        self.next.lock().is_empty()
    }

    pub(crate) fn of(&self, request: &'static str) -> Fate {
        let mut next = self.next.lock();
        let first = next.iter().position(|(next, _)| *next == request);
        first.map_or(Fate::Done, |first| next.remove(first).1)
    }

    /// Makes the server that answers from now on show no lock in its lists, and no content, until it is asked to catch up.
    pub(crate) fn fall_behind(&self) {
        self.is_behind.store(true, Ordering::Relaxed);
    }

    pub(crate) fn catch_up(&self) {
        self.is_behind.store(false, Ordering::Relaxed);
    }

    pub(crate) fn is_behind(&self) -> bool {
        self.is_behind.load(Ordering::Relaxed)
    }
}
