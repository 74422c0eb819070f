//! The receiver of the messages by which servers tell this client that a waiter was let in.
//!
//! It has one connection to each server that is to tell something, and one channel for all waiters of the client; in a cluster one for
//! each part of the locks. A message is a hint that saves a question: what counts is what the server has stored, and every waiter asks
//! for that from time to time. So a connection that broke is made again by the next waiter that asks.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use redis::{FromRedisValue, PushInfo, PushKind};
use ylock_core::connection::REST;
use ylock_core::engine::AcquisitionId;
use ylock_core::environment::{Environment, Moment};
use ylock_core::records::Notification;
use ylock_core::{Error, ErrorKind, Result, StoreToken};

use super::connection::Connection;
use super::errors;
use super::push_connection::{PROBE, Probed, PushConnection, SILENT};
use super::store::Store;
use crate::{identity, place};

/// An event that the subscriber reports. The engine decides what follows from it.
#[derive(Debug)]
pub(crate) enum SubscriberEvent {
    /// An acquisition was let in to the lock at this place.
    LetIn { id: AcquisitionId, notification: Notification, place: String },
    /// Messages may have been missed.
    Gap,
}

/// The subscriber of a client; see the [module](self).
pub(crate) struct Subscriber {
    /// The name of this client's channels.
    name: String,
    /// True if there is one channel for each part of the locks.
    by_part: bool,
    store: Arc<Store>,
    environment: Arc<dyn Environment>,
    hear: Box<dyn Fn(SubscriberEvent) + Send + Sync>,
    connections: Mutex<Connections>,
    next_number: AtomicU64,
    is_closed: AtomicBool,
}

#[derive(Default)]
struct Connections {
    /// The connections, by their numbers.
    open: BTreeMap<u64, PushConnection>,
    /// The number of the connection over which each channel is heard.
    heard: BTreeMap<String, u64>,
    /// Channels that a task is subscribing to, and since when.
    sought: BTreeMap<String, Moment>,
    failed: Option<Moment>,
}

impl Subscriber {
    /// Creates a subscriber that hears nothing yet.
    pub(crate) fn new(
        name: String,
        by_part: bool,
        store: &Arc<Store>,
        environment: &Arc<dyn Environment>,
        hear: Box<dyn Fn(SubscriberEvent) + Send + Sync>,
    ) -> Arc<Self> {
        Arc::new(Self {
            name,
            by_part,
            store: Arc::clone(store),
            environment: Arc::clone(environment),
            hear,
            connections: Mutex::default(),
            next_number: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
        })
    }

    /// Returns the name of the channel for messages about a lock, without the beginning that all channels share.
    pub(crate) fn channel(&self, place: &str) -> Cow<'_, str> {
        match place::part_of(place) {
            Some(part) if self.by_part => format!("{{{part}}}:{}", self.name).into(),
            _ => self.name.as_str().into(),
        }
    }

    /// Makes sure that messages about a lock are heard, in a task that no waiter waits for: a server that hangs must not keep waiters from
    /// asking for its locks, or for those of other servers.
    pub(crate) fn listen(self: &Arc<Self>, place: &str) {
        if self.hears(place) || self.has_just_failed() {
            return;
        }
        let channel = self.channel_of(place);
        let Some(search) = Search::begin(self, channel) else { return };
        let (subscriber, place) = (Arc::clone(self), place.to_owned());
        self.environment.spawn(Box::pin(async move {
            let _search = search;
            match subscriber.subscribe(&place).await {
                Ok(()) => (subscriber.hear)(SubscriberEvent::Gap),
                Err(error) => {
                    tracing::debug!(
                        error = format!("{error:#}"),
                        "messages cannot be heard; waiters ask by themselves until they can"
                    );
                    subscriber.connections.lock().failed = Some(subscriber.environment.now());
                }
            }
        }));
    }

    fn channel_of(&self, place: &str) -> String {
        ["ylock:", &self.channel(place)].concat()
    }

    /// Returns whether messages about a lock are heard now, as far as is known.
    pub(crate) fn hears(&self, place: &str) -> bool {
        self.is_heard(&self.channel_of(place), place)
    }

    /// Returns whether a channel is heard over a connection to the server that requests about the lock go to: over a connection to another
    /// server nothing would come.
    fn is_heard(&self, channel: &str, place: &str) -> bool {
        let connections = self.connections.lock();
        let push = connections.heard.get(channel).and_then(|number| connections.open.get(number));
        let Some(push) = push.filter(|push| push.is_alive(self.environment.now())) else { return false };
        let goes_to = self.store.server_for(place).ok().and_then(|server| server.address());
        goes_to.is_none_or(|address| *address == *push.server)
    }

    fn has_just_failed(&self) -> bool {
        self.connections.lock().failed.is_some_and(|failed| self.environment.now().since(failed) < REST)
    }

    /// Waits until messages about a lock are heard.
    pub(crate) async fn subscribe(self: &Arc<Self>, place: &str) -> Result<()> {
        let channel = self.channel_of(place);
        let server = self.store.server_for(place)?;
        // One connection to each server: only one task at a time makes it, the others wait for the result.
        let _only_one = tokio::select! {
            biased;
            lock = server.subscribing.lock() => Some(lock),
            // The task that holds this mutex may not be polled any more. If it is only slow there are two connections for a while.
            () = self.environment.sleep(PROBE) => None,
        };
        if self.is_heard(&channel, place) {
            return Ok(());
        }
        let (number, mut push) = self.connect_to(&server).await?;
        let word = if self.by_part { "SSUBSCRIBE" } else { "SUBSCRIBE" };
        if let Err(error) = server.subscribe(&mut push.connection, word, &channel).await {
            if error.redirect_node().is_some() {
                self.store.look_again();
            } else if errors::ends_connection(&error) {
                self.end(number);
            }
            return Err(errors::classify(error));
        }
        if self.is_heard(&channel, place) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Unavailable, "the server did not confirm the subscription"))
    }

    /// Returns the connection to a server, or makes a new one.
    async fn connect_to(self: &Arc<Self>, server: &Arc<Connection>) -> Result<(u64, PushConnection)> {
        let address = server.connected().await?;
        let known = |connections: &Connections| {
            let mut open = connections.open.iter();
            open.find(|(_, push)| *push.server == *address).map(|(number, push)| (*number, push.clone()))
        };
        let known = known(&self.connections.lock());
        if let Some((number, push)) = known {
            if push.is_alive(self.environment.now()) {
                return Ok((number, push));
            }
            self.end(number);
        }
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let subscriber = Arc::downgrade(self);
        let hear = move |push: PushInfo| -> Result<(), ()> {
            if let Some(subscriber) = subscriber.upgrade() {
                subscriber.hear(number, &push);
            }
            Ok(())
        };
        let connection = server.listen(&address, hear).await?;
        let push = PushConnection::new(connection, address, self.environment.now());
        self.connections.lock().open.insert(number, push.clone());
        let probed = Probed { subscriber: Arc::downgrade(self), number };
        self.environment.spawn_beside(Box::pin(probed.probe()));
        if self.is_closed.load(Ordering::Acquire) {
            self.end(number);
        }
        Ok((number, push))
    }

    /// Handles what comes over a connection.
    fn hear(self: &Arc<Self>, number: u64, push: &PushInfo) {
        // What comes over a connection that was given up, because no runtime polled it, is old.
        if self.connection(number).is_none() {
            return;
        }
        let text =
            |place: usize| push.data.get(place).and_then(|value| String::from_redis_value_ref(value).ok());
        match (&push.kind, text(0), text(1)) {
            (PushKind::Message | PushKind::SMessage, _, Some(message)) => self.pass_on(&message),
            (PushKind::Subscribe | PushKind::SSubscribe, Some(channel), _) => {
                self.connections.lock().heard.insert(channel, number);
            }
            // The part goes to another server.
            (PushKind::SUnsubscribe, Some(channel), _) => {
                // Unless the channel is heard from that server by now.
                self.connections.lock().heard.retain(|heard, push| *heard != channel || *push != number);
                self.store.look_again();
                (self.hear)(SubscriberEvent::Gap);
            }
            (PushKind::Disconnection, ..) => self.end(number),
            _ => {}
        }
    }

    /// Forgets a connection over which nothing comes any more.
    pub(super) fn end(&self, number: u64) {
        let mut connections = self.connections.lock();
        connections.heard.retain(|_, push| *push != number);
        let push = connections.open.remove(&number);
        drop(connections);
        if push.is_some() {
            (self.hear)(SubscriberEvent::Gap);
        }
    }

    /// Ends all connections.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        *self.connections.lock() = Connections::default();
    }

    fn pass_on(&self, text: &str) {
        match read(text) {
            Some(heard) => (self.hear)(heard),
            None => {
                tracing::warn!(text, "a message that cannot be read came to the channel of this client");
            }
        }
    }

    pub(super) fn connection(&self, number: u64) -> Option<PushConnection> {
        self.connections.lock().open.get(&number).cloned()
    }

    pub(super) fn environment(&self) -> Arc<dyn Environment> {
        Arc::clone(&self.environment)
    }
}

/// A channel that a task is subscribing to. Dropped with the task, also where its runtime ends: then the next waiter begins anew. It also
/// does when the subscription takes too long.
struct Search {
    subscriber: Arc<Subscriber>,
    channel: String,
    began: Moment,
}

impl Search {
    fn begin(subscriber: &Arc<Subscriber>, channel: String) -> Option<Self> {
        let (began, mut connections) = (subscriber.environment.now(), subscriber.connections.lock());
        if connections.sought.get(&channel).is_some_and(|since| began.since(*since) < SILENT) {
            return None;
        }
        connections.sought.insert(channel.clone(), began);
        Some(Self { subscriber: Arc::clone(subscriber), channel, began })
    }
}

impl Drop for Search {
    fn drop(&mut self) {
        let mut connections = self.subscriber.connections.lock();
        if connections.sought.get(&self.channel) == Some(&self.began) {
            connections.sought.remove(&self.channel);
        }
    }
}

/// Reads a message, `id token contended place`; the place may contain spaces.
fn read(text: &str) -> Option<SubscriberEvent> {
    let mut words = text.splitn(4, ' ');
    let id = AcquisitionId::from_u128(identity::read(words.next()?)?);
    let token = StoreToken::new(words.next()?.parse().ok()?)?;
    let contended = words.next()? == "1";
    Some(SubscriberEvent::LetIn {
        id,
        notification: Notification { token, contended },
        place: words.next()?.to_owned(),
    })
}

impl fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriber")
            .field("connections", &self.connections.lock().open.len())
            .finish_non_exhaustive()
    }
}
