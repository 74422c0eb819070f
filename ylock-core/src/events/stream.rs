//! The events of a client, as a stream for programs.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::broadcast::{Receiver, Sender};

use super::{Acquisition, ClientEvent, ClientView, Observer, Outcome};
use crate::foreign::{Shield, shielded_by};

/// One thing that a client did.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// An acquisition has ended.
    Acquired {
        /// The acquisition.
        acquisition: Acquisition,
        /// The outcome of the acquisition.
        outcome: Outcome,
        /// The time after which it ended.
        waited: Duration,
    },
    /// The program read too slowly, and this many events were dropped before the next one.
    Dropped(u64),
    /// The client did or learnt something by itself. Requests to the store are left out: there are too many.
    ClientEvent(ClientEvent),
}

/// The events of a client from the moment of [`Ylock::events`](crate::Ylock::events) on.
///
/// The stream keeps a bounded number of events. It never slows a lock down: if it is read too slowly the oldest are dropped, and
/// [`Event::Dropped`] says how many.
#[derive(Debug)]
pub struct Events {
    receiver: Receiver<Event>,
    /// One sender wakes the programs of all streams in a row.
    shield: Arc<Shield>,
}

impl Events {
    /// The number of events that are kept for a program that reads slowly.
    pub const KEPT: usize = 4096;

    /// Waits for the next event and returns it; `None` when the client is gone.
    ///
    /// # Cancel safety
    /// No event is lost when the future is dropped.
    pub async fn next(&mut self) -> Option<Event> {
        match shielded_by(&self.shield, self.receiver.recv()).await {
            Ok(event) => Some(event),
            Err(RecvError::Lagged(count)) => Some(Event::Dropped(count)),
            Err(RecvError::Closed) => None,
        }
    }

    /// Returns the next event if there is one now.
    pub fn try_next(&mut self) -> Option<Event> {
        match self.receiver.try_recv() {
            Ok(event) => Some(event),
            Err(TryRecvError::Lagged(count)) => Some(Event::Dropped(count)),
            Err(TryRecvError::Empty | TryRecvError::Closed) => None,
        }
    }
}

/// The sender of the stream.
#[derive(Debug)]
pub(crate) struct EventBus(Sender<Event>);

impl EventBus {
    pub(crate) fn new() -> Self {
        Self(Sender::new(Events::KEPT))
    }

    pub(crate) fn events(&self) -> Events {
        Events { receiver: self.0.subscribe(), shield: Arc::default() }
    }

    /// Returns whether a stream is open: otherwise there is nothing to copy.
    pub(crate) fn is_heard(&self) -> bool {
        self.0.receiver_count() > 0
    }

    /// Sends the end of an acquisition.
    pub(crate) fn tell_outcome(&self, acquisition: &Acquisition, outcome: &Outcome, waited: Duration) {
        let (acquisition, outcome) = (acquisition.clone(), outcome.clone());
        self.send(|| Event::Acquired { acquisition, outcome, waited });
    }

    fn send(&self, event: impl FnOnce() -> Event) {
        if self.is_heard() {
            // Fails only if the last stream has just been dropped.
            drop(self.0.send(event()));
        }
    }
}

impl Observer for Weak<EventBus> {
    fn is_gone(&self) -> bool {
        self.strong_count() == 0
    }

    fn attached(&self, _client: &ClientView) {}

    fn client_event(&self, _client: &ClientView, event: &ClientEvent) {
        if let (Some(bus), false) = (self.upgrade(), matches!(event, ClientEvent::Requested { .. })) {
            bus.send(|| Event::ClientEvent(event.clone()));
        }
    }
}
