//! The layers that hear what a client does by itself.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;

use super::{ClientEvent, ClientView};
use crate::layer::{Layer, guarded};

/// The layers that were added to any clone of a client and are still in use. Told without a lock: it would be one that all keys
/// share.
pub(crate) struct Observers {
    layers: ArcSwap<Vec<Weak<dyn Layer>>>,
    /// True if there ever was one: an event that no layer hears is not even put together.
    any: AtomicBool,
}

impl Default for Observers {
    fn default() -> Self {
        Self { layers: ArcSwap::default(), any: AtomicBool::new(false) }
    }
}

impl Observers {
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

    pub(crate) fn tell(&self, client: &ClientView, event: &ClientEvent) {
        for layer in self.layers.load().iter().rev().filter_map(Weak::upgrade) {
            guarded(|| layer.client_event(client, event));
        }
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observers").field("layers", &self.layers.load().len()).finish()
    }
}
