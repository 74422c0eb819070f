//! The keeper: one per client, between the locks of the users and the engine.
//!
//! Tasks of one process that want one key queue here and use *one* contender in the store. Readers share a grant; a
//! writer's grant may go to the next local task without a trip to the store. Reentrancy, renewal, loss and the
//! retries of releases live here, once for all engines.
//!
//! - [`entry`]: what is known of one key, with [`holder`], [`waiter`] and [`granted`]. Every decision about it, without waiting, clock or
//!   store: [`admission`], [`answers`], [`release`].
//! - [`acquire`]: a call, from its arrival in the local queue to its end.
//! - [`at_once`]: what carries out an entry's requests to an engine that answers without waiting: the thread that has made them necessary.
//! - [`driver`]: what carries out an entry's requests: a task, or the caller itself ([`caller_drives`]).
//! - [`long_holds`]: the end of a hold that lasts for longer than it may, with its [`bound`].
//! - [`held_sets`]: which owners hold sets of locks, and up to which key.
//! - [`throttle`]: how many releases are on their way at once.
//! - [`renewal`]: when which grant is renewed.
//! - [`effects`]: what is done after a decision, outside the lock of the shard.
//!
//! # Foreign code
//! The core calls code of others, which may panic: subscribers of the log, layers, and the wakers
//! of callers. It does so while nothing is locked, and by way of [`foreign`](crate::foreign) only.
//! A panic is not handed on to the caller in whose thread it comes.
//!
//! | place | what is called | a panic there costs |
//! |---|---|---|
//! | [`effects`]: answers | the waker of each caller | this wake-up; the answer is there |
//! | [`logged`], [`driver`], [`self_wait`], `close` | the log | this line |
//! | the drop of a client, the end of `run` | the log | this line |
//! | [`effects`], the meter, `Layers` | a layer | this call; what `acquiring` is asked fails |
//! | [`validity`]: a loss; the end of `close` | the wakers of all that wait | this wake-up |
//! | [`caller_drives`]: the store answers | the caller's waker | this wake-up |
//! | [`view`]: `inspect`, `revoke` and others | the caller's waker | this wake-up |
//! | the stream of events | the wakers of all readers | this wake-up |
//! | the store goes away, or is back | the log | this line, and no request |
//! | `TracingLayer` | the log | this warning or span |
//! | [`renewal`] and other background tasks | what else is called | a pause, then it begins afresh |
//! | a batch of renewals | the engine | its answers; they are asked for again |

mod acquire;
mod admission;
mod answers;
mod at_once;
mod attendance;
mod before;
mod bound;
mod caller_drives;
mod driver;
mod effects;
mod entry;
mod grant_time;
mod granted;
mod held_sets;
mod hold;
mod holder;
mod logged;
mod long_holds;
mod release;
mod renewal;
mod runs;
mod self_wait;
mod throttle;
mod unread;
mod validity;
mod view;
mod waiter;
mod watched;

use std::collections::HashMap;
use std::fmt;
use std::hash::BuildHasher;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use parking_lot::Mutex;
use tokio::sync::{OnceCell, Semaphore, oneshot};

use crate::bell::Bell;
use crate::client_name::SharedName;
use crate::engine::{Engine, LossReason};
use crate::environment::{BackgroundTask, Environment, shift};
use crate::error::{Error, ErrorKind, Result};
use crate::events::{ClientView, EventBus, Observers};
use crate::foreign::{shielded, tell};
use crate::key::{BuildKeyHasher, Key};
use crate::mode::Mode;
use crate::retry_deadline::RetryDeadline;
use crate::unlocked::Unlocked;

pub(crate) use acquire::AcquireArgs;
pub(crate) use attendance::{Attendance, attended};
pub(crate) use before::Before;
use caller_drives::{CallerDrives, Watch};
use driver::Driver;
use effects::Effects;
use entry::{Context, Entry, Phase, Running};
use grant_time::GrantTime;
pub(crate) use held_sets::{AcquiringSet, HeldSet};
use held_sets::{AcquiringSets, HeldSets};
pub(crate) use hold::{Acquired, Admission, Hold};
use release::Done;
use renewal::Schedule;
pub(crate) use self_wait::Site;
use throttle::Throttles;

/// Keys are spread over this many locks, so that tasks with different keys rarely meet.
const SHARDS: usize = 32;

type Entries = HashMap<Key, Entry, BuildKeyHasher>;
type Shard = Mutex<Entries>;

/// The keeper of one client; see the [module](self).
pub(crate) struct Keeper {
    engine: Arc<dyn Engine>,
    environment: Arc<dyn Environment>,
    /// The name of the client.
    name: SharedName,
    shards: Box<[Shard]>,
    /// The number of entries in all shards.
    entries: AtomicUsize,
    schedule: Arc<Schedule>,
    /// The task that renews.
    renewal: BackgroundTask,
    /// Looks after what callers drive.
    caller_drives: Arc<Watch>,
    /// True if the engine answers at once, and its releases need no throttle.
    at_once: bool,
    closed: AtomicBool,
    /// Set when the engine has been closed: a `close` that was dropped before leaves that to the next one.
    engine_closed: OnceCell<()>,
    drained: Bell,
    next_number: AtomicU64,
    observers: Observers,
    /// The client as its layers see it.
    view: ClientView,
    /// `None` if the engine needs no throttle.
    throttles: Option<Throttles>,
    held_sets: HeldSets,
    acquiring_sets: AcquiringSets,
    /// Bounds how many callers may look at once which holders and waiters are before them.
    looks: Semaphore,
    grant_time: GrantTime,
    /// Where the events go to, from the first call on that asks for a stream of them.
    hub: OnceLock<Arc<EventBus>>,
}

impl Keeper {
    pub(crate) fn new(engine: Arc<dyn Engine>) -> Arc<Self> {
        let name = SharedName::default();
        engine.meter().belongs_to(&name);
        let early = engine.early_renewals().cloned();
        let keeper = Arc::new_cyclic(|keeper: &Weak<Self>| Self {
            name,
            view: ClientView::new(engine.name(), keeper.clone()),
            observers: Observers::default(),
            throttles: engine.concurrent_releases().map(Throttles::new),
            at_once: engine.at_once().is_some() && engine.concurrent_releases().is_none(),
            held_sets: HeldSets::default(),
            acquiring_sets: AcquiringSets::default(),
            looks: Semaphore::new(before::LOOKS),
            grant_time: GrantTime::default(),
            hub: OnceLock::new(),
            environment: engine.environment(),
            engine,
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
            entries: AtomicUsize::new(0),
            schedule: Arc::default(),
            renewal: BackgroundTask::default(),
            caller_drives: Arc::default(),
            closed: AtomicBool::new(false),
            engine_closed: OnceCell::new(),
            drained: Bell::default(),
            next_number: AtomicU64::new(0),
        });
        if let Some(early) = early {
            let renews: Weak<Self> = Arc::downgrade(&keeper);
            early.belong_to(renews);
        }
        keeper
    }

    pub(crate) fn engine(&self) -> &Arc<dyn Engine> {
        &self.engine
    }

    pub(crate) fn name(&self) -> &SharedName {
        &self.name
    }

    /// Returns the engine's error with the engine and the key that it belongs to: engines need not name them.
    pub(super) fn about(&self, key: &Key, error: Error) -> Error {
        error.with_engine(self.engine.name()).with_key(key)
    }

    pub(crate) fn environment(&self) -> &Arc<dyn Environment> {
        &self.environment
    }

    /// Returns how long the store takes to let this client in, as its callers have noted it.
    pub(crate) fn grant_time(&self) -> &GrantTime {
        &self.grant_time
    }

    /// Returns how many keys are held, waited for, or on their way back.
    pub(crate) fn len(&self) -> usize {
        self.entries.load(Ordering::Relaxed)
    }

    /// Gives back one acquisition, and tells `done` when that is done; see [`Guard`](crate::Guard). Returns the driver, if there is one for
    /// the caller that waits for that.
    fn release(self: &Arc<Self>, hold: &Arc<Hold>, mode: Mode, done: Done) -> Option<CallerDrives> {
        let mut done = done;
        let effects = if done.is_some() { Effects::of_caller() } else { Effects::default() };
        let known = self.change_with(effects, &hold.validity.key, |entry, context, effects| {
            entry.release(context, hold, mode, done.take(), effects);
        });
        if known.is_none()
            && let Some(done) = done
        {
            drop(done.send(Ok(Unlocked::WasLost)));
        }
        known?.1
    }

    /// Gives everything back, and waits for it.
    pub(crate) async fn close(self: &Arc<Self>) {
        self.closed.store(true, Ordering::SeqCst);
        let mut longest_lease = Duration::ZERO;
        for key in self.keys() {
            self.change(&key, |entry, context, effects| {
                longest_lease = longest_lease.max(entry.phase.lease());
                entry.fail_all(&closed(), effects);
                if matches!(entry.phase, Phase::Granted(_)) {
                    entry.lose(context, LossReason::Closed, effects);
                } else {
                    entry.advance(context, effects);
                }
            });
        }
        let mut bound = RetryDeadline::new(&*self.environment, longest_lease.saturating_mul(2));
        tokio::select! {
            // What is over is over, also at the last moment. Neither can starve the other: each ends the wait.
            biased;
            () = self.wait_until_drained() => {}
            // Releases give up after one lease; this bound is for those that wait for a runtime which does not run, or behind so
            // many others that their leases have ended. In running time, as theirs: the releases do not go on during a pause of the process.
            () = bound.outlast() => {}
        }
        self.engine_closed.get_or_init(|| self.close_engine()).await;
    }

    async fn close_engine(&self) {
        if let Err(error) = shielded(self.engine.close()).await {
            tell!(warn, error = format!("{error:#}"), "the engine was not closed cleanly");
        }
    }

    async fn wait_until_drained(&self) {
        loop {
            let drained = self.drained.listen();
            if self.len() == 0 {
                return;
            }
            drained.await;
        }
    }

    /// Returns all keys, sorted: the maps have random seeds, which must not decide the order in which locks are given back.
    fn keys(&self) -> Vec<Key> {
        let mut keys: Vec<Key> =
            self.shards.iter().flat_map(|shard| shard.lock().keys().cloned().collect::<Vec<_>>()).collect();
        keys.sort_unstable();
        keys
    }

    /// Returns how many moments the schedule of renewals keeps, the stale ones among them.
    #[cfg(test)]
    pub(crate) fn scheduled(&self) -> usize {
        self.schedule.len()
    }

    fn shard(&self, key: &Key) -> &Shard {
        // By other bits of the hash than those by which the shard's map finds its places.
        let hash = BuildKeyHasher::default().hash_one(key) >> 32;
        &self.shards[hash as usize % self.shards.len()]
    }

    /// Changes the entry of a key, if there is one, then does what follows from it.
    fn change<T>(
        self: &Arc<Self>,
        key: &Key,
        change: impl FnOnce(&mut Entry, &Context<'_>, &mut Effects) -> T,
    ) -> Option<T> {
        self.change_with(Effects::default(), key, change).map(|(result, _)| result)
    }

    /// The same, with effects that know the caller, which gets the driver that is to be polled by it.
    fn change_with<T>(
        self: &Arc<Self>,
        effects: Effects,
        key: &Key,
        change: impl FnOnce(&mut Entry, &Context<'_>, &mut Effects) -> T,
    ) -> Option<(T, Option<CallerDrives>)> {
        let (result, effects) = self.decide(effects, key, change)?;
        Some((result, effects.happen(self, key)))
    }

    /// Changes the entry of a key, if there is one. Returns what is still to happen.
    fn decide<T>(
        &self,
        mut effects: Effects,
        key: &Key,
        change: impl FnOnce(&mut Entry, &Context<'_>, &mut Effects) -> T,
    ) -> Option<(T, Effects)> {
        let mut shard = self.shard(key).lock();
        let entry = shard.get_mut(key)?;
        let result = change(entry, &self.context(key), &mut effects);
        effects.note_step(entry);
        let forgotten = entry.is_forgettable();
        if forgotten {
            shard.remove(key);
        }
        drop(shard);
        if forgotten {
            self.forgot_one();
        }
        Some((result, effects))
    }

    fn context<'a>(&'a self, key: &'a Key) -> Context<'a> {
        Context {
            client: &self.name,
            engine: &self.engine,
            environment: &*self.environment,
            key,
            watched: self.observers.any(),
            at_once: self.at_once,
            moment: std::cell::OnceCell::new(),
        }
    }

    fn forgot_one(&self) {
        let left = self.entries.fetch_sub(1, Ordering::SeqCst) - 1;
        if left == 0 {
            self.drained.ring();
        }
    }

    /// Warns if the caller has dropped the client while releases are under way. They go on in the background, if the process lives for long
    /// enough: otherwise the next holder waits until the lease is over. In memory no other process waits.
    pub(crate) fn warn_of_releases(&self) {
        let Some(address) = self.engine.meter().address() else { return };
        let releasing = |entry: &Entry| matches!(entry.phase, Phase::Releasing(_));
        let count = |shard: &Shard| shard.lock().values().filter(|entry| releasing(entry)).count();
        let count: usize = self.shards.iter().map(count).sum();
        if count > 0 {
            tell!(
                warn,
                client = %self.name,
                engine = self.engine.name(),
                address,
                count,
                "a client was dropped while locks are being given back: if the process ends now, other clients wait for them until their \
                 leases are over. Call `close().await` first: it waits for the releases"
            );
        }
    }

    /// Starts the driver of an entry: as a task, or in the slot of the caller, which is returned.
    fn drive(self: &Arc<Self>, key: &Key, running: Running) -> Option<CallerDrives> {
        let driver = shift::run(Driver::new(Arc::clone(self), key.clone(), running.contact));
        let Some(slot) = running.slot else {
            self.environment.spawn(driver);
            return None;
        };
        self.caller_drives.begin(&slot, &self.environment);
        Some(CallerDrives::new(slot, driver, Arc::clone(&self.environment)))
    }

    /// Starts the task that renews, unless it runs.
    fn ensure_running(self: &Arc<Self>) {
        if self.renewal.is_running() {
            return;
        }
        let (keeper, schedule) = (Arc::downgrade(self), Arc::clone(&self.schedule));
        self.renewal.start(&self.environment, move || {
            Box::pin(renewal::run(Weak::clone(&keeper), Arc::clone(&schedule)))
        });
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // The task that looks after the client sleeps until it is woken, and then finds that the client is gone.
        self.schedule.wake.notify_one();
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper")
            .field("name", &self.name.get())
            .field("engine", &self.engine)
            .field("entries", &self.len())
            .finish_non_exhaustive()
    }
}

impl Acquired {
    /// Gives the acquisition back now. The answer can be waited for, or not.
    pub(crate) fn unlock(&mut self) -> impl Future<Output = Result<Unlocked>> + use<> {
        self.spent = true;
        let (done, mut answer) = oneshot::channel();
        let mut drives = self.keeper.release(&self.hold, self.mode, Some(done));
        async move {
            caller_drives::drive(&mut drives, &mut answer).await.unwrap_or_else(|_| {
                let message = "the client ended before the store confirmed the release";
                Err(Error::new(ErrorKind::Indeterminate, message))
            })
        }
    }

    /// Becomes a reader now. The answer comes when the store shows it.
    pub(crate) fn downgrade(&mut self) -> Result<oneshot::Receiver<Result<()>>> {
        let (shown, answer) = oneshot::channel();
        let key = self.hold.validity.key.clone();
        let lost = || Error::new(ErrorKind::Lost, "the lock was lost").with_key(&key);
        let result = self
            .keeper
            .change(&key, |entry, context, effects| entry.downgrade(context, &self.hold, shown, effects));
        result.ok_or_else(lost)??;
        self.mode = Mode::Read;
        Ok(answer)
    }
}

/// Returns the answer of a call to the engine. A call that panics has failed; if it were taken for the end of the runtime, the same call
/// would be made again at once, without end.
async fn caught<T>(call: impl Future<Output = Result<T>>) -> Result<T> {
    AssertUnwindSafe(call).catch_unwind().await.unwrap_or_else(|_| Err(panicked()))
}

fn panicked() -> Error {
    Error::new(ErrorKind::Unexpected, "the engine panicked")
}

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the client is closed")
}

#[cfg(test)]
mod tests;
