//! The rows of a client: one per key that it has used lately.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::select;
use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use tokio::sync::Notify;
use ylock_core::Key;
use ylock_core::environment::{BackgroundTask, BoxFuture, Environment, Moment};

use crate::algorithm::own_row::{Client, OwnRow};

/// The number of writes in doubt that are sent again at once.
const CONCURRENT: usize = 64;
/// The time for which a client's row is kept after it was left.
const KEPT: Duration = Duration::from_secs(20);
/// How many rows of other clients, at all keys together, own rows are kept for that would be forgotten otherwise: about 4 MB.
const MOST_NOTED: usize = 4_096;
/// The time after which a client's row that cannot be forgotten yet is checked again.
const AGAIN: Duration = Duration::from_secs(1);
/// The time after which own rows are checked again when the store has not answered for one of them.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// The rows of a client, also those that were left.
///
/// The own row at a key is kept here for a while after it was left: what it has seen of other clients is worth remembering, so that the next
/// place is behind them; and closing can remove the idle row from the store, if the lease is not so long that the row in the store outlives
/// what is kept here, and goes by itself. And it is kept as long as anything of it is in doubt: a write that was left without an
/// acknowledgement is sent again until there is one.
///
/// Where other clients are observed it is kept for longer, as long as a row is remembered that may be in the way: for up to two of that row's
/// leases, which may be days. So there is a limit on how much is kept for that alone; what is left when it is reached is forgotten as if
/// nothing had been seen, and the next attempt watches for another lease.
#[derive(Debug, Default)]
pub(crate) struct OwnRows {
    inner: Mutex<Inner>,
    /// Rung when a client's row is left, and when the own rows are dropped.
    bell: Arc<Notify>,
    background_task: BackgroundTask,
}

#[derive(Debug, Default)]
struct Inner {
    own_rows: HashMap<Key, Kept>,
    /// The moments at which to check the own rows that were left: one entry for each of them.
    left: BinaryHeap<Reverse<(Moment, Key)>>,
    /// The sum of what the own rows are `kept_for`.
    noted: usize,
}

#[derive(Debug)]
struct Kept {
    own_row: Arc<OwnRow>,
    /// True if the own row has an entry in the list of those that were left.
    is_listed: bool,
    /// The moment at which the own row was left.
    since: Moment,
    /// For how many rows of other clients the own row is kept, where it would be forgotten otherwise.
    kept_for: usize,
}

impl OwnRows {
    /// Returns the own row at a key, made if there is none.
    pub(crate) fn at(&self, key: &Key, client: &Arc<Client>) -> Arc<OwnRow> {
        let mut inner = self.inner.lock();
        let kept = inner.own_rows.entry(key.clone()).or_insert_with(|| Kept {
            own_row: Arc::new(OwnRow::new(key.clone(), Arc::clone(client))),
            is_listed: false,
            since: Moment::ZERO,
            kept_for: 0,
        });
        Arc::clone(&kept.own_row)
    }

    /// Returns the own row at a key, if there is one.
    pub(crate) fn find(&self, key: &Key) -> Option<Arc<OwnRow>> {
        self.inner.lock().own_rows.get(key).map(|kept| Arc::clone(&kept.own_row))
    }

    /// Notes that a client's row was left, or that a release of it was dropped: from now on the own row is looked after.
    pub(crate) fn left(self: &Arc<Self>, key: &Key, environment: &Arc<dyn Environment>) {
        let is_first = self.inner.lock().list(key, environment.now());
        if is_first {
            self.bell.notify_one();
        }
        let (own_rows, bell, clock) =
            (Arc::downgrade(self), Arc::clone(&self.bell), Arc::downgrade(environment));
        let work = move || -> BoxFuture {
            Box::pin(settle(Weak::clone(&own_rows), Arc::clone(&bell), Weak::clone(&clock)))
        };
        self.background_task.start(environment, work);
    }

    /// Takes all rows, to remove them. Sorted: in which order requests go out must not be left to the map's random seed.
    pub(crate) fn take(&self) -> Vec<Arc<OwnRow>> {
        let mut inner = self.inner.lock();
        (inner.noted, inner.left) = (0, BinaryHeap::new());
        let mut own_rows: Vec<_> = inner.own_rows.drain().map(|(_, kept)| kept.own_row).collect();
        own_rows.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        own_rows
    }

    /// Returns how many own rows there are, and how many of them were left.
    pub(crate) fn count(&self) -> (usize, usize) {
        let inner = self.inner.lock();
        (inner.own_rows.len(), inner.left.len())
    }
}

impl Drop for OwnRows {
    fn drop(&mut self) {
        self.bell.notify_one();
    }
}

impl Inner {
    /// Puts a client's row on the list. Returns whether it is the first that is to be checked.
    fn list(&mut self, key: &Key, now: Moment) -> bool {
        let Some(kept) = self.own_rows.get_mut(key) else { return false };
        kept.since = now;
        if std::mem::replace(&mut kept.is_listed, true) {
            return false;
        }
        let due = kept.due(now);
        let is_first = self.next().is_none_or(|next| due < next);
        self.left.push(Reverse((due, key.clone())));
        is_first
    }

    /// Forgets the own rows of which nothing is left. Returns those of which something is in doubt.
    fn sweep(&mut self, now: Moment) -> Vec<Arc<OwnRow>> {
        let mut in_doubt = Vec::new();
        while self.next().is_some_and(|due| due <= now) {
            let Some(Reverse((_, key))) = self.left.pop() else { break };
            let Some(kept) = self.own_rows.get_mut(&key) else { continue };
            self.noted -= std::mem::take(&mut kept.kept_for);
            // In use again: the caller that uses it says when it is left.
            if !kept.own_row.is_left() {
                kept.is_listed = false;
                continue;
            }
            // A caller may have it in hand: were it made anew, two objects would write one row.
            let is_in_hand = Arc::strong_count(&kept.own_row) > 1;
            let room = MOST_NOTED.saturating_sub(self.noted);
            if !is_in_hand && kept.may_go(now, room) {
                self.own_rows.remove(&key);
                continue;
            }
            self.noted += kept.keep(now);
            let due = kept.due(now);
            // What a caller has in hand is on its way: a second copy would do no harm, and be a request too many.
            if !is_in_hand && !kept.own_row.is_settled() {
                in_doubt.push(Arc::clone(&kept.own_row));
            }
            self.left.push(Reverse((due, key)));
        }
        in_doubt
    }

    fn next(&self) -> Option<Moment> {
        self.left.peek().map(|Reverse((due, _))| *due)
    }
}

impl Kept {
    /// Returns the moment until which the own row is kept in any case.
    fn until(&self) -> Moment {
        self.since.plus(KEPT)
    }

    /// Returns whether the own row may be forgotten, where there is `room` for so much that was seen of other clients.
    fn may_go(&self, now: Moment, room: usize) -> bool {
        let is_worthless = self.own_row.forgotten() <= now || self.own_row.noted() > room;
        self.own_row.is_settled() && self.until() <= now && is_worthless
    }

    /// Notes that the own row is kept. Returns for how many rows of other clients alone.
    fn keep(&mut self, now: Moment) -> usize {
        let for_others = self.own_row.is_settled() && self.until() <= now;
        self.kept_for = if for_others { self.own_row.noted() } else { 0 };
        self.kept_for
    }

    /// Returns when to check the own row again.
    fn due(&self, now: Moment) -> Moment {
        let soon = now.plus(AGAIN);
        match self.own_row.is_settled() {
            // Not only when all is forgotten, which may be days later: it may be used meanwhile, and much more be seen.
            true if self.until() <= now => soon.max(self.own_row.forgotten().min(now.plus(KEPT))),
            true => soon.max(self.until()),
            false => soon,
        }
    }
}

/// Settles the rows that were left, as long as there are any: sends again what is in doubt, and forgets the others in time.
async fn settle(own_rows: Weak<OwnRows>, bell: Arc<Notify>, environment: Weak<dyn Environment>) {
    while let (Some(all), Some(clock)) = (own_rows.upgrade(), environment.upgrade()) {
        let in_doubt = all.inner.lock().sweep(clock.now());
        let settling = in_doubt.into_iter().map(|own_row| async move { own_row.settle().await.is_ok() });
        let settling = stream::iter(settling).buffer_unordered(CONCURRENT);
        let is_answered = settling.fold(true, |all, one| async move { all && one }).await;
        let next = all.inner.lock().next();
        let pause = next.map(|due| {
            let least = if is_answered { Duration::ZERO } else { AFTER_FAILURE };
            clock.sleep(due.since(clock.now()).max(least))
        });
        // Neither is kept alive by the task that settles them.
        drop((all, clock));
        match pause {
            // While the store does not answer the bell is not rung for a row that is left: what was sent in vain is due earlier.
            Some(pause) => drop(select(pin!(bell.notified()), pause).await),
            None => bell.notified().await,
        }
    }
}
