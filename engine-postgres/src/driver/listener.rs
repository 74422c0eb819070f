//! The receiver of the messages by which the server tells this client that a waiter was let in.
//!
//! It has a connection of its own, once a waiter waits, and a channel with a random number that belongs to this one connection. The connection holds the
//! advisory lock of that number: so functions know whether there is a listener. A message is a hint that saves a question: what counts is what the
//! server has stored, and every waiter asks for that from time to time. So a connection that broke is made again by the next waiter that asks.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client};
use ylock_core::connection::REST;
use ylock_core::engine::AcquisitionId;
use ylock_core::environment::{Environment, Moment};
use ylock_core::{Error, Result, StoreToken};

use super::connector::{self, Messages, To};
use super::errors::{self, unavailable};
use super::store::Store;
use ylock_core::records::Notification;

/// The pause between two probes of the connection, and the longest time that the answer to one may take.
const PROBE: Duration = Duration::from_secs(5);
/// The time without a sign of life after which the connection, or an attempt to make one, is taken to live in a runtime that is not polled.
const SILENT: Duration = Duration::from_secs(15);
/// The time for which the connection stays when no waiter wants it: each `NOTIFY` wakes all connections of the database that listen.
const IDLE: Duration = Duration::from_secs(60);
/// The message by which a client finds out whether it hears.
const TRY: &str = "try";

/// What the listener heard. The engine decides what follows from it.
#[derive(Debug)]
pub(crate) enum Heard {
    /// An acquisition was let in to the lock of this key, as the server has it.
    LetIn { id: AcquisitionId, notification: Notification, key: Vec<u8> },
    /// Messages may have been missed.
    Gap,
}

/// The listener of a client; see the [module](self).
pub(crate) struct Listener {
    store: Arc<Store>,
    environment: Arc<dyn Environment>,
    hear: Box<dyn Fn(Heard) + Send + Sync>,
    /// Whether the client asks for good once it has found that it hears nothing.
    gives_up: bool,
    state: Mutex<State>,
    /// True once it has found that it hears nothing.
    is_deaf: AtomicBool,
    /// True once a message has come.
    has_heard: AtomicBool,
    is_closed: AtomicBool,
}

#[derive(Default)]
struct State {
    open: Option<Open>,
    /// Since when a task has been trying to make the connection.
    sought: Option<Moment>,
    failed: Option<Moment>,
    /// When a waiter wanted it last.
    wanted: Moment,
}

/// The connection that listens.
struct Open {
    channel: i64,
    /// Dropped with this value: that ends the connection, and with it its advisory lock.
    client: Arc<Client>,
    /// The moment of the last sign of life, in nanoseconds.
    answered: Arc<AtomicU64>,
}

impl Listener {
    pub(crate) fn new(
        store: &Arc<Store>,
        environment: &Arc<dyn Environment>,
        gives_up: bool,
        hear: Box<dyn Fn(Heard) + Send + Sync>,
    ) -> Arc<Self> {
        Arc::new(Self {
            store: Arc::clone(store),
            environment: Arc::clone(environment),
            hear,
            gives_up,
            state: Mutex::default(),
            is_deaf: AtomicBool::new(false),
            has_heard: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
        })
    }

    /// Returns the channel of the connection that listens, while it does, as far as is known.
    pub(crate) fn channel(&self) -> Option<i64> {
        let now = self.environment.now();
        self.state.lock().open.as_ref().filter(|open| open.is_alive(now)).map(|open| open.channel)
    }

    /// Returns whether this client has found that it hears nothing, and asks from then on.
    pub(crate) fn is_deaf(&self) -> bool {
        self.is_deaf.load(Ordering::Relaxed)
    }

    /// Makes sure that messages are heard, in a task that no waiter waits for.
    pub(crate) fn listen(self: &Arc<Self>) {
        self.state.lock().wanted = self.environment.now();
        if self.channel().is_some() || self.is_deaf() {
            return;
        }
        let Some(search) = Search::begin(self) else { return };
        self.environment.spawn(Box::pin(async move {
            let listener = Arc::clone(&search.listener);
            match listener.connect().await {
                Ok(()) => (listener.hear)(Heard::Gap),
                Err(error) => {
                    tracing::debug!(
                        error = format!("{error:#}"),
                        "messages cannot be heard; waiters ask by themselves until they can"
                    );
                    listener.state.lock().failed = Some(listener.environment.now());
                }
            }
        }));
    }

    async fn connect(self: &Arc<Self>) -> Result<()> {
        let connector = &self.store.connector;
        let connector::Opened { client, messages, .. } = connector.open(To::Direct).await?;
        // Positive, and never used again.
        let channel = (self.environment.random() >> 1).cast_signed();
        let (tried, was_heard) = oneshot::channel();
        let answered = Arc::new(AtomicU64::new(self.environment.now().as_nanos()));
        let open = Opened { listener: Arc::downgrade(self), channel };
        self.environment.spawn_beside(Box::pin(open.receive(messages, tried)));
        let end = self.environment.now().plus(connector.connect_timeout);
        let listen = format!("listen \"ylock_{channel:x}\"");
        let listening = async { client.batch_execute(&listen).await.map_err(errors::classify) };
        connector.until(end, listening).await?;
        self.hears(channel, was_heard).await?;
        // Only now: through a pooler the lock would stay with one of its connections.
        let holding = async {
            let lock = "select pg_try_advisory_lock($1)";
            client.query_typed(lock, &[(&channel, Type::INT8)]).await.map_err(errors::classify)
        };
        let held = connector.until(end, holding).await?;
        if !held.first().is_some_and(|row| row.get::<_, bool>(0)) {
            return Err(unavailable("the number of this connection is in use"));
        }
        let client = Arc::new(client);
        let probed = Probed { listener: Arc::downgrade(self), channel };
        self.state.lock().open = Some(Open { channel, client, answered });
        self.environment.spawn_beside(Box::pin(probed.probe()));
        if self.is_closed.load(Ordering::Acquire) {
            self.end(channel);
        }
        Ok(())
    }

    /// Tries whether a message arrives that is sent over the connection for requests.
    async fn hears(&self, channel: i64, was_heard: oneshot::Receiver<()>) -> Result<()> {
        let name = format!("ylock_{channel:x}");
        let values: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 2] =
            [(&name, Type::TEXT), (&TRY, Type::TEXT)];
        self.store.ask("select pg_notify($1, $2)", &values).await?;
        tokio::select! {
            biased;
            heard = was_heard => {
                heard.map_err(|_| unavailable("the connection that listens has ended"))?;
                self.has_heard.store(true, Ordering::Relaxed);
                Ok(())
            }
            () = self.environment.sleep(self.store.connector.request_timeout) => Err(self.deaf()),
        }
    }

    fn deaf(&self) -> Error {
        // What has come once comes again: then the server, or this process, was slow.
        if self.gives_up
            && !self.has_heard.load(Ordering::Relaxed)
            && !self.is_deaf.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(
                "NOTIFY does not arrive, as through a pooler in transaction mode: waiters ask by themselves. Name the server's own address by listen=host:port, \
                 or say notify=off"
            );
        }
        unavailable("messages do not arrive")
    }

    /// Forgets a connection over which nothing comes any more.
    fn end(&self, channel: i64) {
        let ended = self.state.lock().open.take_if(|open| open.channel == channel);
        if ended.is_some() {
            (self.hear)(Heard::Gap);
        }
    }

    /// Ends the connection.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.state.lock().open = None;
    }

    fn pass_on(&self, text: &str) {
        match read(text) {
            Some(heard) => (self.hear)(heard),
            None => {
                tracing::warn!(text, "a message that cannot be read came to the channel of this client");
            }
        }
    }
}

impl Open {
    fn is_alive(&self, now: Moment) -> bool {
        !self.client.is_closed()
            && now.since(Moment::from_nanos(self.answered.load(Ordering::Relaxed))) < SILENT
    }
}

/// A connection while its messages are received. It lives in the runtime in which it was made, and so does this value: when that runtime ends, this
/// value is dropped, and the connection is known to be dead.
struct Opened {
    listener: std::sync::Weak<Listener>,
    channel: i64,
}

impl Opened {
    async fn receive(self, mut messages: Messages, tried: oneshot::Sender<()>) {
        let mut tried = Some(tried);
        while let Some(Ok(message)) = messages.next().await {
            let AsyncMessage::Notification(message) = message else { continue };
            if message.payload() == TRY {
                // The other side may have given up.
                let _ = tried.take().map(|tried| tried.send(()));
                continue;
            }
            let Some(listener) = self.listener.upgrade() else { return };
            // What comes over a connection that was given up, because no runtime polled it, is old.
            if listener.state.lock().open.as_ref().is_some_and(|open| open.channel == self.channel) {
                listener.pass_on(message.payload());
            }
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if let Some(listener) = self.listener.upgrade() {
            listener.end(self.channel);
        }
    }
}

/// A connection while it is probed: it can be dead without either side being told.
struct Probed {
    listener: std::sync::Weak<Listener>,
    channel: i64,
}

impl Probed {
    async fn probe(self) {
        loop {
            let Some(environment) = self.listener.upgrade().map(|listener| Arc::clone(&listener.environment))
            else {
                return;
            };
            environment.sleep(PROBE).await;
            let Some(listener) = self.listener.upgrade() else { return };
            let open = {
                let state = listener.state.lock();
                let is_idle = environment.now().since(state.wanted) > IDLE;
                let open = state.open.as_ref().filter(|open| open.channel == self.channel && !is_idle);
                open.map(|open| (Arc::clone(&open.client), Arc::clone(&open.answered)))
            };
            drop(listener);
            let Some((client, answered)) = open else { return };
            let answers = tokio::select! {
                biased;
                answer = client.check_connection() => answer.is_ok(),
                () = environment.sleep(PROBE) => false,
            };
            if !answers {
                return;
            }
            answered.store(environment.now().as_nanos(), Ordering::Relaxed);
        }
    }
}

impl Drop for Probed {
    fn drop(&mut self) {
        if let Some(listener) = self.listener.upgrade() {
            listener.end(self.channel);
        }
    }
}

/// A search for a connection. Dropped with the task, also where its runtime ends: then the next waiter begins anew. It also does when the search takes
/// too long.
struct Search {
    listener: Arc<Listener>,
    began: Moment,
}

impl Search {
    fn begin(listener: &Arc<Listener>) -> Option<Self> {
        let (began, mut state) = (listener.environment.now(), listener.state.lock());
        let is_soon = |since: Option<Moment>, time| since.is_some_and(|since| began.since(since) < time);
        if is_soon(state.sought, SILENT)
            || is_soon(state.failed, REST)
            || listener.is_closed.load(Ordering::Acquire)
        {
            return None;
        }
        state.sought = Some(began);
        Some(Self { listener: Arc::clone(listener), began })
    }
}

impl Drop for Search {
    fn drop(&mut self) {
        self.listener.state.lock().sought.take_if(|since| *since == self.began);
    }
}

/// Reads a message, `id token contended key`; the key in hexadecimal digits.
fn read(text: &str) -> Option<Heard> {
    let mut words = text.split(' ');
    let id = uuid::Uuid::parse_str(words.next()?).ok()?;
    let token = StoreToken::new(words.next()?.parse().ok()?)?;
    let contended = words.next()? == "1";
    let hex = words.next()?.as_bytes();
    let digit = |letter: u8| char::from(letter).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let bytes = hex.chunks(2).map(|pair| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    });
    Some(Heard::LetIn {
        id: AcquisitionId::from_u128(id.as_u128()),
        notification: Notification { token, contended },
        key: bytes.collect::<Option<_>>()?,
    })
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener")
            .field("is_open", &self.state.lock().open.is_some())
            .field("is_deaf", &self.is_deaf())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read() {
        let text = "00000000-0000-0000-0000-00000000000a 17 1 61ff62";
        let Some(Heard::LetIn { id, notification, key }) = read(text) else { panic!() };
        assert_eq!((id.as_u128(), notification.token.get(), notification.contended), (10, 17, true));
        assert_eq!(key, b"a\xffb");
        for wrong in [
            "",
            "x",
            "00000000-0000-0000-0000-00000000000a 17 1",
            "00000000-0000-0000-0000-00000000000a 17 1 6",
        ] {
            assert!(read(wrong).is_none(), "{wrong}");
        }
    }
}
