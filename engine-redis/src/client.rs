//! One client of the engine: what it has, what it calls the scripts with, and what it hears.

use std::borrow::Cow;
use std::sync::{Arc, Weak};

use ylock_core::engine::AcquisitionId;
use ylock_core::environment::{Environment, Moment};
use ylock_core::records::Records;
use ylock_core::server_clock::ServerClock;
use ylock_core::{Key, Result};

use crate::driver::{Call, Store, Subscriber, SubscriberEvent, Surroundings, scripts};
use crate::options::{Notify, RedisOptions, Topology};
use crate::words::NONE;
use crate::{place, words};

/// What is done about a grant, by place and acquisition, of which a message came and which no acquisition of this client waits for or has.
pub(crate) type Unwanted = fn(&Arc<Client>, String, AcquisitionId);

/// The state of one client of the engine.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) store: Arc<Store>,
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) notify: Notify,
    pub(crate) min_replicas: u32,
    /// Whether it is accepted that servers throw away locks, in the word of the scripts.
    pub(crate) eviction: &'static str,
    /// True if tokens grow from holder to holder, also when another server takes over; otherwise there are no tokens.
    pub(crate) fencing: bool,
    pub(crate) records: Arc<Records>,
    /// The beginning of the names of all locks.
    prefix: String,
    pub(crate) subscriber: Arc<Subscriber>,
    pub(crate) clock: Arc<ServerClock<Store>>,
}

impl Client {
    /// Connects to the servers. The options have been checked.
    pub(crate) async fn connect(
        options: &RedisOptions,
        fencing: bool,
        unwanted: Unwanted,
        surroundings: &Surroundings,
    ) -> Result<Arc<Self>> {
        let environment = Arc::clone(&surroundings.environment);
        let store = Arc::new(Store::open(options, surroundings).await?);
        let in_a_cluster = *options.topology() == Topology::Cluster;
        // Short: with the owner beside it, it must fit into 64 bytes, the longest value that Redis keeps in the compact form of a hash.
        let name = format!("{:016x}", environment.random());
        let client = Arc::new_cyclic(|client: &Weak<Self>| {
            let client = Weak::clone(client);
            let hear = move |heard| {
                if let Some(client) = client.upgrade() {
                    client.hear(heard, unwanted);
                }
            };
            Self {
                subscriber: Subscriber::new(name, in_a_cluster, &store, &environment, Box::new(hear)),
                clock: ServerClock::new(&store, &environment),
                store,
                environment,
                notify: options.notify(),
                min_replicas: options.min_replicas(),
                eviction: words::eviction_word(options.eviction()),
                fencing,
                records: Arc::default(),
                prefix: options.prefix().to_owned(),
            }
        });
        // In a cluster there is a channel for each part of the locks, and which of these are needed is known only later.
        if options.notify() == Notify::On && !in_a_cluster {
            client.subscriber.subscribe("").await?;
        }
        client.clock.ask().await?;
        Ok(client)
    }

    pub(crate) fn now(&self) -> Moment {
        self.environment.now()
    }

    /// Creates a call of a script for a lock.
    pub(crate) fn call(&self, script: &'static scripts::Script, key: &Key) -> Call {
        Call::at(script, self.place(key))
    }

    /// Returns the key of a lock's hash.
    pub(crate) fn place(&self, key: &Key) -> String {
        place::of(&self.prefix, key)
    }

    /// Returns the beginning of the names of all locks.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns the key of the hash of a job's last run.
    pub(crate) fn place_of_run(&self, key: &Key) -> String {
        place::of_run(&self.prefix, key)
    }

    /// Returns the channel on which the server shall tell this client: none if the client asks by itself, or as long as it would not
    /// hear a message. A waiter with a channel that cannot be told is passed over, and that may be again and again; for a waiter without a
    /// channel the server waits until its next question.
    pub(crate) fn channel(&self, place: &str) -> Cow<'_, str> {
        let hears = self.notify == Notify::On && self.subscriber.hears(place);
        if hears { self.subscriber.channel(place) } else { NONE.into() }
    }

    /// Makes sure that messages about a lock are heard. Waiters are woken when they are, and ask: their turn may have come before.
    pub(crate) fn listen(&self, key: &Key) {
        self.subscriber.listen(&self.place(key));
    }

    /// Handles an event of the subscriber.
    fn hear(self: &Arc<Self>, heard: SubscriberEvent, unwanted: Unwanted) {
        let SubscriberEvent::LetIn { id, notification, place } = heard else {
            return self.records.wake_all();
        };
        if !self.records.deliver(id, notification) {
            unwanted(self, place, id);
        }
    }
}
