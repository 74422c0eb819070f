//! Hints over UDP.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use ylock_core::environment::{BackgroundTask, BoxFuture, Environment};
use ylock_core::{Error, ErrorKind, Result};

use super::datagram::Datagram;
use super::{Address, Carrier, Networks, Receiver};
use crate::options::{self, CassandraOptions, Protocol};

/// The time after which a socket that cannot be read is tried again.
const AGAIN: Duration = Duration::from_secs(1);
/// Longer than every hint, so that one which is too long is noticed.
const BUFFER: usize = 64;

/// One socket, for all locks of a client. It belongs to no runtime: only the task that reads it does, and begins anew in another one.
#[derive(Debug)]
pub struct Socket {
    socket: Arc<UdpSocket>,
    address: SocketAddr,
    environment: Weak<dyn Environment>,
    background_task: BackgroundTask,
    /// Notified when this is dropped: ends the task that reads.
    gone: Arc<Notify>,
}

impl Socket {
    /// Binds the socket of a client with these options, which reaches these nodes, or says why it has none.
    ///
    /// # Errors
    /// [`Config`](ErrorKind::Config) with `notify=udp`, where it cannot be bound, or the own address is not known.
    pub fn open(
        options: &CassandraOptions,
        nodes: &[SocketAddr],
        environment: &Arc<dyn Environment>,
    ) -> Result<std::result::Result<Self, String>> {
        let (notify, protocol) = (options.notify(), options.protocol());
        if notify == options::Notify::Off || protocol != Protocol::Queue {
            return Ok(Err(format!("notify={notify}, protocol={protocol}")));
        }
        if notify == options::Notify::Auto {
            return Ok(Self::open_where_safe(nodes, environment));
        }
        Self::bind(options.notify_bind(), options.notify_advertise(), nodes, environment).map(Ok)
    }

    /// Binds a socket at the address by which the nodes are reached, and no other, if that is a private one or a loopback address.
    fn open_where_safe(
        nodes: &[SocketAddr],
        environment: &Arc<dyn Environment>,
    ) -> std::result::Result<Self, String> {
        let own = nodes.iter().filter_map(address_towards).filter(|ip| Networks::around(*ip).is_some());
        // The same one each time, whatever the order of the nodes; and one that others reach, if there is one.
        let Some(ip) = own.min_by_key(|ip| (ip.is_loopback(), *ip)) else {
            return Err("notify=auto, and no node is reached from a private or loopback address".to_owned());
        };
        let bind = Address(SocketAddr::new(ip, 0));
        let refused = |error| format!("notify=auto, and no datagrams can be received at {ip}: {error:#}");
        Self::bind(bind, None, nodes, environment).map_err(refused)
    }

    /// Binds a socket. `nodes` are the addresses of the cluster: the own address is the one from which they are reached, unless the socket
    /// is bound to one, or `advertised` says it.
    pub(crate) fn bind(
        bind: Address,
        advertised: Option<Address>,
        nodes: &[SocketAddr],
        environment: &Arc<dyn Environment>,
    ) -> Result<Self> {
        let refused = |error: io::Error| {
            let message = format!("option notify_bind={bind}: no datagrams can be received there");
            Error::new(ErrorKind::Config, message).with_source(error).with_engine(crate::NAME)
        };
        let socket = UdpSocket::bind(bind.0).map_err(refused)?;
        socket.set_nonblocking(true).map_err(refused)?;
        let bound = socket.local_addr().map_err(refused)?;
        let address = match advertised {
            // Of a port that is free, whichever that is, the own side of a NAT says nothing; but a container may have only its address changed.
            Some(Address(address)) if address.port() == 0 => SocketAddr::new(address.ip(), bound.port()),
            Some(Address(address)) => address,
            None => own_address(bound, nodes).ok_or_else(unknown_address)?,
        };
        let environment = Arc::downgrade(environment);
        Ok(Self {
            socket: Arc::new(socket),
            address,
            environment,
            background_task: BackgroundTask::default(),
            gone: Arc::default(),
        })
    }
}

/// Returns the address by which a socket that is bound like this is reached from where the nodes are.
fn own_address(bound: SocketAddr, nodes: &[SocketAddr]) -> Option<SocketAddr> {
    if !bound.ip().is_unspecified() {
        return Some(bound);
    }
    let alike = nodes.iter().filter(|node| node.is_ipv4() == bound.is_ipv4());
    alike.filter_map(address_towards).next().map(|ip| SocketAddr::new(ip, bound.port()))
}

/// Returns the own address from which a node is reached.
fn address_towards(node: &SocketAddr) -> Option<IpAddr> {
    let any: IpAddr =
        if node.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    // Connecting a socket of datagrams sends nothing: it only finds the route.
    let probe = UdpSocket::bind(SocketAddr::new(any, 0)).ok()?;
    probe.connect(node).ok()?;
    Some(probe.local_addr().ok()?.ip().to_canonical()).filter(|ip| !ip.is_unspecified())
}

fn unknown_address() -> Error {
    let message = "option notify_advertise: with notify=udp other clients must reach this one, and the address at which they do cannot be told \
                   from the way to Cassandra: name it, as notify_advertise=10.1.2.3:0; or bind to one, with notify_bind";
    Error::new(ErrorKind::Config, message).with_engine(crate::NAME)
}

impl Carrier for Socket {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn send(&self, to: SocketAddr, datagram: &Datagram) {
        // It does not wait. What the system refuses is lost, as what the network loses.
        if let Err(error) = self.socket.send_to(datagram, to) {
            tracing::trace!(%error, %to, "a hint was not sent");
        }
    }

    fn deliver_to(&self, receiver: Weak<dyn Receiver>) {
        let Some(environment) = self.environment.upgrade() else { return };
        let (socket, clock) = (Arc::downgrade(&self.socket), Weak::clone(&self.environment));
        let gone = Arc::clone(&self.gone);
        let work = move || -> BoxFuture {
            let receiving = receive(Weak::clone(&socket), Weak::clone(&receiver), Weak::clone(&clock));
            let gone = Arc::clone(&gone);
            Box::pin(async move {
                tokio::select! {
                    // When both have come there is no client any more that could be told anything.
                    biased;
                    () = gone.notified() => {}
                    () = receiving => {}
                }
            })
        };
        self.background_task.start(&environment, work);
    }
}

/// Reads the socket. Ends by itself where there is no client any more that is to be told.
async fn receive(socket: Weak<UdpSocket>, receiver: Weak<dyn Receiver>, environment: Weak<dyn Environment>) {
    loop {
        // A second descriptor, which belongs to this runtime: the first one may be in use in another one.
        let Some(reader) = socket.upgrade().map(|socket| socket.try_clone()) else { return };
        let failed = match reader.and_then(tokio::net::UdpSocket::from_std) {
            Ok(reader) => deliver(&reader, &receiver).await,
            Err(error) => Some(error),
        };
        let (Some(error), Some(environment)) = (failed, environment.upgrade()) else { return };
        tracing::debug!(%error, "hints cannot be received; waiters look by themselves meanwhile");
        let pause = environment.sleep(AGAIN);
        drop(environment);
        pause.await;
    }
}

/// Hands on what comes. Returns the error that ended it, or nothing if the client is gone.
async fn deliver(reader: &tokio::net::UdpSocket, receiver: &Weak<dyn Receiver>) -> Option<io::Error> {
    let mut bytes = [0; BUFFER];
    loop {
        let (length, from) = match reader.recv_from(&mut bytes).await {
            Ok(came) => came,
            // Where nothing listens any more the system may say so at the next call; that is no fault of this socket.
            Err(error) if is_of_a_receiver(&error) => continue,
            Err(error) => return Some(error),
        };
        receiver.upgrade()?.receive(from, &bytes[..length]);
    }
}

fn is_of_a_receiver(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, ConnectionReset, HostUnreachable, NetworkUnreachable};
    matches!(error.kind(), ConnectionRefused | ConnectionReset | HostUnreachable | NetworkUnreachable)
}

impl Drop for Socket {
    /// A task that is not waiting yet finds the notice when it does.
    fn drop(&mut self) {
        self.gone.notify_one();
    }
}

#[cfg(test)]
mod tests;
