//! A task that can be taken from its runtime: when that ends, and when it stands still.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::Mutex;

use super::Runtimes;
use super::known::Known;
use crate::environment::BoxFuture;

/// What a task is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It comes to an end.
    Work,
    /// It serves the whole client, for as long as there is one.
    ForAll,
    /// It belongs to a connection that was made in its runtime, and ends with that.
    Beside,
}

/// A future, and how far it has come. Its runtime polls it; another thread may take it away.
pub(super) struct Cell {
    pub(super) kind: Kind,
    /// Whether it was spawned or woken and not polled since.
    is_due: AtomicBool,
    /// How many looks at its runtime have found that it was due, since it was last polled.
    overlooked: AtomicU32,
    /// The waker of its task, from the first poll on.
    waker: OnceLock<Waker>,
    state: Mutex<State>,
}

enum State {
    /// It was never polled: it has no ties to a runtime.
    Waits(BoxFuture),
    /// It was polled, by its task or by a caller before, and goes on only in this runtime.
    Began(BoxFuture),
    /// A thread polls it at this moment. Left like that, it has panicked.
    Polled,
    /// A thread polls it, and is to drop it then.
    Abandoned,
    Over,
}

impl Cell {
    /// Takes the future away from a runtime that stands still. Returns it if it can go on elsewhere.
    /// Otherwise it is dropped, which starts again what must go on: what it waits for belongs to that
    /// runtime.
    pub(super) fn abandon(&self) -> Option<BoxFuture> {
        let mut state = self.state.lock();
        let before = std::mem::replace(&mut *state, State::Over);
        if matches!(before, State::Polled | State::Abandoned) {
            *state = State::Abandoned;
        }
        drop(state);
        match before {
            State::Waits(future) => Some(future).filter(|_| self.kind != Kind::Beside),
            State::Began(_) => {
                // The runtime finds that the task is over when it goes on.
                if let Some(waker) = self.waker.get() {
                    waker.wake_by_ref();
                }
                None
            }
            State::Polled | State::Abandoned | State::Over => None,
        }
    }

    /// Returns whether so many looks, with this one, have found that it was due and not polled.
    pub(super) fn is_overlooked(&self, looks: u32) -> bool {
        let is_due = self.is_due.load(Ordering::Relaxed)
            && matches!(*self.state.lock(), State::Waits(_) | State::Began(_));
        is_due && self.overlooked.fetch_add(1, Ordering::Relaxed) + 1 >= looks
    }

    fn poll(self: &Arc<Self>, context: &mut Context<'_>) -> Poll<()> {
        let before = std::mem::replace(&mut *self.state.lock(), State::Polled);
        let (State::Waits(mut future) | State::Began(mut future)) = before else {
            *self.state.lock() = State::Over;
            return Poll::Ready(());
        };
        // The waker of a task is the same for as long as it lives.
        self.waker.get_or_init(|| context.waker().clone());
        // Before the poll: what wakes it from then on may have come too late for this one.
        self.is_due.store(false, Ordering::Relaxed);
        self.overlooked.store(0, Ordering::Relaxed);
        let notes_wakes = Waker::from(Arc::clone(self));
        let answer = future.as_mut().poll(&mut Context::from_waker(&notes_wakes));
        let mut state = self.state.lock();
        if answer.is_ready() || matches!(*state, State::Abandoned) {
            *state = State::Over;
            drop(state);
            return Poll::Ready(());
        }
        *state = State::Began(future);
        Poll::Pending
    }
}

/// Tokio keeps a task for the worker that wakes it, and does not say that it was woken.
impl Wake for Cell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_due.store(true, Ordering::Relaxed);
        if let Some(waker) = self.waker.get() {
            waker.wake_by_ref();
        }
    }
}

/// A task of the client, and the runtime that it is in.
pub(super) struct Carried {
    cell: Arc<Cell>,
    runtime: Arc<Known>,
    /// Its number among the tasks of the runtime.
    number: u64,
    /// Weak: a task that is left behind does not keep the client's thread alive.
    runtimes: Weak<Runtimes>,
}

impl Carried {
    /// Makes a task of a future, for this runtime. Returns the future, if it can go on elsewhere, as an
    /// error if the runtime was abandoned.
    pub(super) fn new(
        future: BoxFuture,
        runtime: &Arc<Known>,
        kind: Kind,
        runtimes: &Arc<Runtimes>,
    ) -> Result<Self, Option<BoxFuture>> {
        Self::of(State::Waits(future), runtime, kind, runtimes)
    }

    /// Makes a task of a future that was polled in this runtime. If that was abandoned, the future is
    /// dropped.
    pub(super) fn begun(future: BoxFuture, runtime: &Arc<Known>, runtimes: &Arc<Runtimes>) -> Option<Self> {
        Self::of(State::Began(future), runtime, Kind::Work, runtimes).ok()
    }

    fn of(
        state: State,
        runtime: &Arc<Known>,
        kind: Kind,
        runtimes: &Arc<Runtimes>,
    ) -> Result<Self, Option<BoxFuture>> {
        let cell = Arc::new(Cell {
            kind,
            is_due: AtomicBool::new(true),
            overlooked: AtomicU32::new(0),
            waker: OnceLock::new(),
            state: Mutex::new(state),
        });
        match runtime.tasks.add(&cell) {
            Some(number) => {
                let (runtime, runtimes) = (Arc::clone(runtime), Arc::downgrade(runtimes));
                Ok(Self { cell, runtime, number, runtimes })
            }
            None => Err(cell.abandon()),
        }
    }
}

impl Future for Carried {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.cell.poll(context)
    }
}

impl Drop for Carried {
    fn drop(&mut self) {
        self.runtime.tasks.remove(self.number);
        let left = std::mem::replace(&mut *self.cell.state.lock(), State::Over);
        if !matches!(left, State::Waits(_) | State::Began(_)) {
            return;
        }
        // Its runtime has ended, and says nothing else.
        let Some(runtimes) = self.runtimes.upgrade() else { return };
        // Before the future is carried on, or its own drop starts it again: neither must come back here.
        runtimes.forget(&self.runtime);
        if let State::Waits(future) = left
            && self.cell.kind != Kind::Beside
        {
            runtimes.spawn_as(self.cell.kind, future);
        }
    }
}
