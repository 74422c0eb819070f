//! The observers, which hear what a client does by itself.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;

use super::{ClientEvent, ClientView};
use crate::foreign::guarded;

/// An observer hears what a client does by itself. It passes the events on to a layer or a stream, and does not keep that alive.
pub(crate) trait Observer: Send + Sync {
    /// Returns whether the layer or stream is gone.
    fn is_gone(&self) -> bool;

    /// Called when the observer is added to a client.
    fn attached(&self, client: &ClientView);

    /// Called when the client did or learnt something by itself.
    fn client_event(&self, client: &ClientView, event: &ClientEvent);
}

/// The observers that were added to any clone of a client and are still in use. Told without a lock: it would be one that all keys
/// share.
pub(crate) struct Observers {
    all: ArcSwap<Vec<Arc<dyn Observer>>>,
    /// True if there ever was one: an event that no observer hears is not even put together.
    any: AtomicBool,
}

impl Default for Observers {
    fn default() -> Self {
        Self { all: ArcSwap::default(), any: AtomicBool::new(false) }
    }
}

impl Observers {
    pub(crate) fn add(&self, observer: &Arc<dyn Observer>, client: &ClientView) {
        self.all.rcu(|all| {
            // Observers that are gone are forgotten here: a client lives for long, and may be given layers often.
            let alive = all.iter().filter(|observer| !observer.is_gone()).cloned();
            alive.chain([Arc::clone(observer)]).collect::<Vec<_>>()
        });
        self.any.store(true, Ordering::Release);
        guarded("a layer", || observer.attached(client));
    }

    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    pub(crate) fn tell(&self, client: &ClientView, event: &ClientEvent) {
        for observer in self.all.load().iter().rev() {
            guarded("a layer", || observer.client_event(client, event));
        }
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observers").field("all", &self.all.load().len()).finish()
    }
}
