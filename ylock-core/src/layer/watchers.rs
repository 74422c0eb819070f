//! The layers that hear what a client does by itself.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;

use super::stack::guarded;
use super::{ClientView, Happened, Layer};

/// The layers that were added to any clone of a client and are still in use. Told without a lock: it would be one that all keys
/// share.
pub(crate) struct Watchers {
    layers: ArcSwap<Vec<Weak<dyn Layer>>>,
    /// True if there ever was one: an event that no layer hears is not even put together.
    any: AtomicBool,
}

impl Default for Watchers {
    fn default() -> Self {
        Self { layers: ArcSwap::default(), any: AtomicBool::new(false) }
    }
}

impl Watchers {
    pub(crate) fn add(&self, layer: &Arc<dyn Layer>, client: &ClientView) {
        self.layers.rcu(|layers| {
            // Layers that are gone are forgotten here: a client lives for long, and may be given layers often.
            let alive = layers.iter().filter(|layer| layer.strong_count() > 0).cloned();
            alive.chain([Arc::downgrade(layer)]).collect::<Vec<_>>()
        });
        self.any.store(true, Ordering::Release);
        guarded(|| layer.attached(client));
    }

    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    pub(crate) fn tell(&self, client: &ClientView, happened: &Happened) {
        for layer in self.layers.load().iter().rev().filter_map(Weak::upgrade) {
            guarded(|| layer.happened(client, happened));
        }
    }
}

impl fmt::Debug for Watchers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watchers").field("layers", &self.layers.load().len()).finish()
    }
}
