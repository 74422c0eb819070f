#![allow(clippy::disallowed_methods, reason = "tests use real sockets, and wait for them")]

use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};
use ylock_core::environment::SystemEnvironment;

use super::*;
use crate::hints::{Hint, Key};

const SOON: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
struct Received(Mutex<Vec<(SocketAddr, Vec<u8>)>>);

impl Receiver for Received {
    fn receive(&self, from: SocketAddr, bytes: &[u8]) {
        self.0.lock().push((from, bytes.to_vec()));
    }
}

impl Received {
    fn until(&self, count: usize) -> Vec<(SocketAddr, Vec<u8>)> {
        let began = std::time::Instant::now();
        while self.0.lock().len() < count {
            assert!(began.elapsed() < SOON, "{} of {count} have come", self.0.lock().len());
            std::thread::sleep(Duration::from_millis(1));
        }
        self.0.lock().clone()
    }
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

fn local(port: u16) -> Address {
    Address(([127, 0, 0, 1], port).into())
}

fn socket(environment: &Arc<dyn Environment>) -> Socket {
    Socket::bind(local(0), None, &[], environment).unwrap()
}

#[test]
fn a_datagram_comes_from_one_client_to_another() {
    let (runtime, environment) = (runtime(), SystemEnvironment::shared());
    let _inside = runtime.enter();
    let (here, there) = (socket(&environment), socket(&environment));
    let received = Arc::new(Received::default());
    there.deliver_to(Arc::downgrade(&received) as Weak<dyn Receiver>);
    let datagram = Hint::Next.to(Key::from_u128(7));
    here.send(there.address(), &datagram);
    assert_eq!(received.until(1), [(here.address(), datagram.to_vec())]);
}

/// The socket is the client's, and the runtime a caller's.
#[test]
fn datagrams_come_after_the_end_of_the_runtime_in_which_they_were_read() {
    let environment = SystemEnvironment::shared();
    let (first, second) = (runtime(), runtime());
    let received = Arc::new(Received::default());
    let (here, there) = (socket(&environment), socket(&environment));
    first.block_on(async { there.deliver_to(Arc::downgrade(&received) as Weak<dyn Receiver>) });
    here.send(there.address(), &Hint::Next.to(Key::from_u128(1)));
    received.until(1);
    second.block_on(async { environment.enter() });
    drop(first);
    here.send(there.address(), &Hint::Next.to(Key::from_u128(2)));
    assert_eq!(received.until(2).len(), 2);
}

#[test]
fn a_port_of_a_client_that_is_gone_is_free_again() {
    let (runtime, environment) = (runtime(), SystemEnvironment::shared());
    let _inside = runtime.enter();
    let there = socket(&environment);
    let address = there.address();
    let received = Arc::new(Received::default());
    there.deliver_to(Arc::downgrade(&received) as Weak<dyn Receiver>);
    socket(&environment).send(address, &Hint::Next.to(Key::from_u128(1)));
    received.until(1);
    drop((there, received));
    let began = std::time::Instant::now();
    while UdpSocket::bind(address).is_err() {
        assert!(began.elapsed() < SOON, "the task that reads does not end");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn the_own_address_is_the_one_by_which_a_node_is_reached() {
    let environment = SystemEnvironment::shared();
    let any = Address(([0, 0, 0, 0], 0).into());
    let (none, node) = ([127, 0, 0, 2], 9042);
    let socket =
        Socket::bind(any, None, &["[::1]:9042".parse().unwrap(), (none, node).into()], &environment).unwrap();
    let bound = socket.socket.local_addr().unwrap();
    assert!(bound.ip().is_unspecified() && socket.address().ip().is_loopback(), "{}", socket.address());
    assert_eq!(socket.address().port(), bound.port());
    let error = Socket::bind(any, None, &["[::1]:9042".parse().unwrap()], &environment).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("notify_advertise"), "{error}");
}

/// Nothing is bound where the way to Cassandra does not lead from a private address, or one of this machine.
#[test]
fn without_being_asked_it_is_bound_where_that_is_safe() {
    let environment = SystemEnvironment::shared();
    let open = |notify, protocol, nodes: &[&str]| {
        let nodes: Vec<SocketAddr> = nodes.iter().map(|node| node.parse().unwrap()).collect();
        let options = CassandraOptions::new("ks").with_notify(notify).with_protocol(protocol);
        Socket::open(&options, &nodes, &environment).unwrap()
    };
    let socket = open(options::Notify::Auto, Protocol::Queue, &["127.0.0.1:9042"]).unwrap();
    let bound = socket.socket.local_addr().unwrap();
    assert_eq!((bound, bound.ip().to_string()), (socket.address(), "127.0.0.1".to_owned()));
    assert!(open(options::Notify::Auto, Protocol::Queue, &[]).unwrap_err().contains("notify=auto"));
    assert!(
        open(options::Notify::Off, Protocol::Queue, &["127.0.0.1:9042"]).unwrap_err().contains("notify=off")
    );
    assert!(
        open(options::Notify::Auto, Protocol::ShadowRows, &["127.0.0.1:9042"])
            .unwrap_err()
            .contains("shadow-rows")
    );
}

#[test]
fn the_advertised_address_is_as_told_and_its_port_that_of_the_socket_unless_it_is_told() {
    let environment = SystemEnvironment::shared();
    let bind = |text: &str| {
        let advertised = Some(Address(text.parse().unwrap()));
        Socket::bind(local(0), advertised, &[], &environment).unwrap()
    };
    assert_eq!(bind("192.0.2.7:7000").address().to_string(), "192.0.2.7:7000");
    let socket = bind("192.0.2.7:0");
    let port = socket.socket.local_addr().unwrap().port();
    assert_eq!(socket.address().to_string(), format!("192.0.2.7:{port}"));
}

#[test]
fn an_address_that_cannot_be_bound_is_named() {
    let environment = SystemEnvironment::shared();
    let elsewhere = Address("192.0.2.7:7000".parse().unwrap());
    let error = Socket::bind(elsewhere, None, &[], &environment).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("notify_bind=192.0.2.7:7000"), "{error}");
}
