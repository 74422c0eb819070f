//! Layers as observers of a client, and the stream of events as a layer.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::{Acquisition, ClientEvent, ClientView, Layer, Outcome};
use crate::events::{EventBus, Observer};

/// Returns the observer that tells this layer, for as long as the layer is in use.
pub(crate) fn observer(layer: &Arc<dyn Layer>) -> Arc<dyn Observer> {
    Arc::new(Arc::downgrade(layer))
}

impl Observer for Weak<dyn Layer> {
    fn is_gone(&self) -> bool {
        self.strong_count() == 0
    }

    fn attached(&self, client: &ClientView) {
        if let Some(layer) = self.upgrade() {
            layer.attached(client);
        }
    }

    fn client_event(&self, client: &ClientView, event: &ClientEvent) {
        if let Some(layer) = self.upgrade() {
            layer.client_event(client, event);
        }
    }
}

/// The stream hears of acquisitions as a layer; the events of the client come to it as to an observer.
impl Layer for EventBus {
    fn acquired(&self, acquisition: &Acquisition, outcome: &Outcome, waited: Duration) {
        self.tell_outcome(acquisition, outcome, waited);
    }
}
