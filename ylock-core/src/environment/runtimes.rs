//! The runtimes for the background work of a client: those in which the client is used, and a thread of its own where none of them is
//! left.
//!
//! A runtime that ends drops its tasks, wherever they stand, and says nothing to the code that spawned them. So each task is
//! [`Carried`], whose drop notices the end: a task that was not polled yet is carried on to another runtime, and a task that was polled
//! finds, when its own drop starts it again, that this runtime is not used any more.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::thread::JoinHandle;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle, Id, RuntimeFlavor};
use tokio::sync::oneshot;

use super::BoxFuture;

/// The runtimes of one client; see the [module](self).
pub(super) struct Runtimes {
    /// The runtimes that live, in the order in which the client came to them. Read in every acquisition, so without a lock.
    known: ArcSwap<Vec<Arc<Known>>>,
    /// True if a current-thread runtime of the caller is preferred to the client's own thread. Its tasks run only while the caller is
    /// inside `block_on`, but the thread does not know its clock, which a test may have paused.
    prefers_callers: bool,
    /// The client's own thread. `None` until it is needed, and again when a caller has come whose runtime is preferred to it.
    own: Mutex<Option<OwnThread>>,
}

/// A runtime that lives.
struct Known {
    handle: Handle,
    /// Dropped with this: ends the task that waits for the end of the runtime.
    _watched: oneshot::Sender<()>,
}

/// A thread with a runtime, which ends with this.
struct OwnThread {
    handle: Handle,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Runtimes {
    pub(super) fn new(prefers_callers: bool) -> Self {
        Self { known: ArcSwap::default(), prefers_callers, own: Mutex::default() }
    }

    /// Remembers the runtime of the caller. Returns whether there is one.
    pub(super) fn enter(self: &Arc<Self>) -> bool {
        let Ok(current) = Handle::try_current() else { return false };
        if !self.knows(current.id()) {
            self.remember(current);
        }
        true
    }

    /// Returns whether the runtime of the caller lives, as far as can be told.
    pub(super) fn runs_here(self: &Arc<Self>) -> bool {
        let Ok(current) = Handle::try_current() else { return false };
        self.knows(current.id()) || {
            self.remember(current.clone());
            // One that has ended is forgotten at the same moment.
            self.knows(current.id())
        }
    }

    /// Runs a future in the runtime of the caller, or in another one if that has ended.
    pub(super) fn spawn(self: &Arc<Self>, future: BoxFuture) {
        self.spawn_in(self.choose(), future);
    }

    /// Runs a future that must go on whether the caller's runtime is driven or not: in a runtime that drives itself, if there is one.
    pub(super) fn spawn_for_all(self: &Arc<Self>, future: BoxFuture) {
        let of_caller = Handle::try_current().map(|current| current.runtime_flavor());
        let is_idle = of_caller.is_ok_and(|flavor| flavor == RuntimeFlavor::CurrentThread);
        let by_itself = self.latest(RuntimeFlavor::MultiThread).filter(|_| is_idle && !self.prefers_callers);
        self.spawn_in(by_itself.or_else(|| self.choose()), future);
    }

    /// Goes on with a future in the runtime in which it was polled, or drops it if that has ended.
    pub(super) fn spawn_begun(self: &Arc<Self>, future: BoxFuture, runtime: Option<Id>) {
        let current = Handle::try_current().ok().filter(|current| Some(current.id()) == runtime);
        let Some(handle) = current.or_else(|| self.known(runtime?)) else { return };
        let runtimes = Arc::downgrade(self);
        let carried =
            Carried { future: Some(future), progress: Progress::Began, runtime: handle.id(), runtimes };
        start(&handle, carried);
    }

    fn spawn_in(self: &Arc<Self>, handle: Option<Handle>, future: BoxFuture) {
        let Some(handle) = handle else {
            tracing::error!(
                "no thread can be started for the background work of a client; some of it is dropped"
            );
            return;
        };
        let carried = Carried {
            future: Some(future),
            progress: Progress::Waits,
            runtime: handle.id(),
            runtimes: Arc::downgrade(self),
        };
        start(&handle, carried);
    }

    /// Returns the runtime of the caller; otherwise a runtime that runs by itself; otherwise that of the client's own thread.
    fn choose(self: &Arc<Self>) -> Option<Handle> {
        if self.runs_here() {
            return Handle::try_current().ok();
        }
        self.latest(RuntimeFlavor::MultiThread)
            .or_else(|| self.latest(RuntimeFlavor::CurrentThread).filter(|_| self.prefers_callers))
            .or_else(|| self.own())
    }

    fn latest(&self, flavor: RuntimeFlavor) -> Option<Handle> {
        let known = self.known.load();
        let found = known.iter().rev().find(|known| known.handle.runtime_flavor() == flavor);
        found.map(|known| known.handle.clone())
    }

    fn known(&self, id: Id) -> Option<Handle> {
        let known = self.known.load();
        known.iter().find(|known| known.handle.id() == id).map(|known| known.handle.clone())
    }

    fn knows(&self, id: Id) -> bool {
        self.known.load().iter().any(|known| known.handle.id() == id)
    }

    fn remember(self: &Arc<Self>, handle: Handle) {
        let (watched, ended) = oneshot::channel::<()>();
        let (id, runtimes) = (handle.id(), Arc::downgrade(self));
        let known = Arc::new(Known { handle: handle.clone(), _watched: watched });
        self.known.rcu(|all| {
            all.iter().filter(|other| other.handle.id() != id).chain([&known]).cloned().collect::<Vec<_>>()
        });
        let watch = Watch { id, runtimes };
        start(&handle, async move {
            let mut watch = watch;
            drop(ended.await);
            // Forgotten already: by then another caller may have made it known anew.
            watch.runtimes = Weak::new();
        });
        if self.knows(id) {
            self.leave_own(id);
        }
    }

    fn forget(&self, id: Id) {
        self.known.rcu(|all| all.iter().filter(|known| known.handle.id() != id).cloned().collect::<Vec<_>>());
    }

    fn own(&self) -> Option<Handle> {
        let mut own = self.own.lock();
        if own.is_none() {
            *own = OwnThread::start();
        }
        own.as_ref().map(|own| own.handle.clone())
    }

    /// Leaves the client's own thread when a caller has come with a clock of its own: what ran on the thread goes on in the caller's
    /// runtime, before that clock can move.
    fn leave_own(&self, callers: Id) {
        let left = self.own.lock().take_if(|own| self.prefers_callers && own.handle.id() != callers);
        if let Some(OwnThread { stop, thread, .. }) = left {
            drop(stop);
            drop(thread.join());
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "this is the seam that all other code uses")]
fn start(handle: &Handle, future: impl Future<Output = ()> + Send + 'static) {
    drop(handle.spawn(future));
}

impl OwnThread {
    fn start() -> Option<Self> {
        let runtime = Builder::new_current_thread().enable_all().build().ok()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let work = move || drop(runtime.block_on(stopped));
        let thread = std::thread::Builder::new().name("ylock".to_owned()).spawn(work).ok()?;
        Some(Self { handle, stop, thread })
    }
}

/// A wait for the end of a runtime: dropped with it.
struct Watch {
    id: Id,
    runtimes: Weak<Runtimes>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(runtimes) = self.runtimes.upgrade() {
            runtimes.forget(self.id);
        }
    }
}

/// The progress of a task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// It was never polled: it has no ties to a runtime.
    Waits,
    /// It is being polled; dropped like that, it has panicked.
    Polled,
    /// It was polled and goes on.
    Began,
}

/// A task, and the runtime that it is in.
struct Carried {
    /// `None` when it is done.
    future: Option<BoxFuture>,
    progress: Progress,
    runtime: Id,
    /// Weak: a task that is left behind does not keep the client's thread alive.
    runtimes: Weak<Runtimes>,
}

impl Future for Carried {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.progress = Progress::Polled;
        let answer = self.future.as_mut().map_or(Poll::Ready(()), |future| future.as_mut().poll(context));
        self.progress = Progress::Began;
        if answer.is_ready() {
            self.future = None;
        }
        answer
    }
}

impl Drop for Carried {
    fn drop(&mut self) {
        let Some(future) = self.future.take() else { return };
        let Some(runtimes) = self.runtimes.upgrade().filter(|_| self.progress != Progress::Polled) else {
            return;
        };
        // Before the future is carried on, or its own drop starts it again: neither must come back here.
        runtimes.forget(self.runtime);
        if self.progress == Progress::Waits {
            runtimes.spawn(future);
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
