//! Something between a client and a server that can be cut, can lose what it carries, or can carry it much later.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use ylock_core::url::Host;

/// The state of the proxy: what happens to the bytes that it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "only tests use it")]
pub enum Link {
    /// Everything arrives.
    Open,
    /// Connections are closed, new ones refused.
    Cut,
    /// Everything is taken and nothing arrives, in either direction, on the connections that there are.
    Dead,
    /// Requests arrive, answers do not, on the connections that there are.
    Deaf,
    /// Requests are kept. What was kept stays kept when the line is open again, until it is set to [`Delivers`](Self::Delivers).
    Keeps,
    /// Everything arrives, also what was kept before, of connections that the client has closed since, too.
    Delivers,
}

/// One proxy for each of some servers.
#[derive(Clone, Debug)]
pub struct Proxy {
    hosts: Vec<Host>,
    line: Arc<watch::Sender<Link>>,
    /// The number of times that something was kept.
    kept: Arc<AtomicUsize>,
}

impl Proxy {
    /// Creates a proxy before each of these servers.
    ///
    /// # Panics
    /// If there is no port left.
    pub async fn before(servers: &[Host]) -> Self {
        let line = Arc::new(watch::Sender::new(Link::Open));
        let (mut hosts, kept) = (Vec::new(), Arc::new(AtomicUsize::new(0)));
        for server in servers {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
            let SocketAddr::V4(address) = listener.local_addr().expect("an address") else { unreachable!() };
            hosts.push(Host::new("127.0.0.1", address.port()));
            tokio::spawn(serve(listener, server.clone(), line.subscribe(), Arc::clone(&kept)));
        }
        Self { hosts, line, kept }
    }

    /// Returns where clients reach the servers.
    pub fn hosts(&self) -> Vec<Host> {
        self.hosts.clone()
    }

    /// Returns how often something was kept that a client has sent.
    pub fn kept(&self) -> usize {
        self.kept.load(Ordering::Relaxed)
    }

    /// Says what happens from now on to what is carried.
    pub fn set(&self, line: Link) {
        self.line.send_replace(line);
    }
}

async fn serve(listener: TcpListener, server: Host, line: watch::Receiver<Link>, kept: Arc<AtomicUsize>) {
    while let Ok((client, _)) = listener.accept().await {
        if *line.borrow() == Link::Cut {
            continue;
        }
        let address = (server.name.clone(), server.port.expect("a port"));
        let (mut line, kept) = (line.clone(), Arc::clone(&kept));
        tokio::spawn(async move {
            let Ok(server) = TcpStream::connect(address).await else { return };
            drop((client.set_nodelay(true), server.set_nodelay(true)));
            let ((from_client, to_client), (from_server, to_server)) =
                (client.into_split(), server.into_split());
            let up = carry(from_client, to_server, line.clone(), &[Link::Dead], Some(&kept));
            let down = carry(from_server, to_client, line.clone(), &[Link::Dead, Link::Deaf], None);
            tokio::select! {
                () = up => {}
                () = down => {}
                _ = line.wait_for(|line| *line == Link::Cut) => {}
            }
        });
    }
}

/// Carries bytes, until the line is one on which they are lost: what was lost once makes the rest useless, as after a network that forgot the
/// connection. What is kept makes the rest wait behind it.
async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut line: watch::Receiver<Link>,
    losing: &[Link],
    kept: Option<&AtomicUsize>,
) {
    let mut buffer = vec![0; 16 * 1024];
    let mut lost = false;
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let state = *line.borrow();
        lost |= losing.contains(&state);
        if lost {
            continue;
        }
        // Whatever the client does meanwhile, also if it closes the connection.
        if let (Some(kept), Link::Keeps) = (kept, state) {
            kept.fetch_add(1, Ordering::Relaxed);
            let _ = line.wait_for(|line| *line == Link::Delivers).await;
        }
        if to.write_all(&buffer[..length]).await.is_err() {
            break;
        }
    }
    if lost {
        std::future::pending::<()>().await;
    }
}
