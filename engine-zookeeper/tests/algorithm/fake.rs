//! Servers in memory. A request is done in the moment in which it is sent; its answer comes later, or never.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use ylock_core::environment::{BoxFuture, Environment, Moment};
use ylock_core::{Error, ErrorKind, Result, StoreToken};
use ylock_engine_zookeeper::algorithm::store::{Contender, Created, Ensemble, Fault, Store, WatchEvent};

use crate::fates::{Fate, Fates};
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
    pub(crate) fates: Fates,
}

/// One session of them.
pub(crate) struct Session {
    servers: Arc<Fake>,
    number: u64,
    asked: Moment,
    state: watch::Sender<State>,
    /// Has a clone for each request that is on its way. The driver tells the servers that a session is over when no task has it any more.
    under_way: Arc<()>,
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
            fates: Fates::default(),
        })
    }

    pub(crate) fn nodes(&self) -> MutexGuard<'_, Nodes> {
        self.nodes.lock()
    }

    /// Returns the requests that were sent since this was asked last.
    pub(crate) fn sent(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.sent.lock())
    }

    /// Ends the session of this number, counted from zero over all clients.
    pub(crate) fn end(&self, number: usize) {
        self.number(number).end(Moment::ZERO);
    }

    /// Makes a client take a session for ended that the servers still have.
    pub(crate) fn give_up(&self, number: usize) {
        self.number(number).state.send_replace(State::Over);
    }

    fn number(&self, number: usize) -> Arc<Session> {
        Arc::clone(&self.sessions.lock()[number])
    }
}

impl Ensemble for Servers {
    fn session(&self) -> Arc<dyn Store> {
        let mut sessions = self.0.sessions.lock();
        let (number, asked) = (sessions.len() as u64, self.0.environment.now());
        let (servers, state) = (Arc::clone(&self.0), watch::channel(State::New).0);
        let session = Arc::new(Session { servers, number, asked, state, under_way: Arc::default() });
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
        let _under_way = Arc::clone(&self.under_way);
        self.servers.sent.lock().push(request);
        let fate = self.servers.fates.of(request);
        let answer = match &fate {
            Fate::Lost => return std::future::pending().await,
            Fate::Refused(fault) => Err(fault.clone()),
            Fate::Done | Fate::Late(_) | Fate::Unheard => work(self.servers.nodes().transaction()),
        };
        match fate {
            Fate::Unheard => std::future::pending().await,
            Fate::Late(time) => self.servers.environment.sleep(TRIP + time).await,
            _ => self.servers.environment.sleep(TRIP).await,
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

    fn end(&self, then: Moment) {
        self.state.send_replace(State::Over);
        let (servers, number) = (Arc::clone(&self.servers), self.number);
        let (left, under_way) = (then.since(servers.environment.now()), Arc::downgrade(&self.under_way));
        let all_answered = move || under_way.strong_count() <= 1;
        if left.is_zero() && all_answered() {
            return servers.nodes().transaction().end(number);
        }
        tokio::spawn(async move {
            servers.environment.sleep(left).await;
            while !all_answered() {
                servers.environment.sleep(TRIP).await;
            }
            servers.nodes().transaction().end(number);
        });
    }

    async fn check(&self, path: &str) -> Result<(), Fault> {
        let check = |nodes: &mut Nodes| {
            nodes.tell_now();
            nodes.read(path).map(drop)
        };
        self.trip("check", check).await
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

    async fn remove_version(&self, path: &str, version: i64) -> Result<(), Fault> {
        let remove = |nodes: &mut Nodes| nodes.write(path, b"", version).and_then(|()| nodes.remove(path));
        self.trip("remove_version", remove).await
    }

    async fn write_content(&self, path: &str, content: &[u8], version: i64) -> Result<(), Fault> {
        self.trip("write_content", |nodes| nodes.write(path, content, version)).await
    }

    async fn catch_up(&self, _path: &str) -> Result<(), Fault> {
        let catch_up = |_: &mut Nodes| {
            self.servers.fates.catch_up();
            Ok(())
        };
        self.trip("catch_up", catch_up).await
    }

    async fn sync(&self, _path: &str) -> Result<(), Fault> {
        self.trip("sync", |_| Ok(())).await
    }

    async fn list(&self, lock: &str) -> Result<Vec<String>, Fault> {
        let list = |nodes: &mut Nodes| match self.servers.fates.is_behind() {
            true => Err(Fault::NoNode),
            false => nodes.names(lock),
        };
        self.trip("list", list).await
    }

    async fn list_and_watch(&self, lock: &str) -> Result<(Vec<String>, WatchEvent), Fault> {
        let ask = |nodes: &mut Nodes| Ok((nodes.names(lock)?, nodes.watch(lock, On::Children, self.number)?));
        self.trip("list_and_watch", ask).await
    }

    async fn token(&self, path: &str) -> Result<Option<StoreToken>, Fault> {
        self.trip("token", |nodes| Ok(nodes.read(path).ok().and_then(|stored| stored.token))).await
    }

    async fn read(&self, path: &str) -> Result<Contender, Fault> {
        let read = |nodes: &mut Nodes| match self.servers.fates.is_behind() {
            true => Err(Fault::NoNode),
            false => nodes.read(path),
        };
        self.trip("read", read).await
    }

    async fn read_and_watch(&self, path: &str) -> Result<(Vec<u8>, WatchEvent), Fault> {
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
