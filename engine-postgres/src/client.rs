//! One client of the engine: what it has, what it calls the functions with, and what it hears.

use std::sync::{Arc, Weak};

use ylock_core::backoff::Backoff;
use ylock_core::engine::AcquisitionId;
use ylock_core::environment::{BackgroundTask, Environment, Moment};
use ylock_core::records::Records;
use ylock_core::server_clock::ServerClock;
use ylock_core::{Key, Result};

use crate::driver::{Heard, Listener, Store};
use crate::options::{Notify, PostgresOptions, Standby};
use crate::place;

/// What is done about a grant of which a message came and which no acquisition of this client waits for or has.
pub(crate) type Unwanted = fn(&Arc<Client>, Key, AcquisitionId);

/// The state of one client of the engine.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) store: Arc<Store>,
    pub(crate) environment: Arc<dyn Environment>,
    notify: Notify,
    /// The pauses of a waiter that asks by itself.
    pub(crate) backoff: Backoff,
    /// True if tokens grow from holder to holder, also when another server takes over; otherwise there are no tokens. Where the server does not promise that any more
    /// there are no grants.
    pub(crate) fencing: bool,
    pub(crate) records: Arc<Records>,
    pub(crate) listener: Arc<Listener>,
    pub(crate) clock: Arc<ServerClock<Store>>,
    pub(crate) sweeping: BackgroundTask,
}

impl Client {
    pub(crate) async fn new(
        store: Arc<Store>,
        options: &PostgresOptions,
        environment: &Arc<dyn Environment>,
        unwanted: Unwanted,
    ) -> Result<Arc<Self>> {
        let client = Arc::new_cyclic(|client: &Weak<Self>| {
            let client = Weak::clone(client);
            let hear = move |heard| {
                if let Some(client) = client.upgrade() {
                    client.hear(heard, unwanted);
                }
            };
            let gives_up = options.notify() == Notify::Auto;
            Self {
                listener: Listener::new(&store, environment, gives_up, Box::new(hear)),
                clock: ServerClock::new(&store, environment),
                store,
                environment: Arc::clone(environment),
                notify: options.notify(),
                backoff: options.backoff(),
                fencing: options.standby() == Standby::Synchronous,
                records: Arc::default(),
                sweeping: BackgroundTask::default(),
            }
        });
        client.clock.ask().await?;
        Ok(client)
    }

    pub(crate) fn now(&self) -> Moment {
        self.environment.now()
    }

    /// Returns whether waiters of this client are told, as far as is known.
    pub(crate) fn is_told(&self) -> bool {
        !matches!(self.notify, Notify::Off { .. }) && !self.listener.is_deaf()
    }

    /// Returns whether a message is no grant, and the server is asked once it has come. The server sends messages also about a commit for whose standby it has
    /// given up waiting: only the connection that has made the commit is warned. And where the server does not promise any more what is demanded the question ends in
    /// that error.
    pub(crate) fn asks_when_told(&self) -> bool {
        self.store.promises().map_or(true, |promises| promises.waits_for_standbys)
    }

    /// Returns the channel on which the server shall tell this client: none if the client asks by itself, or as long as it would not
    /// hear a message. A waiter with a channel that has no listener is passed over, and that may be again and again; for a waiter without a
    /// channel the server waits until its next question.
    pub(crate) fn channel(&self) -> Option<i64> {
        if self.is_told() { self.listener.channel() } else { None }
    }

    /// Handles what the listener has heard.
    fn hear(self: &Arc<Self>, heard: Heard, unwanted: Unwanted) {
        let Heard::LetIn { id, notification, key } = heard else { return self.records.wake_all() };
        if self.records.deliver(id, notification) {
            return;
        }
        if let Some(key) = place::read(&key) {
            unwanted(self, key, id);
        }
    }
}
