//! Something between a client and a server that can be cut, or can lose what it carries.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

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
    /// Everything is taken and nothing arrives, in either direction, on the connections that there are.
    Dead,
    /// Requests arrive, answers do not, on the connections that there are.
    Deaf,
}

/// One proxy for each of some servers.
#[derive(Clone, Debug)]
pub(crate) struct Proxy {
    hosts: Vec<Host>,
    line: Arc<watch::Sender<Link>>,
}

impl Proxy {
    pub(crate) async fn before(servers: &[Host]) -> Self {
        let line = Arc::new(watch::Sender::new(Link::Open));
        let mut hosts = Vec::new();
        for server in servers {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
            let SocketAddr::V4(address) = listener.local_addr().expect("an address") else { unreachable!() };
            hosts.push(Host::new("127.0.0.1", address.port()));
            tokio::spawn(serve(listener, server.clone(), line.subscribe()));
        }
        Self { hosts, line }
    }

    pub(crate) fn hosts(&self) -> Vec<Host> {
        self.hosts.clone()
    }

    pub(crate) fn set(&self, line: Link) {
        self.line.send_replace(line);
    }
}

async fn serve(listener: TcpListener, server: Host, line: watch::Receiver<Link>) {
    while let Ok((client, _)) = listener.accept().await {
        if *line.borrow() == Link::Cut {
            continue;
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

/// Carries bytes, until the line is one on which they are lost: what was lost once makes the rest useless, as after a network that forgot the
/// connection.
async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    line: watch::Receiver<Link>,
    losing: &[Link],
) {
    let mut buffer = vec![0; 16 * 1024];
    let mut lost = false;
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        lost |= losing.contains(&*line.borrow());
        if !lost && to.write_all(&buffer[..length]).await.is_err() {
            break;
        }
    }
    if lost {
        std::future::pending::<()>().await;
    }
}
