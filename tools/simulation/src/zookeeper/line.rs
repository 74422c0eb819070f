//! What a client knows of its session, and the tasks that wait for a change of that.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use ylock_core::environment::{BoxFuture, Moment};

use super::SessionId;
use super::mailbox::{Incoming, Mailbox};

/// The state of a session, as its client knows it.
#[derive(Clone, Copy, Debug)]
pub(super) enum State {
    /// Nothing was asked for.
    New,
    Dialing,
    Live,
    /// The session has ended, or is given up: the servers hear of the latter at this moment.
    Over(Moment),
}

/// What the client knows of a session that has begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) session: SessionId,
    pub(super) timeout: Duration,
    pub(super) asked: Moment,
}

/// The line of a session to the servers.
#[derive(Debug)]
pub(super) struct Line {
    inner: Mutex<Inner>,
    /// What the driver finds when it runs.
    pub(super) mailbox: Arc<Mailbox>,
}

#[derive(Debug)]
struct Inner {
    state: State,
    known: Option<Known>,
    wakers: Vec<Waker>,
}

impl Line {
    pub(super) fn new() -> Arc<Self> {
        let inner = Inner { state: State::New, known: None, wakers: Vec::new() };
        Arc::new(Self { inner: Mutex::new(inner), mailbox: Arc::default() })
    }

    pub(super) fn state(&self) -> State {
        self.inner.lock().state
    }

    pub(super) fn known(&self) -> Option<Known> {
        self.inner.lock().known
    }

    pub(super) fn is_live(&self) -> bool {
        matches!(self.inner.lock().state, State::Live)
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.inner.lock().state, State::Over(_))
    }

    /// Changes the state, unless the session is over. Returns whether it did.
    pub(super) fn change(&self, to: State) -> bool {
        let wakers = {
            let mut inner = self.inner.lock();
            if matches!(inner.state, State::Over(_)) {
                return false;
            }
            inner.state = to;
            std::mem::take(&mut inner.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
        true
    }

    pub(super) fn lives(&self, known: Known) {
        self.inner.lock().known = Some(known);
        self.change(State::Live);
    }

    /// Gives the session up. The driver tells the servers at the moment `then`.
    pub(super) fn end(&self, then: Moment) {
        if self.change(State::Over(then)) {
            self.mailbox.put(Incoming::Look);
        }
    }

    /// Takes the right to dial, which one task has at a time.
    pub(super) fn begin_to_dial(&self) -> bool {
        let mut inner = self.inner.lock();
        let is_new = matches!(inner.state, State::New);
        if is_new {
            inner.state = State::Dialing;
        }
        is_new
    }

    /// Waits for a state.
    pub(super) fn until(self: &Arc<Self>, is_so: fn(&State) -> bool) -> BoxFuture {
        let line = Arc::clone(self);
        Box::pin(std::future::poll_fn(move |context| line.poll(is_so, context)))
    }

    fn poll(&self, is_so: fn(&State) -> bool, context: &Context<'_>) -> Poll<()> {
        let mut inner = self.inner.lock();
        if is_so(&inner.state) {
            return Poll::Ready(());
        }
        if !inner.wakers.iter().any(|waker| waker.will_wake(context.waker())) {
            inner.wakers.push(context.waker().clone());
        }
        Poll::Pending
    }
}
