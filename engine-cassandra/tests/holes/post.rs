//! Hints between the clients of a test, delivered at once, unless the test keeps them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use ylock_core::environment::{Environment, Moment};
use ylock_engine_cassandra::CassandraEngine;
use ylock_engine_cassandra::hints::{Carrier, Datagram, Endpoint, Hint, Receiver};
use ylock_engine_cassandra::options::Notify;

use crate::fake::{self, World};
use crate::fixture::Fixture;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Post {
    world: Arc<World>,
    receivers: Mutex<BTreeMap<SocketAddr, Weak<dyn Receiver>>>,
    sent: Mutex<Vec<(Hint, SocketAddr, Moment)>>,
    loses: AtomicBool,
}

/// The way of one client.
#[derive(Debug)]
struct Way {
    post: Arc<Post>,
    address: SocketAddr,
}

impl Post {
    pub(crate) fn new(fixture: &Fixture) -> Arc<Self> {
        Arc::new(Self {
            world: Arc::clone(&fixture.world),
            receivers: Mutex::default(),
            sent: Mutex::default(),
            loses: AtomicBool::new(false),
        })
    }

    /// A client that can be told to look.
    pub(crate) fn engine(self: &Arc<Self>, fixture: &Fixture) -> CassandraEngine {
        self.engine_at([10, 0, 0, 1], Notify::Udp, fixture)
    }

    /// The same at this address.
    pub(crate) fn engine_at(
        self: &Arc<Self>,
        ip: [u8; 4],
        notify: Notify,
        fixture: &Fixture,
    ) -> CassandraEngine {
        let number = u16::try_from(self.receivers.lock().len()).unwrap();
        let way = Way { post: Arc::clone(self), address: (ip, 2_000 + number).into() };
        let options = fake::options().with_notify(notify);
        fake::engine_with(&fixture.fake, &fixture.world, &options).with_hints(Arc::new(way), &options)
    }

    /// Loses all hints from now on, or none.
    pub(crate) fn loses(&self, loses: bool) {
        self.loses.store(loses, Ordering::Relaxed);
    }

    /// Delivers a forged hint.
    pub(crate) fn forge(&self, hint: Hint, to: Endpoint) {
        let receiver = self.receivers.lock().get(&to.address).and_then(Weak::upgrade);
        receiver.expect("a client").receive(([10, 9, 9, 9], 9_999).into(), &hint.to(to.key));
    }

    /// The hints that were sent, to which client and when.
    pub(crate) fn sent(&self) -> Vec<(Hint, SocketAddr, Moment)> {
        self.sent.lock().clone()
    }
}

impl Carrier for Way {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn send(&self, to: SocketAddr, datagram: &Datagram) {
        let (_, hint) = Hint::read(datagram).unwrap();
        self.post.sent.lock().push((hint, to, self.post.world.now()));
        let receiver = self.post.receivers.lock().get(&to).and_then(Weak::upgrade);
        if let Some(receiver) = receiver.filter(|_| !self.post.loses.load(Ordering::Relaxed)) {
            receiver.receive(self.address, datagram);
        }
    }

    fn deliver_to(&self, receiver: Weak<dyn Receiver>) {
        self.post.receivers.lock().insert(self.address, receiver);
    }
}
