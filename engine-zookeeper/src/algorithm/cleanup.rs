//! The cleaner of a session: removes claims that are not wanted any more and that no other task removes, and the nodes of empty locks.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::sync::Notify;
use ylock_core::environment::Moment;

use super::place::Place;
use super::release;
use super::session::Session;

/// The time for which a lock's node may stay when it is empty.
const SWEEP_PAUSE: Duration = Duration::from_millis(300);
/// The number of claims, or of locks, that are looked at together.
const BATCH: usize = 64;
/// The number of busy locks that are remembered.
const MOST_BUSY: usize = 1_000;
/// The longest sleep while there is something to do: timers may stand still while the machine is suspended.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// The shortest sleep between two looks at what is due.
const SHORTEST_SLEEP: Duration = Duration::from_millis(5);

/// The state of the nodes of locks, as far as is known.
#[derive(Debug, Default)]
pub(crate) struct Cleanup(Mutex<Locks>);

#[derive(Debug, Default)]
struct Locks {
    /// The locks whose node may be empty now; `sweep` is when that is looked at.
    emptied: BTreeSet<Place>,
    sweep: Option<Moment>,
    /// The locks whose node was there when it was last heard of. A guess, which saves a request when it is right.
    busy: BTreeSet<Place>,
}

impl Cleanup {
    /// Returns whether a lock's node is probably there.
    pub(crate) fn is_busy(&self, place: &Place) -> bool {
        self.0.lock().busy.contains(place)
    }

    /// Remembers whether a lock's node is there.
    pub(crate) fn note_busy(&self, place: &Place, busy: bool) {
        let mut locks = self.0.lock();
        if !busy {
            locks.busy.remove(place);
            return;
        }
        if locks.busy.len() >= MOST_BUSY {
            locks.busy.clear();
        }
        locks.busy.insert(place.clone());
    }

    /// Returns how many nodes may be empty.
    pub(crate) fn emptied(&self) -> usize {
        self.0.lock().emptied.len()
    }

    /// Remembers a lock whose node may be empty. Returns whether it is the first one.
    fn note_emptied(&self, place: &Place, then: Moment) -> bool {
        let mut locks = self.0.lock();
        locks.emptied.insert(place.clone());
        let is_first = locks.sweep.is_none();
        locks.sweep.get_or_insert(then);
        is_first
    }

    fn next_sweep(&self) -> Option<Moment> {
        self.0.lock().sweep
    }

    /// Returns some of the locks to look at, if it is time.
    fn sweep(&self, now: Moment) -> Vec<Place> {
        let mut locks = self.0.lock();
        if locks.sweep.is_none_or(|then| then > now) {
            return Vec::new();
        }
        let some: Vec<_> = locks.emptied.iter().take(BATCH).cloned().collect();
        for place in &some {
            locks.emptied.remove(place);
        }
        locks.sweep = locks.sweep.filter(|_| !locks.emptied.is_empty());
        some
    }
}

impl Session {
    /// Makes sure that a lock's node does not stay when it is empty. Should this process die first, the server removes the node: it is a
    /// container.
    pub(crate) fn emptied(&self, place: &Place) {
        if self.cleanup.note_emptied(place, self.now().plus(SWEEP_PAUSE)) {
            self.claims.work.notify_one();
        }
    }

    /// Returns whether nothing is left to be removed.
    pub(crate) fn is_clean(&self) -> bool {
        self.cleanup.emptied() == 0 && self.claims.count().1 == 0
    }

    /// Returns when the cleaner takes over a removal that another task begins now.
    pub(crate) fn due(&self) -> Moment {
        self.now().plus(self.request_timeout() * release::STEPS)
    }
}

/// Looks after a session until it has ended.
pub(crate) async fn run(weak: Weak<Session>, work: Arc<Notify>) {
    while let Some(session) = weak.upgrade().filter(|session| !session.is_over()) {
        let began = session.now();
        remove_due(&session).await;
        sweep(&session).await;
        let next = [session.claims.next_due(), session.cleanup.next_sweep()].into_iter().flatten().min();
        let pause = next.map(|next| next.since(began).clamp(SHORTEST_SLEEP, LONGEST_SLEEP));
        let (environment, over) = (Arc::clone(&session.environment), session.until_over());
        drop(session);
        let sleep = async {
            match pause {
                Some(pause) => environment.sleep(pause).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = work.notified() => {}
            () = sleep => {}
            () = over => {}
        }
    }
}

async fn remove_due(session: &Arc<Session>) {
    loop {
        let due = session.claims.due(session.now(), BATCH, session.due());
        if due.is_empty() || session.is_over() {
            return;
        }
        join_all(due.into_iter().map(|found| release::remove(session, found))).await;
    }
}

async fn sweep(session: &Session) {
    loop {
        let some = session.cleanup.sweep(session.now());
        if some.is_empty() || session.attach().await.is_err() {
            return;
        }
        join_all(some.iter().map(|place| remove_if_empty(session, place))).await;
    }
}

/// Removes a lock's node if it is empty. A contender that comes in between keeps it: a node with children is not removed. A node whose
/// removal fails is left to the server.
async fn remove_if_empty(session: &Session, place: &Place) {
    if matches!(session.count(&place.lock).await, Ok(Some(0))) {
        session.cleanup.note_busy(place, false);
        drop(session.remove(&place.lock).await);
    }
}
