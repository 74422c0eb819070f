//! A thief that closes the session of a client, as an operator can.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use ylock_core::url::Host;

/// What the server said when the session began: its number, and the password that proves that a client may have it.
type Secret = Arc<Mutex<Option<(i64, Vec<u8>)>>>;

/// Stands between a client and its server, and overhears number and password of the session.
pub(crate) struct Thief {
    host: Host,
    server: (String, u16),
    secret: Secret,
    /// True while the client is kept away: it would take the session back.
    at_work: Arc<AtomicBool>,
}

impl Thief {
    pub(crate) async fn before(server: &Host) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = (server.name.clone(), server.port.unwrap());
        let secret = Secret::default();
        let heard = Arc::clone(&secret);
        let target = server.clone();
        let at_work = Arc::new(AtomicBool::new(false));
        let busy = Arc::clone(&at_work);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if busy.load(Ordering::SeqCst) {
                    continue;
                }
                tokio::spawn(overhear(client, target.clone(), Arc::clone(&heard)));
            }
        });
        Self { host: Host::new("127.0.0.1", port), server, secret, at_work }
    }

    pub(crate) fn host(&self) -> Host {
        self.host.clone()
    }

    /// Continues the session from elsewhere, and closes it.
    pub(crate) async fn close_the_session(&self) {
        let (session, password) = self.secret.lock().clone().expect("a session has begun");
        self.at_work.store(true, Ordering::SeqCst);
        let mut stream = TcpStream::connect(&self.server).await.unwrap();
        let mut connect = Vec::new();
        connect.extend(0_i32.to_be_bytes());
        connect.extend(0_i64.to_be_bytes());
        connect.extend(4_000_i32.to_be_bytes());
        connect.extend(session.to_be_bytes());
        connect.extend((password.len() as i32).to_be_bytes());
        connect.extend(&password);
        connect.push(0);
        send(&mut stream, &connect).await;
        let answer = receive(&mut stream).await.expect("the session goes on");
        assert_eq!(answer[8..16], session.to_be_bytes());
        // The number of the request, and its kind.
        send(&mut stream, &[1_i32.to_be_bytes(), (-11_i32).to_be_bytes()].concat()).await;
        assert!(receive(&mut stream).await.is_some(), "the server says that it is closed");
        self.at_work.store(false, Ordering::SeqCst);
    }
}

async fn overhear(mut client: TcpStream, server: (String, u16), heard: Secret) {
    let Ok(mut server) = TcpStream::connect(server).await else { return };
    let Some(request) = receive(&mut client).await else { return };
    send(&mut server, &request).await;
    let Some(answer) = receive(&mut server).await else { return };
    let session = i64::from_be_bytes(answer[8..16].try_into().unwrap());
    if session != 0 {
        *heard.lock() = Some((session, answer[20..36].to_vec()));
    }
    send(&mut client, &answer).await;
    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
}

async fn send(stream: &mut TcpStream, body: &[u8]) {
    let length = (body.len() as i32).to_be_bytes();
    let _ = stream.write_all(&[&length[..], body].concat()).await;
}

async fn receive(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let length = stream.read_i32().await.ok()?;
    let mut body = vec![0; usize::try_from(length).ok()?];
    stream.read_exact(&mut body).await.ok()?;
    Some(body)
}
