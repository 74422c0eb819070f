//! Where the server tells this client that somebody's turn has come.
//!
//! One connection and one channel per client, for all of its waiters. A message is a hint that saves a question: what counts is
//! what the server has stored, and every waiter asks for it from time to time.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use redis::aio::{PubSubSink, PubSubStream};
use tokio::sync::Notify;
use ylock_core::StoreToken;
use ylock_core::engine::AcquisitionId;
use ylock_core::environment::Environment;

use super::connection::Connection;
use super::errors;
use super::scripts::{self, Call};

/// How often a silent connection is asked whether it is still there, and how long it may take to say so.
const PROBE: Duration = Duration::from_secs(5);
/// Pauses before connecting again: doubled from the first to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Somebody was let in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    pub(crate) token: StoreToken,
    pub(crate) contended: bool,
}

/// See the [module](self).
pub(crate) struct Inbox {
    channel: String,
    waiters: Mutex<HashMap<AcquisitionId, Arc<Waiter>>>,
    is_closed: AtomicBool,
    closing: Notify,
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
    /// An inbox to which nobody listens yet.
    pub(crate) fn new(channel: String) -> Arc<Self> {
        let (waiters, is_closed, closing) = (Mutex::default(), AtomicBool::new(false), Notify::new());
        Arc::new(Self { channel, waiters, is_closed, closing })
    }

    /// Listens to the channel, from now until the inbox is closed.
    pub(crate) async fn open(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        environment: &Arc<dyn Environment>,
    ) -> ylock_core::Result<()> {
        let listener = Listener {
            inbox: Arc::clone(self),
            connection: Arc::clone(connection),
            environment: Arc::clone(environment),
        };
        let first = listener.subscribe().await?;
        environment.spawn(Box::pin(listener.listen(first)));
        Ok(())
    }

    /// Takes a place, or the one that was kept for this acquisition. To be called before the server hears of it: the message may
    /// come before the answer.
    pub(crate) fn place(self: &Arc<Self>, id: AcquisitionId) -> Place {
        let waiter = Arc::clone(self.lock().entry(id).or_default());
        Place { inbox: Arc::clone(self), id, waiter }
    }

    /// Ends the connection.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.closing.notify_one();
    }

    /// Passes a message on. Answers it if nobody waits for it.
    fn deliver(&self, message: Message) -> Option<Message> {
        let waiter = self.lock().get(&message.id).cloned();
        let Some(waiter) = waiter else { return Some(message) };
        *waiter.told.lock().unwrap_or_else(PoisonError::into_inner) = Some(message.told);
        waiter.wake.notify_one();
        None
    }

    /// Messages may have been missed: everybody asks.
    fn wake_all(&self) {
        self.lock().values().for_each(|waiter| waiter.wake.notify_one());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<AcquisitionId, Arc<Waiter>>> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Waits until there is something new: a grant, or a reason to ask.
    pub(crate) async fn news(&self) -> Option<Told> {
        self.waiter.wake.notified().await;
        self.waiter.told.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.inbox.lock().remove(&self.id);
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
        let id = AcquisitionId::from_u128(u128::from_str_radix(words.next()?, 16).ok()?);
        let token = StoreToken::new(words.next()?.parse().ok()?)?;
        let contended = words.next()? == "1";
        Some(Self { id, told: Told { token, contended }, place: words.next()?.to_owned() })
    }
}

/// The task behind an inbox.
struct Listener {
    inbox: Arc<Inbox>,
    connection: Arc<Connection>,
    environment: Arc<dyn Environment>,
}

impl Listener {
    /// Hears, and connects again and again, until the inbox is closed.
    async fn listen(self, (sink, stream): (PubSubSink, PubSubStream)) {
        self.hear(sink, stream).await;
        let mut pause = FIRST_PAUSE;
        while !self.inbox.is_closed.load(Ordering::Acquire) {
            match self.subscribe().await {
                Ok((sink, stream)) => {
                    pause = FIRST_PAUSE;
                    self.inbox.wake_all();
                    self.hear(sink, stream).await;
                }
                Err(error) => {
                    tracing::debug!(%error, "the channel for messages cannot be opened; it is tried again");
                }
            }
            self.environment.sleep(self.environment.jitter(pause)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn subscribe(&self) -> ylock_core::Result<(PubSubSink, PubSubStream)> {
        let (mut sink, stream) = self.connection.for_messages().await?.split();
        sink.subscribe(&self.inbox.channel).await.map_err(errors::classify)?;
        Ok((sink, stream))
    }

    /// Hears until the connection breaks or the inbox is closed.
    async fn hear(&self, mut sink: PubSubSink, mut stream: PubSubStream) {
        loop {
            tokio::select! {
                biased;
                () = self.inbox.closing.notified() => return,
                message = stream.next() => match message.and_then(|message| message.get_payload::<String>().ok()) {
                    Some(text) => self.pass_on(&text),
                    None => return,
                },
                () = self.environment.sleep(PROBE) => {
                    // A connection can be dead without either side being told.
                    if !self.answers(&mut sink).await {
                        return;
                    }
                }
            }
        }
    }

    async fn answers(&self, sink: &mut PubSubSink) -> bool {
        tokio::select! {
            biased;
            answer = sink.ping::<redis::Value>() => answer.is_ok(),
            () = self.environment.sleep(PROBE) => false,
        }
    }

    fn pass_on(&self, text: &str) {
        let Some(message) = Message::read(text) else {
            return tracing::warn!(
                text,
                "a message that nobody understands came to the channel of this client"
            );
        };
        // A grant that nobody waits for was caused by a request that came late: left alone, it would keep others out for a lease.
        if let Some(Message { id, place, .. }) = self.inbox.deliver(message) {
            let (connection, call) =
                (Arc::clone(&self.connection), Call::at(&scripts::RELEASE, place).id(id).arg(0));
            self.environment.spawn(Box::pin(async move {
                if let Err(error) = connection.call(call).await {
                    tracing::debug!(%error, "a grant that nobody waits for could not be given back");
                }
            }));
        }
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("waiters", &self.lock().len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("id", &self.id).finish_non_exhaustive()
    }
}
