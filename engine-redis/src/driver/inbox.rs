//! Where the servers tell this client that somebody's turn has come.
//!
//! One connection to each server that is to tell something, and one channel for all waiters of the client; in a cluster one for each
//! part of the locks. A message is a hint that saves a question: what counts is what the server has stored, and every waiter asks
//! for it from time to time. So a connection that broke is made again by the next waiter that asks.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue, PushInfo, PushKind};
use tokio::sync::{Mutex as AsyncMutex, Notify};
use ylock_core::engine::AcquisitionId;
use ylock_core::environment::{Environment, Moment};
use ylock_core::{Error, ErrorKind, Result, StoreToken};

use super::errors;
use super::scripts::{self, Call};
use super::store::Store;
use crate::options::Address;
use crate::{identity, place};

/// How often a connection is asked whether it is still there, and how long it may take to say so.
const PROBE: Duration = Duration::from_secs(5);
/// After a connection could not be made: for so long nobody tries again.
const PAUSE: Duration = Duration::from_millis(100);

/// Somebody was let in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    pub(crate) token: StoreToken,
    pub(crate) contended: bool,
}

/// See the [module](self).
pub(crate) struct Inbox {
    /// What the channels of this client are called.
    name: String,
    /// One channel for each part of the locks.
    by_part: bool,
    store: Arc<Store>,
    environment: Arc<dyn Environment>,
    known: Mutex<Known>,
    lines: Mutex<Lines>,
    /// Only one makes a connection or subscribes; the others wait for what comes of it.
    subscribing: AsyncMutex<()>,
    next_number: AtomicU64,
    is_closed: AtomicBool,
}

/// The acquisitions of this client that a message may be about.
#[derive(Default)]
struct Known {
    waiting: HashMap<AcquisitionId, Arc<Waiter>>,
    /// From the grant until it is known to be given back. A waiter may learn of its grant by asking, and the message comes later.
    inside: HashSet<AcquisitionId>,
}

#[derive(Default)]
struct Lines {
    /// By their numbers.
    open: HashMap<u64, Line>,
    /// Over which one a channel is heard.
    heard: HashMap<String, u64>,
    failed: Option<Moment>,
}

/// A connection for messages. The driver takes what the server tells by itself, when a part goes elsewhere, for the answer to
/// something: so nothing but subscriptions goes over it, and the message itself is believed, not that it was an answer.
#[derive(Clone)]
struct Line {
    connection: MultiplexedConnection,
    server: Arc<Address>,
}

#[derive(Default)]
struct Waiter {
    told: Mutex<Option<Told>>,
    wake: Notify,
}

/// A waiter's place in the inbox; dropping it leaves.
pub(crate) struct Place {
    inbox: Arc<Inbox>,
    id: AcquisitionId,
    waiter: Arc<Waiter>,
}

impl Inbox {
    /// An inbox of which nothing is heard yet.
    pub(crate) fn new(
        name: String,
        by_part: bool,
        store: &Arc<Store>,
        environment: &Arc<dyn Environment>,
    ) -> Arc<Self> {
        Arc::new(Self {
            name,
            by_part,
            store: Arc::clone(store),
            environment: Arc::clone(environment),
            known: Mutex::default(),
            lines: Mutex::default(),
            subscribing: AsyncMutex::new(()),
            next_number: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
        })
    }

    /// What the server shall call for a lock: without the part that all channels have.
    pub(crate) fn channel(&self, place: &str) -> Cow<'_, str> {
        match place::part_of(place) {
            Some(part) if self.by_part => format!("{{{part}}}:{}", self.name).into(),
            _ => self.name.as_str().into(),
        }
    }

    /// Takes a place, or the one that was kept for this acquisition. To be called before the server hears of it: the message may
    /// come before the answer.
    pub(crate) fn place(self: &Arc<Self>, id: AcquisitionId) -> Place {
        let waiter = Arc::clone(self.known().waiting.entry(id).or_default());
        Place { inbox: Arc::clone(self), id, waiter }
    }

    /// Sees to it that messages about a lock are heard. Answers whether they were not until now: then one may have been missed.
    pub(crate) async fn listen(self: &Arc<Self>, place: &str) -> Result<bool> {
        let channel = format!("ylock:{}", self.channel(place));
        if self.is_heard(&channel, place) || self.has_just_failed() {
            return Ok(false);
        }
        let _only_one = self.subscribing.lock().await;
        if self.is_heard(&channel, place) {
            return Ok(true);
        }
        let subscribed = self.subscribe(&channel, place).await;
        if subscribed.is_err() {
            self.lines().failed = Some(self.environment.now());
        }
        subscribed.map(|()| true)
    }

    /// Over a connection to the server that requests about the lock go to: another one would not be told.
    fn is_heard(&self, channel: &str, place: &str) -> bool {
        let lines = self.lines();
        let Some(line) = lines.heard.get(channel).and_then(|number| lines.open.get(number)) else {
            return false;
        };
        let goes_to = self.store.server_for(place).ok().and_then(|server| server.address());
        goes_to.is_none_or(|address| *address == *line.server)
    }

    fn has_just_failed(&self) -> bool {
        self.lines().failed.is_some_and(|failed| self.environment.now().since(failed) < PAUSE)
    }

    async fn subscribe(self: &Arc<Self>, channel: &str, place: &str) -> Result<()> {
        let mut line = self.line_for(place).await?;
        let word = if self.by_part { "SSUBSCRIBE" } else { "SUBSCRIBE" };
        let answer: Result<(), _> = redis::cmd(word).arg(channel).exec_async(&mut line.connection).await;
        if let Err(error) = answer {
            if error.redirect_node().is_some() {
                self.store.look_again();
            }
            return Err(errors::classify(error));
        }
        if self.is_heard(channel, place) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Unavailable, "the server did not confirm the channel"))
    }

    /// The connection to the server that keeps a lock, or a new one.
    async fn line_for(self: &Arc<Self>, place: &str) -> Result<Line> {
        let server = self.store.server_for(place)?;
        if let Some(address) = server.address() {
            let lines = self.lines();
            if let Some(line) = lines.open.values().find(|line| *line.server == *address) {
                return Ok(line.clone());
            }
        }
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let inbox = Arc::downgrade(self);
        let hear = move |push: PushInfo| -> Result<(), ()> {
            if let Some(inbox) = inbox.upgrade() {
                inbox.hear(number, &push);
            }
            Ok(())
        };
        let (address, connection) = server.listen(hear).await?;
        let line = Line { connection, server: address };
        self.lines().open.insert(number, line.clone());
        self.environment.spawn(Box::pin(probe(Arc::downgrade(self), number)));
        if self.is_closed.load(Ordering::Acquire) {
            self.end(number);
        }
        Ok(line)
    }

    /// What comes over a connection.
    fn hear(self: &Arc<Self>, number: u64, push: &PushInfo) {
        let text =
            |place: usize| push.data.get(place).and_then(|value| String::from_redis_value_ref(value).ok());
        match (&push.kind, text(0), text(1)) {
            (PushKind::Message | PushKind::SMessage, _, Some(message)) => self.pass_on(&message),
            (PushKind::Subscribe | PushKind::SSubscribe, Some(channel), _) => {
                self.lines().heard.insert(channel, number);
            }
            // The part goes elsewhere.
            (PushKind::SUnsubscribe, Some(channel), _) => {
                // Unless it is heard from the other server by now.
                self.lines().heard.retain(|heard, line| *heard != channel || *line != number);
                self.store.look_again();
                self.wake_all();
            }
            (PushKind::Disconnection, ..) => {
                self.end(number);
                self.wake_all();
            }
            _ => {}
        }
    }

    fn end(&self, number: u64) {
        let mut lines = self.lines();
        lines.heard.retain(|_, line| *line != number);
        lines.open.remove(&number);
    }

    /// Ends all connections.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        *self.lines() = Lines::default();
    }

    fn pass_on(&self, text: &str) {
        let Some(message) = Message::read(text) else {
            return tracing::warn!(
                text,
                "a message that nobody understands came to the channel of this client"
            );
        };
        // A grant that nobody waits for was caused by a request that came late: left alone, it would keep others out for a lease.
        if let Some(Message { id, place, .. }) = self.deliver(message) {
            let (store, call) = (Arc::clone(&self.store), Call::at(&scripts::RELEASE, place).id(id).arg(0));
            self.environment.spawn(Box::pin(async move {
                if let Err(error) = store.call(call).await {
                    tracing::debug!(%error, "a grant that nobody waits for could not be given back");
                }
            }));
        }
    }

    /// Passes a message on. Answers it if nobody waits for it, and nobody has what it is about.
    fn deliver(&self, message: Message) -> Option<Message> {
        let known = self.known();
        if known.inside.contains(&message.id) {
            return None;
        }
        let waiter = known.waiting.get(&message.id).cloned();
        drop(known);
        let Some(waiter) = waiter else { return Some(message) };
        *waiter.told.lock().unwrap_or_else(PoisonError::into_inner) = Some(message.told);
        waiter.wake.notify_one();
        None
    }

    /// Messages may have been missed: everybody asks.
    fn wake_all(&self) {
        self.known().waiting.values().for_each(|waiter| waiter.wake.notify_one());
    }

    /// A grant was given back.
    pub(crate) fn forget(&self, id: AcquisitionId) {
        self.known().inside.remove(&id);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection can be dead without either side being told: asks it, until it is gone.
async fn probe(inbox: Weak<Inbox>, number: u64) {
    loop {
        let Some(environment) = inbox.upgrade().map(|inbox| Arc::clone(&inbox.environment)) else { return };
        environment.sleep(PROBE).await;
        let Some(line) = inbox.upgrade().and_then(|inbox| inbox.lines().open.get(&number).cloned()) else {
            return;
        };
        let (mut connection, ping) = (line.connection, redis::cmd("PING"));
        let answers = tokio::select! {
            biased;
            answer = ping.exec_async(&mut connection) => answer.is_ok(),
            () = environment.sleep(PROBE) => false,
        };
        if !answers && let Some(inbox) = inbox.upgrade() {
            inbox.end(number);
            inbox.wake_all();
        }
    }
}

impl Place {
    /// It was let in, however it learnt that. To be called while it still has the place: at no time may nobody know of it.
    pub(crate) fn enter(&self) {
        self.inbox.known().inside.insert(self.id);
    }

    /// Waits until there is something new: a grant, or a reason to ask.
    pub(crate) async fn news(&self) -> Option<Told> {
        self.waiter.wake.notified().await;
        self.waiter.told.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.inbox.known().waiting.remove(&self.id);
    }
}

/// One message.
struct Message {
    id: AcquisitionId,
    told: Told,
    place: String,
}

impl Message {
    /// `id token contended place`; the place may contain spaces.
    fn read(text: &str) -> Option<Self> {
        let mut words = text.splitn(4, ' ');
        let id = AcquisitionId::from_u128(identity::read(words.next()?)?);
        let token = StoreToken::new(words.next()?.parse().ok()?)?;
        let contended = words.next()? == "1";
        Some(Self { id, told: Told { token, contended }, place: words.next()?.to_owned() })
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("waiters", &self.known().waiting.len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("id", &self.id).finish_non_exhaustive()
    }
}
