//! A runtime in which a client has tasks.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::runtime::{Handle, Id};
use tokio::sync::oneshot;

use super::start;
use super::task::{Cell, Kind};

/// A runtime in which a client has tasks: one of the program's, or that of the client's own thread.
pub(super) struct Known {
    pub(super) handle: Handle,
    pub(super) tasks: Tasks,
    /// The last time that it has run a task which was to show that it moves.
    moved: Mutex<Option<Instant>>,
    /// Dropped with this: ends the task that waits for the end of the runtime.
    _watched: oneshot::Sender<()>,
}

impl Known {
    /// `watched`: ends the task that waits for the end of the runtime.
    pub(super) fn new(handle: Handle, watched: oneshot::Sender<()>) -> Arc<Self> {
        Arc::new(Self { handle, tasks: Tasks::default(), moved: Mutex::default(), _watched: watched })
    }

    pub(super) fn id(&self) -> Id {
        self.handle.id()
    }

    /// Returns whether it has run something within this time.
    #[allow(clippy::disallowed_methods, reason = "this is the seam that all other code uses")]
    pub(super) fn has_moved_within(&self, time: Duration) -> bool {
        self.moved.lock().is_some_and(|moved| moved.elapsed() < time)
    }

    /// Gives it a task that shows whether it moves. That is also what wakes an idle worker: one whose
    /// thread is blocked may have been the one that drives timers and connections, and the runtime
    /// wakes no other to take that over.
    pub(super) fn poke(self: &Arc<Self>) -> oneshot::Receiver<()> {
        let (moves, moved) = oneshot::channel();
        let known = Arc::clone(self);
        start(&self.handle, async move {
            #[allow(clippy::disallowed_methods, reason = "this is the seam that all other code uses")]
            let now = Instant::now();
            *known.moved.lock() = Some(now);
            // The client may have lost its patience.
            let _ = moves.send(());
        });
        moved
    }
}

/// The tasks of a client in one runtime.
#[derive(Default)]
pub(super) struct Tasks(Mutex<All>);

#[derive(Default)]
struct All {
    /// The tasks by their numbers.
    tasks: HashMap<u64, (Weak<Cell>, Kind)>,
    next: u64,
    /// The number of those that are work.
    work: usize,
    /// True once the tasks were taken from a runtime that stands still.
    taken: bool,
}

impl Tasks {
    /// Adds a task. Returns its number; `None` if the tasks were taken away.
    pub(super) fn add(&self, cell: &Arc<Cell>) -> Option<u64> {
        let mut all = self.0.lock();
        if all.taken {
            return None;
        }
        all.next += 1;
        let number = all.next;
        all.tasks.insert(number, (Arc::downgrade(cell), cell.kind));
        all.work += usize::from(cell.kind == Kind::Work);
        Some(number)
    }

    pub(super) fn remove(&self, number: u64) {
        let mut all = self.0.lock();
        if let Some((_, kind)) = all.tasks.remove(&number) {
            all.work -= usize::from(kind == Kind::Work);
        }
    }

    /// Returns whether there is work.
    pub(super) fn has_work(&self) -> bool {
        self.0.lock().work > 0
    }

    /// Takes the work that was due and not polled in so many looks, this one counted.
    pub(super) fn take_overlooked(&self, looks: u32) -> Vec<Arc<Cell>> {
        let mut all = self.0.lock();
        let work = all.tasks.iter().filter(|(_, (_, kind))| *kind == Kind::Work);
        let cells = work.filter_map(|(number, (cell, _))| Some((*number, cell.upgrade()?)));
        let mut overlooked: Vec<_> = cells.filter(|(_, cell)| cell.is_overlooked(looks)).collect();
        overlooked.sort_unstable_by_key(|(number, _)| *number);
        for (number, _) in &overlooked {
            all.tasks.remove(number);
            all.work -= 1;
        }
        overlooked.into_iter().map(|(_, cell)| cell).collect()
    }

    /// Takes all tasks: first those of connections, which the others must not find any more; otherwise
    /// in the order in which they were added.
    pub(super) fn take(&self) -> Vec<Arc<Cell>> {
        let mut all = self.0.lock();
        all.taken = true;
        let mut tasks: Vec<_> = std::mem::take(&mut all.tasks).into_iter().collect();
        all.work = 0;
        drop(all);
        tasks.sort_unstable_by_key(|(number, (_, kind))| (*kind != Kind::Beside, *number));
        tasks.into_iter().filter_map(|(_, (cell, _))| cell.upgrade()).collect()
    }
}
