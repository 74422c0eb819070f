//! One etcd lease of this client, and until when it can be relied on.
//!
//! See [`guarantees.md`](crate) for why a keep-alive counts only when transactions that were sent after its answer were answered in the same term.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use ylock_core::environment::{BackgroundTask, Moment};
use ylock_core::{Error, ErrorKind, StoreToken};

use super::client::Client;
use super::floor;
use super::store::{Fault, Granted, Header, KeptAlive, Outcome, Transaction};
use crate::shared_attempt::SharedAttempt;

/// The part of a lock's lease for which a confirmation is recent enough for a grant.
const FRESH_PART: u32 = 4;
/// The number of times that a keep-alive is sent if it is not confirmed because the leader changes.
const ATTEMPTS: u32 = 4;
/// The number of claims and marks after which another lease is made: the servers delete all keys of a lease that ends in one step.
const MOST_KEYS: usize = 10_000;

/// One etcd lease of this client; see the [module](self).
pub(crate) struct Session {
    pub(crate) lease: i64,
    /// How long the servers were asked to keep the lease.
    asked: Duration,
    /// How long they keep it: not for less.
    pub(crate) ttl: Duration,
    cluster: u64,
    floor: u64,
    /// The moment just before the last confirmed request was sent that has made the lease, or prolonged it.
    confirmed: Mutex<Moment>,
    /// The moment at which there was last a claim.
    used: Mutex<Moment>,
    claims: AtomicUsize,
    /// The marks that were put under the lease. They stay until it ends.
    marks: AtomicUsize,
    /// True once the servers have said that the lease is gone, with all its keys; or it is being revoked.
    over: AtomicBool,
    /// True once no acquisition may begin in it any more.
    retired: AtomicBool,
    pub(super) keepalive: BackgroundTask,
    /// The keep-alive that is under way.
    beating: SharedAttempt<Result<Beat, Fault>>,
}

/// A keep-alive that was answered, and what may confirm it: see [`guarantees.md`](crate).
#[derive(Clone, Copy)]
pub(crate) struct Beat {
    /// The moment just before it was sent.
    pub(crate) sent: Moment,
    pub(crate) kept: KeptAlive,
    /// The answer to a transaction that was sent after the keep-alive was answered, and that every member carries out. Without it the member that answers
    /// may name an earlier term: one that has caught up by a snapshot names that of the last entry which it has carried out itself.
    pub(crate) carried: Header,
}

impl Beat {
    /// Returns whether one member has given all answers, this one as the last, and knows of no later term than when it gave the first.
    pub(super) fn is_confirmed_by(&self, answer: &Header) -> bool {
        let members = [self.kept.header.member, self.carried.member];
        members == [answer.member; 2] && self.kept.header.term == answer.term
    }
}

impl Session {
    pub(super) fn new(granted: &Granted, asked: i64, floor: u64, sent: Moment) -> Self {
        Self {
            lease: granted.lease,
            asked: Duration::from_secs(asked.unsigned_abs()),
            ttl: Duration::from_secs(granted.seconds.unsigned_abs()),
            cluster: granted.header.cluster,
            floor,
            confirmed: Mutex::new(sent),
            used: Mutex::new(sent),
            claims: AtomicUsize::new(0),
            marks: AtomicUsize::new(0),
            over: AtomicBool::new(false),
            retired: AtomicBool::new(false),
            keepalive: BackgroundTask::default(),
            beating: SharedAttempt::default(),
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
        client: &Client,
        operation: &'static str,
        transaction: Transaction,
    ) -> Result<Outcome, Fault> {
        let outcome = client.transact(operation, transaction).await;
        match &outcome {
            Ok(outcome) => self.check_cluster(&outcome.header)?,
            Err(Fault::LeaseGone) => self.end(),
            Err(_) => {}
        }
        outcome
    }

    /// Prolongs the lease, and confirms that.
    pub(crate) async fn beat(self: &Arc<Self>, client: &Arc<Client>) -> Result<Moment, Fault> {
        for _ in 0..ATTEMPTS {
            let beat = self.keep_alive(client).await?;
            let header = floor::look(self, client, &beat).await?;
            if self.confirm(&beat, &header)? {
                return Ok(beat.sent);
            }
        }
        let message = "keep-alives are not confirmed: the leader of the cluster changes, or a proxy spreads the requests of one connection over the members";
        Err(Fault::Unknown(Error::new(ErrorKind::Unavailable, message).with_engine(crate::NAME)))
    }

    /// Returns a keep-alive that was answered, which counts only when it was [confirmed](Self::confirm). All that ask for one at the same time have the
    /// same: a client with very many locks, or waiters, is not to send as many.
    pub(crate) async fn keep_alive(self: &Arc<Self>, client: &Arc<Client>) -> Result<Beat, Fault> {
        let work = || -> BoxFuture<'static, Result<Beat, Fault>> {
            let (session, client) = (Arc::clone(self), Arc::clone(client));
            Box::pin(async move { session.own_keep_alive(&client).await })
        };
        let shared = self.beating.join(&client.environment, client.request_timeout, work);
        // It may be in the hands of a runtime that is not driven any more, and must not cost locks of others their leases. Or it is only slow: it is
        // two requests, and is not worth less than one that begins later.
        let own = async {
            client.environment.sleep(client.request_timeout).await;
            self.own_keep_alive(client).await
        };
        tokio::select! {
            biased;
            shared = shared => match shared {
                Some(beat) => beat,
                None => self.own_keep_alive(client).await,
            },
            beat = own => beat,
        }
    }

    /// Sends a keep-alive, and then a transaction that all members carry out.
    async fn own_keep_alive(&self, client: &Client) -> Result<Beat, Fault> {
        if self.is_over() {
            return Err(Fault::LeaseGone);
        }
        let sent = client.environment.now();
        let kept = client.keep_alive(self.lease).await?;
        Ok(Beat { sent, kept, carried: client.carry_out_nothing().await? })
    }

    /// Confirms a keep-alive by the answer to a transaction that was sent after it. Returns `false` if that does not confirm it.
    pub(crate) fn confirm(&self, beat: &Beat, answer: &Header) -> Result<bool, Fault> {
        let Beat { sent, kept, carried } = beat;
        for header in [&kept.header, carried, answer] {
            self.check_cluster(header)?;
        }
        if !beat.is_confirmed_by(answer) {
            return Ok(false);
        }
        if kept.seconds <= 0 {
            self.end();
            return Err(Fault::LeaseGone);
        }
        let mut confirmed = self.confirmed.lock();
        *confirmed = (*sent).max(*confirmed);
        Ok(true)
    }

    /// A client that is led to another cluster has nothing there.
    fn check_cluster(&self, header: &Header) -> Result<(), Fault> {
        if header.cluster == self.cluster {
            return Ok(());
        }
        self.end();
        Err(Fault::LeaseGone)
    }

    /// Returns whether the servers were asked to keep the lease for so long.
    pub(super) fn asked_for(&self, ttl: Duration) -> bool {
        self.asked == ttl
    }

    /// Returns whether a lock with this lease may have its key in it.
    pub(crate) fn serves(&self, lease: Duration) -> bool {
        self.has_room() && self.asked_for(Duration::from_secs(Self::seconds_for(lease).unsigned_abs()))
    }

    /// Returns the moment from which leases count.
    pub(crate) fn confirmed(&self) -> Moment {
        *self.confirmed.lock()
    }

    /// Returns whether a lock with this lease can be granted without another keep-alive.
    pub(crate) fn covers(&self, lease: Duration, now: Moment) -> bool {
        !self.is_over() && now.since(self.confirmed()) <= lease / FRESH_PART
    }

    /// Returns the token of a contender; `None` if tokens have come to their end.
    pub(crate) fn token(&self, place: i64) -> Option<StoreToken> {
        StoreToken::new(self.floor.checked_add(u64::try_from(place).ok()?)?)
    }

    pub(super) fn floor(&self) -> u64 {
        self.floor
    }

    pub(super) fn cluster(&self) -> u64 {
        self.cluster
    }

    /// Returns whether the lease is gone, with all its keys.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// Makes new acquisitions begin in another session.
    pub(super) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }

    /// Returns whether an acquisition may begin in it.
    pub(super) fn has_room(&self) -> bool {
        !self.is_over()
            && !self.retired.load(Ordering::Acquire)
            && self.claims.load(Ordering::Relaxed) + self.marks.load(Ordering::Relaxed) < MOST_KEYS
    }

    pub(super) fn note_mark(&self) {
        self.marks.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn note_claim(&self) {
        self.claims.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn forget_claim(&self) {
        self.claims.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns for how long there has been no claim.
    pub(super) fn idle(&self, now: Moment) -> Duration {
        let mut used = self.used.lock();
        if self.claims.load(Ordering::Relaxed) > 0 {
            *used = now;
        }
        now.since(*used)
    }

    /// Notes that an acquisition is about to begin in it.
    pub(super) fn note_use(&self, now: Moment) {
        let mut used = self.used.lock();
        *used = now.max(*used);
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("lease", &self.lease).field("ttl", &self.ttl).finish_non_exhaustive()
    }
}
