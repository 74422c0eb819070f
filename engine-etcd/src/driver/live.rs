//! One life of the connection.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tonic::Request;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;

use super::watches::Watches;

pub(super) type Slot = Arc<Mutex<Option<Live>>>;

/// A member without a leader answers no request that has this: it would go on answering watches, with nothing to tell.
const WITH_LEADER: &str = "hasleader";

/// The way to a member, logged in.
#[derive(Clone)]
pub(super) struct Way {
    pub(super) channel: Channel,
    pub(super) token: Option<MetadataValue<Ascii>>,
}

/// A connection that can be used.
#[derive(Clone)]
pub(super) struct Live {
    pub(super) way: Way,
    pub(super) watches: Arc<Watches>,
    /// Belongs to one life of the connection, so that no task throws away a newer one.
    pub(super) mark: Arc<()>,
    /// Dropped with the last clone of this value: that ends the task that waits for the end of the runtime.
    pub(super) _watched: Arc<oneshot::Sender<()>>,
}

impl Way {
    /// Returns a message as a request of this connection.
    pub(super) fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.metadata_mut().insert(WITH_LEADER, MetadataValue::from_static("true"));
        if let Some(token) = &self.token {
            request.metadata_mut().insert("token", token.clone());
        }
        request
    }
}

/// A watch over the runtime of a connection. The driver's tasks run in the runtime in which the connection was made, and so does the task that has
/// this value: dropped with that runtime, it makes the next request connect anew, in its own runtime, and not try the dead connection.
pub(super) struct RuntimeWatch {
    pub(super) slot: Weak<Mutex<Option<Live>>>,
    pub(super) mark: Arc<()>,
}

impl Drop for RuntimeWatch {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.upgrade() {
            empty(&slot, &self.mark);
        }
    }
}

/// Forgets a connection, unless there is a newer one. Returns whether it was there. Its watches end: those that wait for them look for themselves.
pub(super) fn empty(slot: &Mutex<Option<Live>>, mark: &Arc<()>) -> bool {
    let taken = slot.lock().take_if(|live| Arc::ptr_eq(&live.mark, mark));
    if let Some(live) = &taken {
        live.watches.end();
    }
    taken.is_some()
}
