//! Servers in memory. A request is done in the moment in which it is sent; its answer comes later, or never.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use ylock_core::environment::{BoxFuture, Environment, Moment};
use ylock_core::{Error, ErrorKind, Result, StoreToken};
use ylock_engine_zookeeper::algorithm::store::{Contender, Created, Ensemble, Fault, Store, Told};

use crate::nodes::{Nodes, On};

/// The timeout of every session.
pub(crate) const SESSION: Duration = Duration::from_secs(12);
/// The time from the sending of a request to its answer.
pub(crate) const TRIP: Duration = Duration::from_millis(1);

/// The servers.
pub(crate) struct Fake {
    environment: Arc<dyn Environment>,
    nodes: Mutex<Nodes>,
    sessions: Mutex<Vec<Arc<Session>>>,
    /// The requests that were sent.
    sent: Mutex<Vec<&'static str>>,
    /// The request whose next answer is lost.
    lost: Mutex<Option<&'static str>>,
}

/// One session of them.
pub(crate) struct Session {
    servers: Arc<Fake>,
    number: u64,
    asked: Moment,
    state: watch::Sender<State>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Live,
    Over,
}

/// What makes sessions of the servers.
#[derive(Debug)]
pub(crate) struct Servers(pub(crate) Arc<Fake>);

impl Fake {
    pub(crate) fn new(environment: &Arc<dyn Environment>) -> Arc<Self> {
        Arc::new(Self {
            environment: Arc::clone(environment),
            nodes: Mutex::default(),
            sessions: Mutex::default(),
            sent: Mutex::default(),
            lost: Mutex::default(),
        })
    }

    pub(crate) fn nodes(&self) -> MutexGuard<'_, Nodes> {
        self.nodes.lock().unwrap()
    }

    /// Returns the requests that were sent since this was asked last.
    pub(crate) fn sent(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.sent.lock().unwrap())
    }

    /// Makes the answer to the next request of this name get lost.
    pub(crate) fn lose(&self, request: &'static str) {
        *self.lost.lock().unwrap() = Some(request);
    }

    /// Returns whether the answer has got lost since.
    pub(crate) fn has_lost(&self) -> bool {
        self.lost.lock().unwrap().is_none()
    }

    /// Ends the session of this number, counted from zero over all clients.
    pub(crate) fn end(&self, number: usize) {
        let session = Arc::clone(&self.sessions.lock().unwrap()[number]);
        session.end(Moment::ZERO);
    }
}

impl Ensemble for Servers {
    fn session(&self) -> Arc<dyn Store> {
        let mut sessions = self.0.sessions.lock().unwrap();
        let (number, asked) = (sessions.len() as u64, self.0.environment.now());
        let (servers, state) = (Arc::clone(&self.0), watch::channel(State::New).0);
        let session = Arc::new(Session { servers, number, asked, state });
        sessions.push(Arc::clone(&session));
        session
    }

    fn no_session(&self) -> Error {
        Error::new(ErrorKind::Unavailable, "no session")
    }
}

impl Session {
    /// Sends a request, and waits for its answer.
    async fn trip<T>(
        &self,
        request: &'static str,
        work: impl FnOnce(&mut Nodes) -> Result<T, Fault> + Send,
    ) -> Result<T, Fault> {
        if !self.is_attached() {
            return Err(Fault::ConnectionLoss);
        }
        let answer = work(self.servers.nodes().transaction());
        self.servers.sent.lock().unwrap().push(request);
        let is_lost = self.servers.lost.lock().unwrap().take_if(|lost| *lost == request).is_some();
        match is_lost {
            true => std::future::pending().await,
            false => self.servers.environment.sleep(TRIP).await,
        }
        answer
    }

    fn state(&self) -> State {
        *self.state.borrow()
    }
}

#[async_trait]
impl Store for Session {
    fn is_attached(&self) -> bool {
        self.state() == State::Live
    }

    async fn attach(&self) -> Result<()> {
        if self.state() == State::Over {
            return Err(Error::new(ErrorKind::Unavailable, "the session has ended"));
        }
        self.state.send_replace(State::Live);
        Ok(())
    }

    fn until_dead(&self) -> BoxFuture {
        self.until_over()
    }

    fn until_over(&self) -> BoxFuture {
        let mut seen = self.state.subscribe();
        Box::pin(async move { drop(seen.wait_for(|state| *state == State::Over).await) })
    }

    fn is_over(&self) -> bool {
        self.state() == State::Over
    }

    fn timeout(&self) -> Duration {
        SESSION
    }

    fn asked(&self) -> Moment {
        self.asked
    }

    /// What the session has stays if the servers hear of its end only later.
    fn end(&self, then: Moment) {
        self.state.send_replace(State::Over);
        if then <= self.servers.environment.now() {
            self.servers.nodes().transaction().end(self.number);
        }
    }

    async fn check(&self, base: &str) -> Result<(), Fault> {
        self.trip("check", |nodes| nodes.read(base).map(drop)).await
    }

    async fn mkdir(&self, path: &str) -> Result<(), Fault> {
        let make = |nodes: &mut Nodes| {
            let ends = path.match_indices('/').map(|(end, _)| end).skip(1).chain([path.len()]);
            ends.for_each(|end| drop(nodes.make(&path[..end], b"", None)));
            Ok(())
        };
        self.trip("mkdir", make).await
    }

    async fn make_both(&self, lock: &str, key: &[u8], name: &str, content: &[u8]) -> Result<Created, Fault> {
        let make = |nodes: &mut Nodes| {
            nodes.make(lock, key, None)?;
            nodes.join(lock, name, content, self.number)
        };
        self.trip("make_both", make).await
    }

    async fn join(&self, lock: &str, name: &str, content: &[u8]) -> Result<Created, Fault> {
        self.trip("join", |nodes| nodes.join(lock, name, content, self.number)).await
    }

    async fn replace(&self, lock: &str, old: &str, name: &str, content: &[u8]) -> Result<Created, Fault> {
        let replace = |nodes: &mut Nodes| {
            nodes.remove(&format!("{lock}/{old}"))?;
            nodes.join(lock, name, content, self.number)
        };
        self.trip("replace", replace).await
    }

    async fn rename(
        &self,
        lock: &str,
        (old, version): (&str, i64),
        new: &str,
        content: &[u8],
    ) -> Result<(), Fault> {
        let old = format!("{lock}/{old}");
        let rename = |nodes: &mut Nodes| {
            nodes.write(&old, content, version)?;
            nodes.make(&format!("{lock}/{new}"), content, Some(self.number))?;
            nodes.remove(&old)
        };
        self.trip("rename", rename).await
    }

    async fn remove_both(&self, lock: &str, name: &str) -> Result<(), Fault> {
        let remove = |nodes: &mut Nodes| {
            let own = format!("{lock}/{name}");
            match nodes.names(lock)?.len() {
                _ if !nodes.has(&own) => Err(Fault::NoNode),
                1 => nodes.remove(&own).and_then(|()| nodes.remove(lock)),
                _ => Err(Fault::NotEmpty),
            }
        };
        self.trip("remove_both", remove).await
    }

    async fn remove(&self, path: &str) -> Result<(), Fault> {
        self.trip("remove", |nodes| nodes.remove(path)).await
    }

    async fn write_content(&self, path: &str, content: &[u8], version: i64) -> Result<(), Fault> {
        self.trip("write_content", |nodes| nodes.write(path, content, version)).await
    }

    async fn catch_up(&self, _path: &str) -> Result<(), Fault> {
        self.trip("catch_up", |_| Ok(())).await
    }

    async fn list(&self, lock: &str) -> Result<Vec<String>, Fault> {
        self.trip("list", |nodes| nodes.names(lock)).await
    }

    async fn list_and_watch(&self, lock: &str) -> Result<(Vec<String>, Told), Fault> {
        let ask = |nodes: &mut Nodes| Ok((nodes.names(lock)?, nodes.watch(lock, On::Children, self.number)?));
        self.trip("list_and_watch", ask).await
    }

    async fn token(&self, path: &str) -> Result<Option<StoreToken>, Fault> {
        self.trip("token", |nodes| Ok(nodes.read(path).ok().and_then(|stored| stored.token))).await
    }

    async fn read(&self, path: &str) -> Result<Contender, Fault> {
        self.trip("read", |nodes| nodes.read(path)).await
    }

    async fn read_and_watch(&self, path: &str) -> Result<(Vec<u8>, Told), Fault> {
        let ask =
            |nodes: &mut Nodes| Ok((nodes.read(path)?.content, nodes.watch(path, On::Node, self.number)?));
        self.trip("read_and_watch", ask).await
    }

    async fn count(&self, path: &str) -> Result<Option<i32>, Fault> {
        self.trip("count", |nodes| Ok(nodes.names(path).ok().map(|names| names.len() as i32))).await
    }
}

impl fmt::Debug for Fake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fake")
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Session").field(&self.number).finish()
    }
}
