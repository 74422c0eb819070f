//! What the driver of a client finds when it runs.

use std::collections::VecDeque;
use std::task::{Context, Waker};

use parking_lot::Mutex;

use super::ConnectionId;
use super::driver::Request;
use super::event::Message;

/// Something for the driver.
pub(super) enum Incoming {
    Message(ConnectionId, Message),
    Request(Request),
    /// The state of the line has changed.
    Look,
}

/// A queue with one reader.
#[derive(Default)]
pub(super) struct Mailbox(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    queue: VecDeque<Incoming>,
    waker: Option<Waker>,
}

impl Mailbox {
    pub(super) fn put(&self, incoming: Incoming) {
        let mut inner = self.0.lock();
        inner.queue.push_back(incoming);
        let waker = inner.waker.take();
        drop(inner);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Returns the next thing, or wakes the reader when there is one.
    pub(super) fn take(&self, context: &Context<'_>) -> Option<Incoming> {
        let mut inner = self.0.lock();
        let next = inner.queue.pop_front();
        if next.is_none() {
            inner.waker = Some(context.waker().clone());
        }
        next
    }
}

impl std::fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Mailbox")
    }
}
