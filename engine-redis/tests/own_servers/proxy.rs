//! Something between a client and a server that can be cut, or can lose what it carries.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use ylock_core::url::Host;

/// The state of the proxy: what happens to the bytes that it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Open,
    /// Connections are closed, new ones refused.
    Cut,
    /// Everything is taken and nothing arrives, in either direction.
    Dead,
    /// Requests arrive, answers do not.
    Deaf,
    /// What is connected goes on. Nothing arrives over new connections.
    Full,
}

/// One proxy for each of some servers.
#[derive(Clone, Debug)]
pub(crate) struct Proxy {
    hosts: Vec<Host>,
    line: Arc<watch::Sender<Link>>,
    turned_away: TurnedAway,
}

/// Connections over which nothing is carried.
type TurnedAway = Arc<Mutex<Vec<TcpStream>>>;

impl Proxy {
    pub(crate) async fn before(servers: &[Host]) -> Self {
        let line = Arc::new(watch::Sender::new(Link::Open));
        let (mut hosts, turned_away) = (Vec::new(), TurnedAway::default());
        for server in servers {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
            let SocketAddr::V4(address) = listener.local_addr().expect("an address") else { unreachable!() };
            hosts.push(Host::new("127.0.0.1", address.port()));
            tokio::spawn(serve(listener, server.clone(), line.subscribe(), Arc::clone(&turned_away)));
        }
        Self { hosts, line, turned_away }
    }

    pub(crate) fn hosts(&self) -> Vec<Host> {
        self.hosts.clone()
    }

    pub(crate) fn turned_away(&self) -> usize {
        self.turned_away.lock().len()
    }

    pub(crate) fn set(&self, line: Link) {
        self.line.send_replace(line);
    }
}

async fn serve(listener: TcpListener, server: Host, line: watch::Receiver<Link>, turned_away: TurnedAway) {
    while let Ok((client, _)) = listener.accept().await {
        match *line.borrow() {
            Link::Cut => continue,
            Link::Full => {
                turned_away.lock().push(client);
                continue;
            }
            Link::Open | Link::Dead | Link::Deaf => {}
        }
        let address = (server.name.clone(), server.port.expect("a port"));
        let mut line = line.clone();
        tokio::spawn(async move {
            let Ok(server) = TcpStream::connect(address).await else { return };
            drop((client.set_nodelay(true), server.set_nodelay(true)));
            let ((from_client, to_client), (from_server, to_server)) =
                (client.into_split(), server.into_split());
            let up = carry(from_client, to_server, line.clone(), &[Link::Dead]);
            let down = carry(from_server, to_client, line.clone(), &[Link::Dead, Link::Deaf]);
            tokio::select! {
                () = up => {}
                () = down => {}
                _ = line.wait_for(|line| *line == Link::Cut) => {}
            }
        });
    }
}

async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, line: watch::Receiver<Link>, loses: &[Link]) {
    let mut buffer = vec![0; 16 * 1024];
    // What was lost once makes the rest useless: as after a network that forgot the connection.
    let mut lost = false;
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        lost |= loses.contains(&line.borrow());
        if !lost && to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
    if lost {
        std::future::pending::<()>().await;
    }
}
