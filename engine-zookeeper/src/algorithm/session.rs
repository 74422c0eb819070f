//! One session, and everything that lives and dies with it: the [link](super::link) that sends, and
//! above it what this client has in the store.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use ylock_core::environment::{BackgroundTask, Moment};

use super::claim::Begin;
use super::claims::Claims;
use super::client::Client;
use super::link::Link;
use super::lock_nodes::LockNodes;
use super::place::Place;
use super::store::Store;

/// The time for which a lock's node may stay when it is empty.
const SWEEP_PAUSE: Duration = Duration::from_millis(300);
/// The number of requests that one attempt to remove a claim makes at most, one after the other.
/// After their time the cleaner makes an attempt, whatever the task does that began the last one:
/// it may not be running any more.
const STEPS_OF_REMOVAL: u32 = 4;

/// One session of this client; see the [module](self).
pub(crate) struct Session {
    /// What sends. A session can do all that it can.
    link: Link,
    /// The number of the session among all of this client.
    pub(crate) number: u64,
    /// The claims to all that this client has in the store, or may have.
    pub(crate) claims: Claims,
    /// The state of the nodes of locks, as far as is known.
    pub(crate) lock_nodes: LockNodes,
    pub(crate) keepalive: BackgroundTask,
    pub(crate) cleaner: BackgroundTask,
    _alive: Arc<()>,
}

impl Session {
    pub(crate) fn new(store: Arc<dyn Store>, number: u64, client: &Client, alive: &Arc<()>) -> Self {
        Self {
            link: Link::new(store, client),
            number,
            claims: Claims::default(),
            lock_nodes: LockNodes::default(),
            keepalive: BackgroundTask::default(),
            cleaner: BackgroundTask::default(),
            _alive: Arc::clone(alive),
        }
    }

    /// Returns what a claim that begins now has of this session.
    pub(crate) fn begin(&self) -> Begin<'_> {
        Begin {
            session: self.number,
            base: &self.base,
            longest_lease: self.longest_lease(),
            now: self.now(),
            since: self.environment.wall_micros(),
        }
    }

    /// Makes sure that a lock's node does not stay when it is empty. Should this process die first,
    /// the server removes the node: it is a container.
    pub(crate) fn emptied(&self, place: &Place) {
        if self.lock_nodes.note_emptied(place, self.now().plus(SWEEP_PAUSE)) {
            self.claims.work.notify_one();
        }
    }

    /// Returns whether nothing is left to be removed.
    pub(crate) fn is_clean(&self) -> bool {
        self.lock_nodes.emptied() == 0 && self.claims.count().1 == 0
    }

    /// Returns when the cleaner takes over a removal that another task begins now.
    pub(crate) fn due(&self) -> Moment {
        self.now().plus(self.request_timeout() * STEPS_OF_REMOVAL)
    }
}

impl Deref for Session {
    type Target = Link;

    fn deref(&self) -> &Link {
        &self.link
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("number", &self.number)
            .field("claims", &self.claims)
            .finish_non_exhaustive()
    }
}
