//! Something between a client and a server that can be cut, or can lose or keep back what it carries.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use ylock_core::url::Host;

/// What happens to what it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Open,
    /// Connections are closed, new ones refused.
    Cut,
    /// Everything is taken and nothing arrives, in either direction.
    Dead,
    /// Requests arrive, answers do not.
    Deaf,
    /// The heartbeats of the engine do not arrive. Everything else does.
    Beatless,
    /// The requests of the connections that there are do not arrive before the line is open again, whatever has become of their client.
    /// New connections are as they should be.
    Late,
}

/// One proxy for each of some servers.
#[derive(Clone, Debug)]
pub(crate) struct Proxy {
    hosts: Vec<Host>,
    line: Arc<watch::Sender<Line>>,
    kept: Arc<AtomicUsize>,
}

impl Proxy {
    pub(crate) async fn before(servers: &[Host]) -> Self {
        let line = Arc::new(watch::Sender::new(Line::Open));
        let kept = Arc::<AtomicUsize>::default();
        let mut hosts = Vec::new();
        for server in servers {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
            let SocketAddr::V4(address) = listener.local_addr().expect("an address") else { unreachable!() };
            hosts.push(Host { name: "127.0.0.1".to_owned(), port: Some(address.port()) });
            tokio::spawn(serve(listener, server.clone(), line.subscribe(), Arc::clone(&kept)));
        }
        Self { hosts, line, kept }
    }

    pub(crate) fn hosts(&self) -> Vec<Host> {
        self.hosts.clone()
    }

    pub(crate) fn set(&self, line: Line) {
        self.line.send_replace(line);
    }

    /// How many requests are kept back.
    #[allow(dead_code, reason = "each of the tests that share this uses a part of it")]
    pub(crate) fn kept(&self) -> usize {
        self.kept.load(Ordering::SeqCst)
    }
}

async fn serve(listener: TcpListener, server: Host, line: watch::Receiver<Line>, kept: Arc<AtomicUsize>) {
    while let Ok((client, _)) = listener.accept().await {
        let now = *line.borrow();
        if now == Line::Cut {
            continue;
        }
        let address = (server.name.clone(), server.port.expect("a port"));
        let (mut line, kept) = (line.clone(), Arc::clone(&kept));
        tokio::spawn(async move {
            let Ok(server) = TcpStream::connect(address).await else { return };
            drop((client.set_nodelay(true), server.set_nodelay(true)));
            let ((from_client, to_client), (from_server, to_server)) =
                (client.into_split(), server.into_split());
            let up = Requests { line: line.clone(), kept, is_new: now == Line::Late };
            let down = answers(from_server, to_client, line.clone());
            tokio::select! {
                () = up.carry(from_client, to_server) => {}
                () = down => {}
                _ = line.wait_for(|line| *line == Line::Cut) => {}
            }
        });
    }
}

async fn answers(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, line: watch::Receiver<Line>) {
    let mut buffer = vec![0; 16 * 1024];
    // What was lost once makes the rest useless: as after a network that forgot the connection.
    let mut lost = false;
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        lost |= matches!(*line.borrow(), Line::Dead | Line::Deaf);
        // Its client may have gone: what it has sent may still be on its way.
        lost |= !lost && to.write_all(&buffer[..length]).await.is_err();
    }
    if lost || *line.borrow() == Line::Late {
        std::future::pending::<()>().await;
    }
}

/// The way from a client to its server.
struct Requests {
    line: watch::Receiver<Line>,
    kept: Arc<AtomicUsize>,
    /// Its connection began when the line was late.
    is_new: bool,
}

impl Requests {
    async fn carry(mut self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
        let (mut lost, mut late) = (false, Vec::new());
        while let Some(request) = read(&mut from).await {
            let line = *self.line.borrow();
            lost |= line == Line::Dead;
            if lost || (line == Line::Beatless && is_heartbeat(&request)) {
                continue;
            }
            if !late.is_empty() || (line == Line::Late && !self.is_new) {
                late.push(request);
                self.kept.fetch_add(1, Ordering::SeqCst);
            } else if to.write_all(&request).await.is_err() {
                return;
            }
        }
        if !late.is_empty() {
            drop(self.line.wait_for(|line| *line == Line::Open).await);
            drop(to.write_all(&late.concat()).await);
            self.kept.fetch_sub(late.len(), Ordering::SeqCst);
        }
        if lost {
            std::future::pending::<()>().await;
        }
    }
}

/// One request, with its length before it.
async fn read(from: &mut OwnedReadHalf) -> Option<Vec<u8>> {
    let length = from.read_u32().await.ok()?;
    let mut request = length.to_be_bytes().to_vec();
    request.resize(4 + length as usize, 0);
    from.read_exact(&mut request[4..]).await.ok()?;
    Some(request)
}

/// A transaction that begins with a check: after the length and the number of the request come its kind and that of its first part.
fn is_heartbeat(request: &[u8]) -> bool {
    const MULTI: [u8; 4] = 14_u32.to_be_bytes();
    const CHECK: [u8; 4] = 13_u32.to_be_bytes();
    request.get(8..12) == Some(&MULTI) && request.get(12..16) == Some(&CHECK)
}
