//! The runtimes for the background work of a client: those in which the client is used, and a
//! thread of its own.
//!
//! A runtime that ends drops its tasks, wherever they stand, and says nothing to the code that
//! spawned them. So each task is [`Carried`], whose drop notices the end: a task that was not
//! polled yet is carried on to another runtime, and a task that was polled finds, when its own drop
//! starts it again, that this runtime is not used any more.
//!
//! A runtime that stands still drops nothing, and what it was to do is not done: a current-thread
//! runtime that no thread drives, or one whose threads are all blocked by other work. What must go
//! on whatever the program does is on the thread of the client's own. The rest (a connection, the
//! release of a guard that was dropped) begins where the caller is, because that saves two changes
//! of threads in every request. A runtime that does not run a task in time is
//! [abandoned](Runtimes::abandon_standing): treated as if it had ended, until a caller comes from
//! it again.

mod known;
mod own_thread;
mod task;

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::runtime::{Handle, Id, RuntimeFlavor};
use tokio::sync::oneshot;

use super::BoxFuture;
use super::timer::Timer;
use crate::foreign::tell;
use known::Known;
use own_thread::OwnThread;
use task::{Carried, Kind};

/// The pause between two looks at the runtimes of the program in which there is work of the client.
const LOOK: Duration = Duration::from_millis(250);
/// The time in which such a runtime must run a task. Long enough for a machine with much to do: to
/// be wrong costs a connection.
const PATIENCE: Duration = Duration::from_secs(1);

/// So many looks may find that a task is due and was not polled.
const OVERLOOKED: u32 = 4;

/// The runtimes of one client; see the [module](self).
pub(super) struct Runtimes {
    /// The runtimes of the program that live, in the order in which the client came to them. Read
    /// in every acquisition, so without a lock.
    known: ArcSwap<Vec<Arc<Known>>>,
    /// True if a current-thread runtime of the caller is preferred to the client's own thread. Its
    /// tasks run only while the caller is inside `block_on`, but the thread does not know its
    /// clock, which a test may have paused.
    prefers_callers: bool,
    /// The client's own thread. `None` until it is needed, and again when a caller has come whose
    /// runtime is preferred to it.
    own: Mutex<Option<(OwnThread, Arc<Known>)>>,
    /// Whether a task looks at the runtimes of the program in which there is work.
    is_looking: AtomicBool,
}

impl Runtimes {
    pub(super) fn new(prefers_callers: bool) -> Self {
        Self {
            known: ArcSwap::default(),
            prefers_callers,
            own: Mutex::default(),
            is_looking: AtomicBool::new(false),
        }
    }

    /// Remembers the runtime of the caller. Returns whether there is one.
    pub(super) fn enter(self: &Arc<Self>) -> bool {
        self.runs_here() || Handle::try_current().is_ok()
    }

    /// Returns whether the runtime of the caller lives, as far as can be told.
    pub(super) fn runs_here(self: &Arc<Self>) -> bool {
        let Ok(current) = Handle::try_current() else { return false };
        self.known.load().iter().any(|known| known.id() == current.id()) || self.here().is_some()
    }

    /// Returns the runtime of the caller, if it lives.
    fn here(self: &Arc<Self>) -> Option<Arc<Known>> {
        let current = Handle::try_current().ok()?;
        let id = current.id();
        self.known(id).or_else(|| self.own_if(id)).or_else(|| {
            self.remember(current);
            // One that has ended is forgotten at the same moment.
            self.known(id)
        })
    }

    /// Runs a future in the runtime of the caller, or on the client's own thread if that has ended.
    pub(super) fn spawn(self: &Arc<Self>, future: BoxFuture) {
        self.spawn_as(Kind::Work, future);
    }

    /// Runs a future that belongs to a connection of the caller's runtime, and ends with it.
    pub(super) fn spawn_beside(self: &Arc<Self>, future: BoxFuture) {
        self.spawn_as(Kind::Beside, future);
    }

    /// Runs a future that must go on whatever the program does.
    pub(super) fn spawn_for_all(self: &Arc<Self>, future: BoxFuture) {
        self.spawn_as(Kind::ForAll, future);
    }

    fn spawn_as(self: &Arc<Self>, kind: Kind, future: BoxFuture) {
        let goes_on_here = |known: &Arc<Known>| self.prefers_callers && is_current_thread(&known.handle);
        let here = match kind {
            Kind::Work | Kind::Beside => self.here(),
            Kind::ForAll => self.here().filter(goes_on_here),
        };
        self.spawn_in(here.or_else(|| self.elsewhere()), kind, future);
    }

    /// Goes on with a future in the runtime in which it was polled, or drops it if that has ended.
    pub(super) fn spawn_begun(self: &Arc<Self>, future: BoxFuture, runtime: Option<Id>) {
        let Some(id) = runtime else { return };
        let Some(known) = self.known(id).or_else(|| self.own_if(id)) else { return };
        if let Some(carried) = Carried::begun(future, &known, self) {
            self.begin(&known, carried, Kind::Work);
        }
    }

    fn spawn_in(self: &Arc<Self>, runtime: Option<Arc<Known>>, kind: Kind, future: BoxFuture) {
        let Some(runtime) = runtime else {
            tell!(
                error,
                "no thread can be started for the background work of a client; some of it is dropped"
            );
            return;
        };
        match Carried::new(future, &runtime, kind, self) {
            Ok(carried) => self.begin(&runtime, carried, kind),
            // It was abandoned a moment ago.
            Err(Some(future)) => self.spawn_in(self.own(), kind, future),
            Err(None) => {}
        }
    }

    fn begin(self: &Arc<Self>, runtime: &Arc<Known>, carried: Carried, kind: Kind) {
        start(&runtime.handle, carried);
        if kind == Kind::Work && !self.prefers_callers && !self.is_own(runtime.id()) {
            self.look_from_now_on();
        }
    }

    /// Returns a runtime for a caller that has none.
    fn elsewhere(self: &Arc<Self>) -> Option<Arc<Known>> {
        let callers =
            || self.known.load().iter().rev().find(|known| is_current_thread(&known.handle)).cloned();
        let preferred = if self.prefers_callers { callers() } else { None };
        preferred.or_else(|| self.own()).or_else(|| self.known.load().last().cloned())
    }

    fn known(&self, id: Id) -> Option<Arc<Known>> {
        self.known.load().iter().find(|known| known.id() == id).cloned()
    }

    fn remember(self: &Arc<Self>, handle: Handle) {
        let (known, watch) = self.watched(&handle);
        // Of two callers that come at once the first one counts: tasks of the client may be there
        // already.
        self.known.rcu(|all| {
            let is_known = all.iter().any(|other| other.id() == known.id());
            all.iter().chain((!is_known).then_some(&known)).cloned().collect::<Vec<_>>()
        });
        start(&handle, watch);
        if self.prefers_callers && is_current_thread(&handle) && self.known(known.id()).is_some() {
            self.leave_own();
        }
    }

    /// Returns a runtime, and the task that is dropped with it and then forgets it.
    fn watched(self: &Arc<Self>, handle: &Handle) -> (Arc<Known>, impl Future<Output = ()> + use<>) {
        let (watched, ended) = oneshot::channel::<()>();
        let known = Known::new(handle.clone(), watched);
        let watch = Watch { known: Arc::downgrade(&known), runtimes: Arc::downgrade(self) };
        let task = async move {
            let mut watch = watch;
            drop(ended.await);
            // Forgotten already: by then another caller may have made it known anew.
            watch.runtimes = Weak::new();
        };
        (known, task)
    }

    fn forget(&self, known: &Arc<Known>) {
        self.known
            .rcu(|all| all.iter().filter(|other| !Arc::ptr_eq(other, known)).cloned().collect::<Vec<_>>());
    }

    fn own(self: &Arc<Self>) -> Option<Arc<Known>> {
        let mut own = self.own.lock();
        if own.is_none() {
            let thread = OwnThread::start()?;
            let (known, watch) = self.watched(&thread.handle);
            start(&thread.handle, watch);
            *own = Some((thread, known));
        }
        own.as_ref().map(|(_, known)| Arc::clone(known))
    }

    fn own_if(&self, id: Id) -> Option<Arc<Known>> {
        self.own.lock().as_ref().map(|(_, known)| known).filter(|known| known.id() == id).cloned()
    }

    fn is_own(&self, id: Id) -> bool {
        self.own_if(id).is_some()
    }

    /// Leaves the client's own thread when a caller has come with a clock of its own: what ran on
    /// the thread goes on in the caller's runtime, before that clock can move.
    fn leave_own(&self) {
        let left = self.own.lock().take();
        if let Some((thread, _)) = left {
            thread.end();
        }
    }

    /// Waits until each runtime of the program has run something, or `which` of them; each that has
    /// not in time is treated as if it had ended. Returns whether there was one.
    pub(super) async fn abandon_standing(
        self: &Arc<Self>,
        which: Option<Option<Id>>,
        patience: Duration,
    ) -> bool {
        if self.prefers_callers {
            return false;
        }
        let current = Handle::try_current().ok().map(|current| current.id());
        let is_doubtful = |known: &&Arc<Known>| {
            let id = Some(known.id());
            which.is_none_or(|which| which == id) && id != current && !known.has_moved_within(patience / 2)
        };
        let doubtful: Vec<_> = self.known.load().iter().filter(is_doubtful).cloned().collect();
        if doubtful.is_empty() {
            return false;
        }
        let moved = doubtful.iter().map(|known| async {
            tokio::select! {
                biased;
                // An error: it ends at this moment.
                moved = known.poke() => moved.is_ok(),
                // In two steps: after a pause of the whole process the first one is over at once,
                // and the other runtimes have had no time.
                () = async {
                    Timer::new(patience / 2).await;
                    Timer::new(patience / 2).await;
                } => false,
            }
        });
        let moved = join_all(moved).await;
        let mut has_abandoned = false;
        for (known, moves) in doubtful.iter().zip(moved) {
            if !moves {
                has_abandoned = true;
                self.abandon(known, patience);
            }
        }
        has_abandoned
    }

    fn abandon(self: &Arc<Self>, known: &Arc<Known>, patience: Duration) {
        // First: what is dropped below must not begin again there.
        self.forget(known);
        let tasks = known.tasks.take();
        if tasks.is_empty() {
            return;
        }
        match known.handle.runtime_flavor() {
            // One that no thread drives now: a program may use it from time to time.
            RuntimeFlavor::CurrentThread => tell!(
                debug,
                ?patience,
                "a runtime that is not driven has run nothing; the client goes on elsewhere"
            ),
            _ => tell!(
                warn,
                ?patience,
                "a runtime has run nothing; the client goes on on a thread of its own. Does work block the runtime's threads? Such work \
                 belongs into `spawn_blocking`"
            ),
        }
        for task in tasks {
            if let Some(future) = task.abandon() {
                self.spawn_in(self.own(), task.kind, future);
            }
        }
    }

    /// Takes away single tasks that have been due for long although their runtime moves: a worker of
    /// tokio that spawns or wakes a task keeps it for itself, and may block before it comes to it.
    fn take_overlooked(self: &Arc<Self>) {
        for known in self.known.load().iter() {
            for task in known.tasks.take_overlooked(OVERLOOKED) {
                if let Some(future) = task.abandon() {
                    self.spawn_in(self.own(), task.kind, future);
                }
            }
        }
    }

    /// Looks at the runtimes of the program from time to time, for as long as there is work in one.
    fn look_from_now_on(self: &Arc<Self>) {
        if !self.is_looking.load(Ordering::Relaxed) && !self.is_looking.swap(true, Ordering::AcqRel) {
            self.spawn_for_all(Box::pin(look(Looking(Arc::downgrade(self)))));
        }
    }

    fn has_work(&self) -> bool {
        self.known.load().iter().any(|known| known.tasks.has_work())
    }
}

async fn look(looking: Looking) {
    loop {
        Timer::new(LOOK).await;
        let Some(runtimes) = looking.0.upgrade() else { return };
        if !runtimes.has_work() {
            drop(looking);
            // Work that has come in between found that a task was looking.
            if runtimes.has_work() {
                runtimes.look_from_now_on();
            }
            return;
        }
        runtimes.abandon_standing(None, PATIENCE).await;
        runtimes.take_overlooked();
    }
}

/// A look that goes on. Dropped with its task, however that ends: then the next work begins another
/// one.
struct Looking(Weak<Runtimes>);

impl Drop for Looking {
    fn drop(&mut self) {
        if let Some(runtimes) = self.0.upgrade() {
            runtimes.is_looking.store(false, Ordering::Release);
        }
    }
}

/// Returns a channel of which the other end is dropped with the runtime of the caller; at once
/// where there is none.
pub(super) fn end_of_this() -> oneshot::Receiver<Infallible> {
    let (lives, ended) = oneshot::channel::<Infallible>();
    if let Ok(handle) = Handle::try_current() {
        start(&handle, async move {
            let mut lives = lives;
            lives.closed().await;
        });
    }
    ended
}

fn is_current_thread(handle: &Handle) -> bool {
    handle.runtime_flavor() == RuntimeFlavor::CurrentThread
}

#[allow(clippy::disallowed_methods, reason = "this is the seam that all other code uses")]
fn start(handle: &Handle, future: impl Future<Output = ()> + Send + 'static) {
    drop(handle.spawn(future));
}

/// A wait for the end of a runtime: dropped with it.
struct Watch {
    known: Weak<Known>,
    runtimes: Weak<Runtimes>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let (Some(runtimes), Some(known)) = (self.runtimes.upgrade(), self.known.upgrade()) {
            runtimes.forget(&known);
        }
    }
}

impl fmt::Debug for Runtimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtimes")
            .field("known", &self.known.load().len())
            .field("own_thread", &self.own.lock().is_some())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
