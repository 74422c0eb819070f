use std::time::Duration;

use parking_lot::Mutex;
use ylock_core::environment::SystemEnvironment;
use ylock_core::options::OptionValue;

use super::*;
use crate::hints::Datagram;

/// A carrier that keeps what it is to send.
#[derive(Debug, Default)]
struct Kept(Mutex<Vec<SocketAddr>>);

impl Carrier for Kept {
    fn address(&self) -> SocketAddr {
        address("10.0.0.1:7000")
    }

    fn send(&self, to: SocketAddr, _: &Datagram) {
        self.0.lock().push(to);
    }

    fn deliver_to(&self, _: Weak<dyn Receiver>) {}
}

const LEASE: Duration = Duration::from_secs(10);

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn exchange(allowed: Option<&str>) -> (Arc<Kept>, Arc<Exchange>, Arc<Inbox>) {
    let (kept, environment) = (Arc::new(Kept::default()), SystemEnvironment::shared());
    let allowed = allowed.map(|text| Networks::from_text(text).unwrap());
    let exchange = Exchange::start(Arc::clone(&kept) as _, environment, allowed, EarlyRenewals::default());
    (kept, exchange, Arc::new(Inbox::new(ylock_core::Key::new("group", "name").unwrap())))
}

#[test]
fn a_hint_reaches_the_acquisition_with_its_key_and_no_other() {
    let (_, exchange, inbox) = exchange(None);
    let (own, other) = (exchange.new_endpoint().key, exchange.new_endpoint().key);
    assert_ne!(own, other);
    exchange.receive_under(&inbox, Some(own), LEASE);
    exchange.receive(address("10.0.0.2:7000"), &Hint::Next.to(other));
    assert_eq!(inbox.look_at(), None);
    exchange.receive(address("10.0.0.2:7000"), &Hint::Next.to(own));
    assert!(inbox.look_at().is_some());
    assert_eq!((exchange.counts().received, exchange.counts().dropped), (1, 1));
}

#[test]
fn a_key_ends_with_its_acquisition() {
    let (_, exchange, inbox) = exchange(None);
    let keys = [(); 3].map(|()| exchange.new_endpoint().key);
    for key in keys {
        exchange.receive_under(&inbox, Some(key), LEASE);
        assert!(exchange.keys() <= 2, "that one, and the one before");
    }
    for key in &keys[..2] {
        exchange.receive(address("10.0.0.2:7000"), &Hint::Next.to(*key));
    }
    assert_eq!(exchange.counts().dropped, 1, "the one before may be meant for a client that waits again");
    exchange.forget(&inbox);
    assert_eq!(exchange.keys(), 0);
}

#[test]
fn a_row_that_is_gone_hears_nothing() {
    let (_, exchange, inbox) = exchange(None);
    let key = exchange.new_endpoint().key;
    exchange.receive_under(&inbox, Some(key), LEASE);
    drop(inbox);
    exchange.receive(address("10.0.0.2:7000"), &Hint::Next.to(key));
    assert_eq!((exchange.counts().received, exchange.counts().dropped), (0, 1));
}

#[test]
fn anything_that_is_no_hint_is_dropped() {
    let (_, exchange, _) = exchange(None);
    for bytes in [&[][..], b"ylk1", &[0; 40], &[0; 2_000]] {
        exchange.receive(address("10.0.0.2:7000"), bytes);
    }
    assert_eq!(exchange.counts().dropped, 4);
}

/// Whatever other clients have written into the table.
#[test]
fn hints_are_sent_only_where_they_may_go() {
    let (kept, exchange, _) = exchange(Some("10.0.0.0/8,224.0.0.0/4"));
    for to in ["10.0.0.2:7000", "192.168.0.1:7000", "10.0.0.2:53", "224.0.0.1:7000", "10.3.0.2:1024"] {
        exchange.send(Hint::Next, Endpoint { address: address(to), key: Key::from_u128(1) });
    }
    assert_eq!(*kept.0.lock(), [address("10.0.0.2:7000"), address("10.3.0.2:1024")]);
    assert_eq!((exchange.counts().sent, exchange.counts().dropped), (2, 3));
}
