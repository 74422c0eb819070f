//! Work of a future that is done outside of it.
//!
//! The async `run` polls its work, inside the runtime of the client. A closure of a synchronous program must not notice that runtime: it may start
//! one of its own, or be in another one. So in the place of the work stands a future that only asks for it; the thread that polls it leaves the
//! runtime, calls the closure, and polls again. Until then the async code decides as ever: the loss of the lock is looked at before the output of
//! the work.

use std::cell::Cell;
use std::future::poll_fn;
use std::task::Poll;

use crate::Owner;

/// The place at which a future asks for work, and finds the output.
pub(super) struct Outside<W, T> {
    asked: Cell<Option<(W, Option<Owner>)>>,
    output: Cell<Option<T>>,
}

impl<W: FnOnce() -> T, T> Outside<W, T> {
    pub(super) fn new() -> Self {
        Self { asked: Cell::new(None), output: Cell::new(None) }
    }

    /// Asks for this work, and waits for its output. The owner that is current here is also current in the work.
    pub(super) async fn call(&self, work: W) -> T {
        let _asking = Asking(self);
        self.asked.set(Some((work, Owner::current())));
        poll_fn(|_| self.output.take().map_or(Poll::Pending, Poll::Ready)).await
    }

    /// Does the work that was asked for. Returns whether there was any.
    pub(super) fn work(&self) -> bool {
        let Some((work, owner)) = self.asked.take() else { return false };
        let output = match owner {
            Some(owner) => owner.sync_scope(work),
            None => work(),
        };
        self.output.set(Some(output));
        true
    }
}

/// A question that waits for its output. What is left of it goes with it: where a lock was lost its future is dropped, and the output of that work must not
/// be taken for that of the next one.
struct Asking<'a, W, T>(&'a Outside<W, T>);

impl<W, T> Drop for Asking<'_, W, T> {
    fn drop(&mut self) {
        drop((self.0.asked.take(), self.0.output.take()));
    }
}
