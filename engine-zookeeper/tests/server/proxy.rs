//! Something between a client and a server that can be cut, or can lose or keep back what it carries.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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
    /// The heartbeats of the engine do not arrive. Everything else does.
    Beatless,
    /// The requests of the connections that there are do not arrive before the line is open again, whatever has become of their client.
    /// New connections are as they should be.
    Late,
    /// Such requests wait, and all that come after them over the same connection, until the line is as it was. Answers arrive.
    Held(What),
    /// The connections that there are go on. New ones are refused.
    Full,
}

/// The requests that are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// All but heartbeats.
    Anything,
    /// Requests that change several nodes at once.
    Transactions,
}

/// Kinds of requests.
const PING: u32 = 11;
const CHECK: u32 = 13;
pub(crate) const MULTI: u32 = 14;

/// One proxy for each of some servers.
#[derive(Clone, Debug)]
pub(crate) struct Proxy {
    hosts: Vec<Host>,
    line: Arc<watch::Sender<Link>>,
    seen: Seen,
}

/// What the tests are told of the proxy's work.
#[derive(Clone, Debug, Default)]
struct Seen {
    kept: Arc<AtomicUsize>,
    refused: Arc<AtomicUsize>,
    /// The kinds of the requests of each connection, in order.
    asked: Arc<Mutex<Vec<Vec<u32>>>>,
}

impl Proxy {
    pub(crate) async fn before(servers: &[Host]) -> Self {
        let line = Arc::new(watch::Sender::new(Link::Open));
        let seen = Seen::default();
        let mut hosts = Vec::new();
        for server in servers {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
            let SocketAddr::V4(address) = listener.local_addr().expect("an address") else { unreachable!() };
            hosts.push(Host::new("127.0.0.1", address.port()));
            tokio::spawn(serve(listener, server.clone(), line.subscribe(), seen.clone()));
        }
        Self { hosts, line, seen }
    }

    pub(crate) fn hosts(&self) -> Vec<Host> {
        self.hosts.clone()
    }

    pub(crate) fn set(&self, line: Link) {
        self.line.send_replace(line);
    }

    /// Returns how many requests are kept back.
    pub(crate) fn kept(&self) -> usize {
        self.seen.kept.load(Ordering::SeqCst)
    }

    /// Returns how many connections were refused because the line was full.
    pub(crate) fn refused(&self) -> usize {
        self.seen.refused.load(Ordering::SeqCst)
    }

    /// The kinds of the requests of each connection, without signs of life.
    pub(crate) fn asked(&self) -> Vec<Vec<u32>> {
        self.seen.asked.lock().clone()
    }
}

async fn serve(listener: TcpListener, server: Host, line: watch::Receiver<Link>, seen: Seen) {
    while let Ok((client, _)) = listener.accept().await {
        let now = *line.borrow();
        if now == Link::Full {
            seen.refused.fetch_add(1, Ordering::SeqCst);
        }
        if matches!(now, Link::Cut | Link::Full) {
            continue;
        }
        let address = (server.name.clone(), server.port.expect("a port"));
        let (mut line, seen) = (line.clone(), seen.clone());
        tokio::spawn(async move {
            let Ok(server) = TcpStream::connect(address).await else { return };
            drop((client.set_nodelay(true), server.set_nodelay(true)));
            let ((from_client, to_client), (from_server, to_server)) =
                (client.into_split(), server.into_split());
            let up = Requests::of(line.clone(), seen, now == Link::Late);
            let down = answers(from_server, to_client, line.clone());
            tokio::select! {
                () = up.carry(from_client, to_server) => {}
                () = down => {}
                _ = line.wait_for(|line| *line == Link::Cut) => {}
            }
        });
    }
}

async fn answers(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, line: watch::Receiver<Link>) {
    let mut buffer = vec![0; 16 * 1024];
    // What was lost once makes the rest useless: as after a network that forgot the connection.
    let mut lost = false;
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        lost |= matches!(*line.borrow(), Link::Dead | Link::Deaf);
        // The client may have gone: what it has sent may still be on its way.
        lost |= !lost && to.write_all(&buffer[..length]).await.is_err();
    }
    if lost || *line.borrow() == Link::Late {
        std::future::pending::<()>().await;
    }
}

/// The way from a client to its server.
struct Requests {
    line: watch::Receiver<Link>,
    seen: Seen,
    /// The number of the connection.
    number: usize,
    /// True if the connection began when the line was late.
    is_new: bool,
}

impl Requests {
    fn of(line: watch::Receiver<Link>, seen: Seen, is_new: bool) -> Self {
        let mut asked = seen.asked.lock();
        asked.push(Vec::new());
        let number = asked.len() - 1;
        drop(asked);
        Self { line, seen, number, is_new }
    }

    async fn carry(mut self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
        let (mut lost, mut late, mut is_first) = (false, Vec::new(), true);
        while let Some(request) = read(&mut from).await {
            if !std::mem::take(&mut is_first) {
                self.note(&request);
            }
            self.hold(&request).await;
            let line = *self.line.borrow();
            lost |= line == Link::Dead;
            if lost || (line == Link::Beatless && is_heartbeat(&request)) {
                continue;
            }
            if !late.is_empty() || (line == Link::Late && !self.is_new) {
                late.push(request);
                self.seen.kept.fetch_add(1, Ordering::SeqCst);
            } else if to.write_all(&request).await.is_err() {
                return;
            }
        }
        if !late.is_empty() {
            drop(self.line.wait_for(|line| *line == Link::Open).await);
            drop(to.write_all(&late.concat()).await);
            self.seen.kept.fetch_sub(late.len(), Ordering::SeqCst);
        }
        if lost {
            std::future::pending::<()>().await;
        }
    }

    fn note(&self, request: &[u8]) {
        if let Some(kind) = word(request, 8).filter(|kind| *kind != PING) {
            self.seen.asked.lock()[self.number].push(kind);
        }
    }

    /// Holds a request for as long as it is to wait.
    async fn hold(&mut self, request: &[u8]) {
        let is_held = match *self.line.borrow() {
            Link::Held(What::Anything) => true,
            Link::Held(What::Transactions) => word(request, 8) == Some(MULTI),
            _ => false,
        };
        if is_held && !is_heartbeat(request) {
            self.seen.kept.fetch_add(1, Ordering::SeqCst);
            drop(self.line.wait_for(|line| !matches!(line, Link::Held(_))).await);
            self.seen.kept.fetch_sub(1, Ordering::SeqCst);
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
    word(request, 8) == Some(MULTI) && word(request, 12) == Some(CHECK)
}

fn word(request: &[u8], at: usize) -> Option<u32> {
    request.get(at..at + 4).map(|word| u32::from_be_bytes(word.try_into().unwrap()))
}
