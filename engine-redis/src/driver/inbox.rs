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
use ylock_core::engine::AcquisitionId;
use ylock_core::environment::{Environment, Moment};
use ylock_core::{Error, ErrorKind, Result, StoreToken};

use super::connection::Connection;
use super::errors;
use super::store::Store;
use crate::options::Address;
use crate::records::Told;
use crate::{identity, place};

/// How often a connection is asked whether it is still there, and how long it may take to say so.
const PROBE: Duration = Duration::from_secs(5);
/// After a connection could not be made: for so long nobody tries again.
const PAUSE: Duration = Duration::from_millis(100);

/// What there is to hear. What follows from it is decided elsewhere.
#[derive(Debug)]
pub(crate) enum Heard {
    /// An acquisition was let in to the lock at this place.
    LetIn { id: AcquisitionId, told: Told, place: String },
    /// Messages may have been missed.
    Gap,
}

/// See the [module](self).
pub(crate) struct Inbox {
    /// What the channels of this client are called.
    name: String,
    /// One channel for each part of the locks.
    by_part: bool,
    store: Arc<Store>,
    environment: Arc<dyn Environment>,
    hear: Box<dyn Fn(Heard) + Send + Sync>,
    lines: Mutex<Lines>,
    next_number: AtomicU64,
    is_closed: AtomicBool,
}

#[derive(Default)]
struct Lines {
    /// By their numbers.
    open: HashMap<u64, Line>,
    /// Over which one a channel is heard.
    heard: HashMap<String, u64>,
    /// Channels that a task is subscribing to.
    sought: HashSet<String>,
    failed: Option<Moment>,
}

/// A connection for messages. The driver takes what the server tells by itself, when a part goes elsewhere, for the answer to
/// something: so nothing but subscriptions goes over it, and the message itself is believed, not that it was an answer.
#[derive(Clone)]
struct Line {
    connection: MultiplexedConnection,
    server: Arc<Address>,
}

impl Inbox {
    /// An inbox of which nothing is heard yet.
    pub(crate) fn new(
        name: String,
        by_part: bool,
        store: &Arc<Store>,
        environment: &Arc<dyn Environment>,
        hear: Box<dyn Fn(Heard) + Send + Sync>,
    ) -> Arc<Self> {
        Arc::new(Self {
            name,
            by_part,
            store: Arc::clone(store),
            environment: Arc::clone(environment),
            hear,
            lines: Mutex::default(),
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

    /// Sees to it that messages about a lock are heard. Nobody waits for that: a server that hangs must not keep those from asking who
    /// wait for it, or for others.
    pub(crate) fn listen(self: &Arc<Self>, place: &str) {
        let channel = self.channel_of(place);
        if self.is_heard(&channel, place) || self.has_just_failed() {
            return;
        }
        let Some(search) = Search::begin(self, channel) else { return };
        let (inbox, place) = (Arc::clone(self), place.to_owned());
        self.environment.spawn(Box::pin(async move {
            let _search = search;
            match inbox.subscribe(&place).await {
                Ok(()) => (inbox.hear)(Heard::Gap),
                Err(error) => {
                    tracing::debug!(%error, "messages cannot be heard; waiters ask by themselves until they can");
                    inbox.lines().failed = Some(inbox.environment.now());
                }
            }
        }));
    }

    fn channel_of(&self, place: &str) -> String {
        format!("ylock:{}", self.channel(place))
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

    /// Returns when messages about a lock are heard.
    pub(crate) async fn subscribe(self: &Arc<Self>, place: &str) -> Result<()> {
        let channel = self.channel_of(place);
        let server = self.store.server_for(place)?;
        // One connection to each server: only one at a time makes it, the others wait for what comes of it.
        let _only_one = server.subscribing.lock().await;
        if self.is_heard(&channel, place) {
            return Ok(());
        }
        let (number, mut line) = self.line_to(&server).await?;
        let word = if self.by_part { "SSUBSCRIBE" } else { "SUBSCRIBE" };
        let answer: Result<(), _> = redis::cmd(word).arg(&channel).exec_async(&mut line.connection).await;
        if let Err(error) = answer {
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
        Err(Error::new(ErrorKind::Unavailable, "the server did not confirm the channel"))
    }

    /// The connection to a server, or a new one.
    async fn line_to(self: &Arc<Self>, server: &Arc<Connection>) -> Result<(u64, Line)> {
        let address = server.connected().await?;
        let known = |lines: &Lines| {
            let mut open = lines.open.iter();
            open.find(|(_, line)| *line.server == *address).map(|(number, line)| (*number, line.clone()))
        };
        if let Some(known) = known(&self.lines()) {
            return Ok(known);
        }
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let inbox = Arc::downgrade(self);
        let hear = move |push: PushInfo| -> Result<(), ()> {
            if let Some(inbox) = inbox.upgrade() {
                inbox.hear(number, &push);
            }
            Ok(())
        };
        let connection = server.listen(&address, hear).await?;
        let line = Line { connection, server: address };
        self.lines().open.insert(number, line.clone());
        let probed = Probed { inbox: Arc::downgrade(self), number };
        self.environment.spawn(Box::pin(probed.probe()));
        if self.is_closed.load(Ordering::Acquire) {
            self.end(number);
        }
        Ok((number, line))
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
                (self.hear)(Heard::Gap);
            }
            (PushKind::Disconnection, ..) => self.end(number),
            _ => {}
        }
    }

    /// Nothing comes over a connection any more.
    fn end(&self, number: u64) {
        let mut lines = self.lines();
        lines.heard.retain(|_, line| *line != number);
        let line = lines.open.remove(&number);
        drop(lines);
        if line.is_some() {
            (self.hear)(Heard::Gap);
        }
    }

    /// Ends all connections.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        *self.lines() = Lines::default();
    }

    fn pass_on(&self, text: &str) {
        match read(text) {
            Some(heard) => (self.hear)(heard),
            None => {
                tracing::warn!(text, "a message that nobody understands came to the channel of this client");
            }
        }
    }

    fn line(&self, number: u64) -> Option<Line> {
        self.lines().open.get(&number).cloned()
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A channel that a task is subscribing to. Dropped with the task, also where its runtime ends: then the next waiter begins anew.
struct Search {
    inbox: Arc<Inbox>,
    channel: String,
}

impl Search {
    fn begin(inbox: &Arc<Inbox>, channel: String) -> Option<Self> {
        let is_new = inbox.lines().sought.insert(channel.clone());
        is_new.then(|| Self { inbox: Arc::clone(inbox), channel })
    }
}

impl Drop for Search {
    fn drop(&mut self) {
        self.inbox.lines().sought.remove(&self.channel);
    }
}

/// A connection while it is asked whether it is still there: it can be dead without either side being told. It lives in the runtime in
/// which it was made, and so does this: where that ends, this is dropped, and the connection is known to be dead.
struct Probed {
    inbox: Weak<Inbox>,
    number: u64,
}

impl Probed {
    async fn probe(self) {
        loop {
            let Some(environment) = self.inbox.upgrade().map(|inbox| Arc::clone(&inbox.environment)) else {
                return;
            };
            environment.sleep(PROBE).await;
            let Some(line) = self.inbox.upgrade().and_then(|inbox| inbox.line(self.number)) else { return };
            let (mut connection, ping) = (line.connection, redis::cmd("PING"));
            let answers = tokio::select! {
                biased;
                answer = ping.exec_async(&mut connection) => answer.is_ok(),
                () = environment.sleep(PROBE) => false,
            };
            if !answers {
                return;
            }
        }
    }
}

impl Drop for Probed {
    fn drop(&mut self) {
        if let Some(inbox) = self.inbox.upgrade() {
            inbox.end(self.number);
        }
    }
}

/// `id token contended place`; the place may contain spaces.
fn read(text: &str) -> Option<Heard> {
    let mut words = text.splitn(4, ' ');
    let id = AcquisitionId::from_u128(identity::read(words.next()?)?);
    let token = StoreToken::new(words.next()?.parse().ok()?)?;
    let contended = words.next()? == "1";
    Some(Heard::LetIn { id, told: Told { token, contended }, place: words.next()?.to_owned() })
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("lines", &self.lines().open.len()).finish_non_exhaustive()
    }
}
