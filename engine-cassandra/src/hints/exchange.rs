//! The keys of one client's acquisitions, and the way of hints from and to them.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use ylock_core::engine::EarlyRenewals;
use ylock_core::environment::Environment;

use super::datagram::{Hint, Key};
use super::inbox::{Inbox, Outcome};
use super::networks::Networks;
use super::{Carrier, Endpoint, HintCounts, Receiver, is_unicast};

/// The exchange of one client; see the [module](self).
#[derive(Debug)]
pub(crate) struct Exchange {
    carrier: Arc<dyn Carrier>,
    environment: Arc<dyn Environment>,
    /// Where to datagrams may be sent; any address where none is named.
    allowed: Option<Networks>,
    renewals: EarlyRenewals,
    /// One entry for each acquisition that takes part, and for the one before it of the same row.
    inboxes: Mutex<HashMap<Key, Weak<Inbox>>>,
    sent: AtomicU64,
    received: AtomicU64,
    missed: AtomicU64,
    dropped: AtomicU64,
}

impl Exchange {
    /// Creates the exchange of a client, and makes it receive.
    pub(crate) fn start(
        carrier: Arc<dyn Carrier>,
        environment: Arc<dyn Environment>,
        allowed: Option<Networks>,
        renewals: EarlyRenewals,
    ) -> Arc<Self> {
        let inboxes = Mutex::default();
        let [sent, received, missed, dropped] = [0; 4].map(AtomicU64::new);
        let exchange =
            Self { carrier, environment, allowed, renewals, inboxes, sent, received, missed, dropped };
        let exchange = Arc::new(exchange);
        let receiver: Weak<Self> = Arc::downgrade(&exchange);
        exchange.carrier.deliver_to(receiver);
        exchange
    }

    /// Returns where a new acquisition can be told something.
    pub(crate) fn new_endpoint(&self) -> Endpoint {
        let key = Key::from_u128(self.environment.random_identity());
        Endpoint { address: self.carrier.address(), key }
    }

    /// Makes hints for this inbox come under this key from now on. Under the one before, a waiter can still say that it has seen it.
    pub(crate) fn receive_under(&self, inbox: &Arc<Inbox>, key: Option<Key>, lease: Duration) {
        let forgotten = inbox.change_key(key, lease);
        let mut inboxes = self.inboxes.lock();
        if let Some(forgotten) = forgotten {
            inboxes.remove(&forgotten);
        }
        if let Some(key) = key {
            inboxes.entry(key).or_insert_with(|| Arc::downgrade(inbox));
        }
    }

    /// Forgets an inbox.
    pub(crate) fn forget(&self, inbox: &Inbox) {
        let mut inboxes = self.inboxes.lock();
        inbox.keys().for_each(|key| drop(inboxes.remove(&key)));
    }

    /// Sends a hint, unless it would go where none may go: the address is what another client has written, or where a datagram came from.
    pub(crate) fn send(&self, hint: Hint, to: Endpoint) {
        let is_allowed = self.allowed.as_ref().is_none_or(|allowed| allowed.contain(to.address.ip()));
        if !is_allowed || !is_unicast(to.address) {
            return self.count_dropped();
        }
        self.sent.fetch_add(1, Ordering::Relaxed);
        self.carrier.send(to.address, &hint.to(to.key));
    }

    /// Asks for a renewal of what the client of this inbox holds.
    pub(crate) fn renew(&self, inbox: &Inbox) {
        self.renewals.ask(&inbox.lock);
    }

    /// Counts a turn that no hint told of.
    pub(crate) fn count_missed(&self) {
        self.missed.fetch_add(1, Ordering::Relaxed);
    }

    fn count_dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of acquisitions for which hints may come.
    pub(crate) fn keys(&self) -> usize {
        self.inboxes.lock().len()
    }

    pub(crate) fn counts(&self) -> HintCounts {
        let [sent, received, missed, dropped] = [&self.sent, &self.received, &self.missed, &self.dropped]
            .map(|count| count.load(Ordering::Relaxed));
        HintCounts { sent, received, missed, dropped }
    }
}

impl Receiver for Exchange {
    fn receive(&self, from: SocketAddr, bytes: &[u8]) {
        let known = Hint::read(bytes).and_then(|(key, hint)| {
            let inbox = self.inboxes.lock().get(&key).and_then(Weak::upgrade)?;
            Some((inbox, key, hint))
        });
        // No answer: one would tell a stranger that there is a client, and a forged address would be sent what it did not ask for.
        let Some((inbox, key, hint)) = known else { return self.count_dropped() };
        self.received.fetch_add(1, Ordering::Relaxed);
        match inbox.take(key, hint, from, self.environment.now()) {
            Outcome::Taken => {}
            Outcome::HasEntered(waiter) => self.send(Hint::Next, waiter.endpoint()),
            Outcome::Answer(waiter) => self.send(Hint::Free { second: false }, waiter.endpoint()),
            Outcome::Renew => self.renew(&inbox),
            Outcome::Dropped => self.count_dropped(),
        }
    }
}

#[cfg(test)]
mod tests;
