//! One etcd lease of this client. It is never prolonged: before its time is over, what is kept under it goes to a younger one.
//!
//! See [`guarantees.md`](crate) for why: a leader that was stopped, and replaced meanwhile, may end every lease that has been there for its time to live.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use ylock_core::StoreToken;
use ylock_core::environment::{BackgroundTask, Moment};

use super::link::Link;
use super::store::{Fault, Granted, Header, Outcome, Transaction};

/// The number of claims and marks after which another lease is made: the servers delete all keys of a lease that ends in one step.
const MOST_KEYS: usize = 10_000;

/// The part of a lock's lease that the etcd lease may be old under which a contender's key is put.
pub(super) const YOUNG_PART: u32 = 4;

/// One etcd lease of this client; see the [module](self).
pub(crate) struct Session {
    pub(crate) lease: i64,
    /// The number that the keys of claims are called after which begin in it: the first lease of a row of sessions, each of which has followed the one
    /// before. So a client uses the same keys again.
    pub(crate) name: i64,
    /// For how many seconds the servers were asked to keep the lease.
    asked: i64,
    /// How long they keep it: not for less.
    pub(crate) ttl: Duration,
    cluster: u64,
    floor: u64,
    /// The moment just before the request was sent that has made the lease. No server ends it before its time to live is over from then.
    made: Moment,
    /// The moment at which there was last a claim, in it or in those before it.
    used: Mutex<Moment>,
    claims: AtomicUsize,
    /// The marks that were put under the lease. They stay until it ends.
    marks: AtomicUsize,
    /// True once the servers have said that the lease is gone, with all its keys; or it is being revoked.
    over: AtomicBool,
    pub(super) upkeep: BackgroundTask,
}

impl Session {
    /// Creates a session, which follows the one `before`.
    pub(super) fn new(
        granted: &Granted,
        asked: i64,
        floor: u64,
        made: Moment,
        before: Option<&Session>,
    ) -> Self {
        let before = before.filter(|before| before.cluster == granted.header.cluster && !before.is_over());
        Self {
            lease: granted.lease,
            name: before.map_or(granted.lease, |before| before.name),
            asked,
            ttl: Duration::from_secs(granted.seconds.unsigned_abs()),
            cluster: granted.header.cluster,
            floor,
            made,
            used: Mutex::new(before.map_or(made, |before| *before.used.lock())),
            claims: AtomicUsize::new(0),
            marks: AtomicUsize::new(0),
            over: AtomicBool::new(false),
            upkeep: BackgroundTask::default(),
        }
    }

    /// Returns for how many seconds the lease must live under locks with this lease: longer than their validity by a third, and by a second at
    /// least, because the servers count in whole seconds.
    pub(super) fn seconds_for(lease: Duration) -> i64 {
        let ttl = (lease * 6 / 5).max(lease + Duration::from_secs(1));
        i64::try_from(ttl.as_millis().div_ceil(1000)).unwrap_or(i64::MAX)
    }

    /// Sends a transaction that is about keys of this lease.
    pub(crate) async fn transact(
        &self,
        link: &Link,
        operation: &'static str,
        transaction: Transaction,
    ) -> Result<Outcome, Fault> {
        let outcome = link.transact(operation, transaction).await;
        match &outcome {
            Ok(outcome) => self.check_cluster(&outcome.header)?,
            Err(Fault::LeaseGone) => self.end(),
            Err(_) => {}
        }
        outcome
    }

    /// A client that is led to another cluster has nothing there.
    fn check_cluster(&self, header: &Header) -> Result<(), Fault> {
        if header.cluster == self.cluster {
            return Ok(());
        }
        self.end();
        Err(Fault::LeaseGone)
    }

    /// Returns for how many seconds the servers were asked to keep the lease.
    pub(super) fn asked_seconds(&self) -> i64 {
        self.asked
    }

    /// Returns whether a lock with this lease may have its key in it.
    pub(crate) fn serves(&self, lease: Duration) -> bool {
        self.has_room() && self.asked == Self::seconds_for(lease)
    }

    /// Returns the moment from which leases of locks count.
    pub(crate) fn made(&self) -> Moment {
        self.made
    }

    /// Returns the token of a contender; `None` if tokens have come to their end.
    pub(crate) fn token(&self, place: i64) -> Option<StoreToken> {
        StoreToken::new(self.floor.checked_add(u64::try_from(place).ok()?)?)
    }

    pub(super) fn floor(&self) -> u64 {
        self.floor
    }

    /// Returns whether the lease is gone, with all its keys.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// Returns whether an acquisition may begin in it.
    pub(super) fn has_room(&self) -> bool {
        !self.is_over()
            && self.claims.load(Ordering::Relaxed) + self.marks.load(Ordering::Relaxed) < MOST_KEYS
    }

    /// Returns whether a claim is in it.
    pub(super) fn has_claims(&self) -> bool {
        self.claims.load(Ordering::Relaxed) > 0
    }

    pub(super) fn note_mark(&self) {
        self.marks.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn note_claim(&self) {
        self.claims.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts claims that are on their way to it, until what is returned is dropped.
    pub(super) fn expect(self: &Arc<Self>, count: usize) -> Expected {
        self.claims.fetch_add(count, Ordering::Relaxed);
        Expected { session: Arc::clone(self), count }
    }

    pub(super) fn forget_claim(&self) {
        self.claims.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns for how long there has been no claim.
    pub(super) fn idle(&self, now: Moment) -> Duration {
        let mut used = self.used.lock();
        if self.has_claims() {
            *used = now;
        }
        now.since(*used)
    }

    /// Notes that an acquisition is about to begin in it, or goes on.
    pub(super) fn note_use(&self, now: Moment) {
        let mut used = self.used.lock();
        *used = now.max(*used);
    }
}

/// Claims that are on their way to a session: as many others are not to choose it, which all want one at the same time.
pub(super) struct Expected {
    session: Arc<Session>,
    count: usize,
}

impl Drop for Expected {
    fn drop(&mut self) {
        self.session.claims.fetch_sub(self.count, Ordering::Relaxed);
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("lease", &self.lease).field("ttl", &self.ttl).finish_non_exhaustive()
    }
}
