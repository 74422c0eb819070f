//! A connection for messages, and whether it still gives a sign of life.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use ylock_core::environment::Moment;
use ylock_core::url::Address;

use super::subscriber::Subscriber;

/// The pause between two probes of a connection, and the longest time that the answer to one may take.
pub(super) const PROBE: Duration = Duration::from_secs(5);
/// The time without a sign of life after which a connection, or an attempt to make one, is taken to live in a runtime that is not polled:
/// a connection is probed more often, and an attempt takes no longer with the default connect timeout.
pub(super) const SILENT: Duration = Duration::from_secs(15);

/// A connection for messages; see the [module](self). When a part goes to another server, the driver takes what the server tells by itself
/// for the answer to a request: so nothing but subscriptions and probes goes over this connection, and the message itself is believed, not
/// that it was an answer.
#[derive(Clone)]
pub(super) struct PushConnection {
    pub(super) connection: MultiplexedConnection,
    pub(super) server: Arc<Address>,
    /// The moment of the last answer, in nanoseconds.
    answered: Arc<AtomicU64>,
}

impl PushConnection {
    pub(super) fn new(connection: MultiplexedConnection, server: Arc<Address>, now: Moment) -> Self {
        Self { connection, server, answered: Arc::new(AtomicU64::new(now.as_nanos())) }
    }

    /// Returns whether messages that come over this connection are heard, as far as is known.
    pub(super) fn is_alive(&self, now: Moment) -> bool {
        now.since(Moment::from_nanos(self.answered.load(Ordering::Relaxed))) < SILENT
    }
}

/// A connection while it is probed: it can be dead without either side being told. It lives in the runtime in which it was made, and so
/// does this value: when that runtime ends, this value is dropped, and the connection is known to be dead.
pub(super) struct Probed {
    pub(super) subscriber: Weak<Subscriber>,
    pub(super) number: u64,
}

impl Probed {
    pub(super) async fn probe(self) {
        loop {
            let Some(environment) = self.subscriber.upgrade().map(|subscriber| subscriber.environment())
            else {
                return;
            };
            environment.sleep(PROBE).await;
            let Some(push) =
                self.subscriber.upgrade().and_then(|subscriber| subscriber.connection(self.number))
            else {
                return;
            };
            let (mut connection, ping) = (push.connection, redis::cmd("PING"));
            let answers = tokio::select! {
                biased;
                answer = ping.exec_async(&mut connection) => answer.is_ok(),
                () = environment.sleep(PROBE) => false,
            };
            if !answers {
                return;
            }
            push.answered.store(environment.now().as_nanos(), Ordering::Relaxed);
        }
    }
}

impl Drop for Probed {
    fn drop(&mut self) {
        if let Some(subscriber) = self.subscriber.upgrade() {
            subscriber.end(self.number);
        }
    }
}
