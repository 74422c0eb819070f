//! The in-memory engine: always there, without a server.
//!
//! It is a real engine: leases on tokio's clock, a fair queue, tokens, loss. A program that runs alone can use it, and tests
//! of programs can, with paused time: leases then end when the test's clock says so.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use smallvec::SmallVec;
use tokio::sync::Notify;

use crate::engine::{
    AcquisitionId, AtOnce, Diagnostics, Engine, Grant, Holding, Inspection, KeyPage, Meter, Patience,
    Release, Renewal, Request, Ticket,
};
use crate::environment::{Environment, Moment, SystemEnvironment};
use crate::error::{Error, ErrorKind, Result};
use crate::guarantees::Guarantees;
use crate::job_run::JobRun;
use crate::key::{BuildKeyHasher, Key};
use crate::options::Options;
use crate::queue::{self, Now};
use crate::token::StoreToken;

/// The contenders for one key, each with what wakes it once it has waited: most get in at once.
type Queue = queue::Queue<Option<Arc<Notify>>>;

/// The waiters of a key that are to look again, because one of them may have got its turn.
type Woken = SmallVec<[Arc<Notify>; 4]>;

/// A store in the memory of this process. Its clones are the same store.
///
/// # Examples
/// Two clients of one store behave like two processes:
/// ```
/// # use ylock::{MemoryStore, Ylock};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
/// let store = MemoryStore::new();
/// let (here, there) = (Ylock::new(store.engine()), Ylock::new(store.engine()));
/// let guard = here.locks("users").write("alice").await?;
/// assert!(there.locks("users").write("alice").now().await?.is_none());
/// # drop(guard); Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct MemoryStore(Arc<Inner>);

struct Inner {
    environment: Arc<dyn Environment>,
    keys: Mutex<HashMap<Key, Queue, BuildKeyHasher>>,
    /// One counter for all keys, so that a key that was forgotten goes on with larger tokens.
    last_token: AtomicU64,
    last_ticket: AtomicI64,
    /// The last run of each job, and until when it is kept.
    runs: Mutex<HashMap<Key, (JobRun, Moment), BuildKeyHasher>>,
}

impl MemoryStore {
    /// Creates a new, empty store on tokio's clock.
    #[allow(clippy::new_without_default, reason = "two stores are never equal, so there is no default one")]
    pub fn new() -> Self {
        Self::in_environment(SystemEnvironment::on_tokio_clock())
    }

    /// Creates a new, empty store in another environment.
    pub fn in_environment(environment: Arc<dyn Environment>) -> Self {
        Self(Arc::new(Inner {
            environment,
            keys: Mutex::default(),
            last_token: AtomicU64::new(0),
            last_ticket: AtomicI64::new(0),
            runs: Mutex::default(),
        }))
    }

    /// Creates the engine of a new client over this store.
    pub fn engine(&self) -> MemoryEngine {
        MemoryEngine { store: self.clone(), meter: Meter::default() }
    }

    /// Returns how many keys the store knows: those that are held or waited for.
    pub fn len(&self) -> usize {
        self.0.keys.lock().len()
    }

    /// Returns whether no client holds or waits for anything.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Works on one key, without the contenders whose lease has ended; forgets the key if no contender is left.
    fn with<T>(&self, key: &Key, work: impl FnOnce(&mut Queue, Now) -> T) -> T {
        self.with_at(key, Now::of(&*self.0.environment), work)
    }

    fn with_at<T>(&self, key: &Key, now: Now, work: impl FnOnce(&mut Queue, Now) -> T) -> T {
        let mut woken = Woken::new();
        let mut keys = self.0.keys.lock();
        let queue = keys.entry(key.clone()).or_default();
        queue.expire(now.moment);
        let result = work(queue, now);
        if queue.take_freed() {
            woken.extend(queue.waiters().filter_map(|waiter| waiter.kept.clone()));
        }
        if queue.is_empty() {
            keys.remove(key);
        }
        // Before anything is woken: a waker is its owner's code, which may drop a guard of this store.
        drop(keys);
        woken.iter().for_each(|wake| wake.notify_one());
        result
    }

    fn keys(&self, group: Option<&str>, after: Option<&str>) -> Result<KeyPage> {
        let keys = self.0.keys.lock();
        let in_group = |key: &&Key| group.is_none_or(|group| key.group() == group);
        KeyPage::of(keys.keys().filter(in_group).cloned(), after)
    }

    fn last_run(&self, key: &Key) -> Option<JobRun> {
        let (run, until) = self.0.runs.lock().get(key).cloned()?;
        (until > self.0.environment.now()).then_some(run)
    }

    fn store_run(&self, key: &Key, run: &JobRun, kept: Duration) -> bool {
        let now = self.0.environment.now();
        let mut runs = self.0.runs.lock();
        // Once for each run of a job, of which there are few.
        runs.retain(|_, (_, until)| *until > now);
        let replaces = runs.get(key).is_none_or(|(stored, _)| run.replaces(stored));
        if replaces {
            runs.insert(key.clone(), (run.clone(), now.plus(kept)));
        }
        replaces
    }

    fn next_token(&self, now: Now) -> Result<StoreToken> {
        // Not below the tokens that another engine has given, or this one before the program was started again: those that are not far smaller follow the clock too.
        let clock = u64::try_from(now.wall_micros).unwrap_or(0);
        let follow = |last: u64| Some(clock.max(last + 1));
        let last = self.0.last_token.fetch_update(Ordering::Relaxed, Ordering::Relaxed, follow);
        let number = clock.max(last.unwrap_or(0) + 1);
        StoreToken::new(number)
            .ok_or_else(|| Error::new(ErrorKind::Unexpected, "the store has run out of tokens"))
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("keys", &self.len()).finish_non_exhaustive()
    }
}

/// The engine of one client over a [`MemoryStore`].
#[derive(Clone, Debug)]
pub struct MemoryEngine {
    store: MemoryStore,
    /// For the contract: nothing is sent anywhere.
    meter: Meter,
}

impl MemoryEngine {
    /// Creates an engine over a store of its own.
    #[allow(clippy::new_without_default, reason = "two stores are never equal, so there is no default one")]
    pub fn new() -> Self {
        MemoryStore::new().engine()
    }

    /// Enters if possible, staying in the queue otherwise.
    fn try_enter(&self, request: &Request, ticket: Ticket) -> Result<Attempt> {
        self.store.with(&request.key, |queue, now| {
            // Nothing is undone in memory: no request is on its way when its call is over.
            queue.join(request, || ticket, now);
            if !queue.may_enter(request.id) {
                let wake = queue.kept(request.id).map(|wake| Arc::clone(wake.get_or_insert_default()));
                let wake = wake.unwrap_or_default();
                let expiry = queue.next_expiry(request.id);
                let pause = expiry.map_or(request.lease, |expiry| expiry.since(now.moment));
                return Ok(Attempt::Wait { wake, pause });
            }
            // Drawn only now, under the lock of the store: a contender that enters later draws later.
            let token = self.store.next_token(now)?;
            if !queue.enter(request.id, token, now) {
                return Err(Error::new(
                    ErrorKind::Unexpected,
                    "the queue refuses a contender that may enter",
                ));
            }
            let contended = queue.is_contended(request.id, None);
            Ok(Attempt::Entered(Grant::of(request, Some(token), now.moment, contended)))
        })
    }
}

impl AtOnce for MemoryEngine {
    fn acquire(&self, request: &Request) -> Option<Result<Option<Grant>>> {
        let ticket = request.ticket.unwrap_or_else(|| self.ticket());
        match self.try_enter(request, ticket) {
            Ok(Attempt::Entered(grant)) => Some(Ok(Some(grant))),
            Ok(Attempt::Wait { .. }) if request.patience == Patience::Try => {
                Some(AtOnce::release(self, &request.key, request.id, None).map(|_| None))
            }
            // In its place in the queue, where the call that may wait finds it.
            Ok(Attempt::Wait { .. }) => None,
            Err(error) => Some(Err(error)),
        }
    }

    fn release(&self, key: &Key, id: AcquisitionId, next: Option<&Request>) -> Result<Release> {
        let environment = &*self.store.0.environment;
        let now = match next {
            Some(_) => Now::of(environment),
            // No wall clock is shown of what leaves.
            None => Now { moment: environment.now(), wall_micros: 0 },
        };
        Ok(self.store.with_at(key, now, |queue, now| queue.release(id, next, || self.ticket(), now)))
    }
}

enum Attempt {
    Entered(Grant),
    Wait { wake: Arc<Notify>, pause: Duration },
}

#[async_trait]
impl Engine for MemoryEngine {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn guarantees(&self) -> Guarantees {
        Guarantees::NONE
            .with_exclusive(true)
            .with_fair(true)
            .with_fencing(true)
            .with_shared_reads(true)
            .with_exclusive_after_failover(true)
    }

    fn environment(&self) -> Arc<dyn Environment> {
        Arc::clone(&self.store.0.environment)
    }

    /// Accepts any lease: there is no request that could take too long. So a program finds out only on its own engine that that engine does
    /// not support a lease.
    fn check(&self, _: &Options) -> Result<()> {
        Ok(())
    }

    fn ticket(&self) -> Ticket {
        Ticket::from_number(self.store.0.last_ticket.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn meter(&self) -> &Meter {
        &self.meter
    }

    fn in_memory(&self) -> Vec<(&'static str, usize)> {
        // All of it is the store's, which stands for another process.
        Vec::new()
    }

    fn at_once(&self) -> Option<&dyn AtOnce> {
        Some(self)
    }

    async fn acquire(&self, request: &Request) -> Result<Option<Grant>> {
        let mut waited = false;
        let ticket = request.ticket.unwrap_or_else(|| self.ticket());
        loop {
            match self.try_enter(request, ticket)? {
                Attempt::Entered(grant) => return Ok(Some(grant.after_waiting(waited))),
                Attempt::Wait { .. } if request.patience == Patience::Try => {
                    AtOnce::release(self, &request.key, request.id, None)?;
                    return Ok(None);
                }
                Attempt::Wait { wake, pause } => {
                    waited = true;
                    // A third of the lease at most, because the place in the queue must be renewed too.
                    let pause = self.environment().sleep(pause.min(request.lease / 3));
                    tokio::select! {
                        // Either order is right: both lead to the same look, so neither can starve the other. Woken first,
                        // so that a ring and the end of a pause in the same moment make one look, not two.
                        biased;
                        () = wake.notified() => {}
                        () = pause => {}
                    }
                }
            }
        }
    }

    async fn renew(&self, holdings: &[Holding]) -> Vec<Result<Renewal>> {
        let renew = |holding: &Holding| {
            self.store.with(&holding.grant.key, |queue, now| queue.renew(holding, || self.ticket(), now))
        };
        holdings.iter().map(|holding| Ok(renew(holding))).collect()
    }

    async fn release(&self, key: &Key, id: AcquisitionId, next: Option<&Request>) -> Result<Release> {
        AtOnce::release(self, key, id, next)
    }

    async fn inspect(&self, key: &Key) -> Result<Inspection> {
        Ok(self.store.with(key, |queue, _| queue.inspect()))
    }

    async fn keys(&self, group: Option<&str>, after: Option<&str>) -> Result<KeyPage> {
        self.store.keys(group, after)
    }

    async fn revoke(&self, key: &Key, id: AcquisitionId) -> Result<bool> {
        Ok(self.store.with(key, |queue, _| queue.revoke(id)))
    }

    async fn last_run(&self, key: &Key) -> Result<Option<JobRun>> {
        Ok(self.store.last_run(key))
    }

    async fn store_run(&self, key: &Key, run: &JobRun, kept: Duration) -> Result<bool> {
        Ok(self.store.store_run(key, run, kept))
    }

    async fn diagnose(&self) -> Result<Diagnostics> {
        let mut seen = Diagnostics::default();
        seen.facts
            .push(("store", "in the memory of this process: no other process sees its locks".to_owned()));
        Ok(seen)
    }

    async fn close(&self) -> Result<()> {
        Ok(())
    }
}
