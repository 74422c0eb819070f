//! One life of the connection to a server, and the attempt to begin one.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::Shared;
use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use tokio::sync::oneshot;
use tokio::task::Unconstrained;
use ylock_core::Result;
use ylock_core::environment::Moment;

use crate::options::Address;

pub(super) type Slot = Arc<Mutex<Option<Live>>>;

/// The time for which no request tries again after a connection could not be made: very many may want one when a server is back.
const PAUSE: Duration = Duration::from_millis(100);
#[derive(Clone)]
pub(super) struct Live {
    pub(super) connection: MultiplexedConnection,
    /// The address, in an `Arc` that belongs to one life of the connection, so that no task throws away a newer one.
    pub(super) address: Arc<Address>,
    /// Dropped with the last clone of this value: that ends the task that waits for the end of the runtime.
    pub(super) _watched: Arc<oneshot::Sender<()>>,
}

/// The result of an attempt to connect, for all requests that wait for it. They are woken in an order that follows from the order in which
/// they began and ceased to wait: those of a channel `watch` would be woken in an order of chance, and no run of the simulation could be
/// repeated.
///
/// Whatever else a task has done in its turn: a result that is there must not look as if it were not.
pub(super) type Connected = Shared<Unconstrained<oneshot::Receiver<Result<()>>>>;

/// An attempt to connect. It goes on in a task of its own, also after the requests that need it have ended: each request ends in its own
/// time, and a server that is far away is reached all the same.
#[derive(Clone)]
pub(super) struct Attempt {
    pub(super) began: Moment,
    pub(super) result: Connected,
}

/// A watch over the runtime of a connection. The driver's task for a connection runs in the runtime in which the connection was made, and
/// so does the task that has this value: dropped with that runtime, it makes the next request connect anew, in its own runtime, and not try
/// the dead connection.
pub(super) struct Watch {
    pub(super) slot: Weak<Mutex<Option<Live>>>,
    pub(super) address: Arc<Address>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.upgrade() {
            empty(&slot, &self.address);
        }
    }
}

impl Attempt {
    /// Returns whether a request shall take the result of this attempt: of one that failed, for a moment; of one that is under way, unless
    /// it takes so long that nothing runs it any more.
    pub(super) fn is_of_use(&self, now: Moment, connect_timeout: Duration) -> bool {
        let age = now.since(self.began);
        match self.result.clone().now_or_never() {
            None => age < connect_timeout,
            Some(Ok(Err(_))) => age < connect_timeout.min(PAUSE),
            // The connection is there; or the runtime of the attempt has ended.
            Some(Ok(Ok(())) | Err(_)) => false,
        }
    }
}

/// Forgets a connection, unless there is a newer one.
pub(super) fn empty(slot: &Mutex<Option<Live>>, address: &Arc<Address>) {
    let mut slot = slot.lock();
    slot.take_if(|live| Arc::ptr_eq(&live.address, address));
}
