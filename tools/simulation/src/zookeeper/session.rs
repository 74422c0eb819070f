//! The servers as the algorithm sees them: the sessions of one client.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::oneshot;
use ylock_core::environment::{BoxFuture, Environment, Moment};
use ylock_core::{Error, ErrorKind, Result as Answer, StoreToken};
use ylock_engine_zookeeper::algorithm::store::{self, Contender, Created, Fault, Store, WatchEvent};

use super::driver::{Ask, Driver, Mistakes, Request};
use super::ensemble::Ensemble;
use super::event::{Body, Read, Reply};
use super::line::{Line, State};
use super::mailbox::Incoming;
use super::step::{Kind, Step};
use super::tree::On;
use crate::clocks::Clocks;

/// A client's way to the ensemble.
#[derive(Clone)]
pub struct Clients {
    ensemble: Arc<Ensemble>,
    clocks: Arc<Clocks>,
    timeout: Duration,
    mistakes: Mistakes,
}

struct Session {
    client: Clients,
    line: Arc<Line>,
}

impl Clients {
    /// Creates the way of one client, whose sessions have this timeout.
    pub fn new(
        ensemble: &Arc<Ensemble>,
        clocks: &Arc<Clocks>,
        timeout: Duration,
        mistakes: Mistakes,
    ) -> Self {
        Self { ensemble: Arc::clone(ensemble), clocks: Arc::clone(clocks), timeout, mistakes }
    }
}

impl store::Ensemble for Clients {
    fn session(&self) -> Arc<dyn Store> {
        Arc::new(Session { client: self.clone(), line: Line::new() })
    }

    fn no_session(&self) -> Error {
        Error::new(ErrorKind::Unavailable, "no server grants a session")
    }
}

impl Session {
    fn drive(&self) {
        let Clients { ensemble, clocks, timeout, mistakes } = &self.client;
        let driver = Driver::new(ensemble, &self.line, clocks, *timeout, *mistakes);
        clocks.spawn_for_all(Box::pin(driver.run()));
    }

    /// Sends a request when this is polled for the first time, and waits for its answer.
    async fn ask(&self, ask: Ask) -> Result<(Reply, Option<WatchEvent>), Fault> {
        if !self.line.is_live() {
            return Err(Fault::ConnectionLoss);
        }
        let (answer, told) = oneshot::channel();
        self.line.mailbox.put(Incoming::Request(Request { ask, answer }));
        // The process is killed.
        told.await.unwrap_or(Err(Fault::ConnectionLoss))
    }

    async fn write(&self, steps: impl Into<Arc<[Step]>>) -> Result<Vec<Created>, Fault> {
        match self.ask(Ask::Write(Body::Steps(steps.into()))).await? {
            (Reply::NewNode(made), _) => Ok(made),
            _ => unreachable!("a write is answered by what it has made"),
        }
    }

    async fn make(&self, steps: impl Into<Arc<[Step]>>) -> Result<Created, Fault> {
        self.write(steps).await?.pop().ok_or(Fault::NoNode)
    }

    async fn names(&self, lock: &str, on: Option<On>) -> Result<(Vec<String>, Option<WatchEvent>), Fault> {
        match self.ask(Ask::Read(Read::Names(lock.to_owned()), on)).await? {
            (Reply::Names(names), told) => Ok((names, told)),
            _ => unreachable!("names are answered by names"),
        }
    }

    async fn node(&self, path: &str, on: Option<On>) -> Result<(Contender, Option<WatchEvent>), Fault> {
        match self.ask(Ask::Read(Read::Node(path.to_owned()), on)).await? {
            (Reply::Node(node), told) => Ok((node, told)),
            _ => unreachable!("a node is answered by a node"),
        }
    }

    async fn stat(&self, path: &str) -> Result<Option<(i32, Option<StoreToken>)>, Fault> {
        match self.ask(Ask::Read(Read::Stat(path.to_owned()), None)).await? {
            (Reply::Stat(stat), _) => Ok(stat),
            _ => unreachable!("a stat is answered by a stat"),
        }
    }
}

#[async_trait]
impl Store for Session {
    fn is_attached(&self) -> bool {
        self.line.is_live()
    }

    async fn attach(&self) -> Answer<()> {
        if self.line.begin_to_dial() {
            self.drive();
        }
        self.line.until(|state| !matches!(state, State::Dialing)).await;
        match self.line.is_live() {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Unavailable, "the session has ended")),
        }
    }

    fn until_over(&self) -> BoxFuture {
        self.line.until(|state| matches!(state, State::Over(_)))
    }

    fn is_over(&self) -> bool {
        self.line.is_over()
    }

    fn timeout(&self) -> Duration {
        self.line.known().map_or(Duration::ZERO, |known| known.timeout)
    }

    fn asked(&self) -> Moment {
        self.line.known().map_or(Moment::ZERO, |known| known.asked)
    }

    fn end(&self, then: Moment) {
        self.line.end(then);
    }

    async fn check(&self, path: &str) -> Result<(), Fault> {
        self.write([Step::Check(path.to_owned())]).await.map(drop)
    }

    async fn mkdir(&self, path: &str) -> Result<(), Fault> {
        let ends = path.match_indices('/').map(|(end, _)| end).skip(1).chain([path.len()]);
        for end in ends {
            let step = Step::Create(path[..end].to_owned(), Vec::new(), Kind::Persistent);
            match self.write([step]).await {
                Ok(_) | Err(Fault::NodeExists) => {}
                Err(fault) => return Err(fault),
            }
        }
        Ok(())
    }

    async fn make_both(&self, lock: &str, key: &[u8], name: &str, content: &[u8]) -> Result<Created, Fault> {
        let lock_step = Step::Create(lock.to_owned(), key.to_vec(), Kind::Container);
        self.make([lock_step, contender(lock, name, content)]).await
    }

    async fn join(&self, lock: &str, name: &str, content: &[u8]) -> Result<Created, Fault> {
        self.make([contender(lock, name, content)]).await
    }

    async fn replace(&self, lock: &str, old: &str, name: &str, content: &[u8]) -> Result<Created, Fault> {
        self.make([contender(lock, name, content), Step::Delete(child(lock, old))]).await
    }

    async fn rename(
        &self,
        lock: &str,
        (old, version): (&str, i64),
        new: &str,
        content: &[u8],
    ) -> Result<(), Fault> {
        check_version(version)?;
        let old = child(lock, old);
        let steps = [
            Step::Write(old.clone(), content.to_vec(), version),
            Step::Create(child(lock, new), content.to_vec(), Kind::Ephemeral),
            Step::Delete(old),
        ];
        self.write(steps).await.map(drop)
    }

    async fn remove_both(&self, lock: &str, name: &str) -> Result<(), Fault> {
        self.write([Step::Delete(child(lock, name)), Step::Delete(lock.to_owned())]).await.map(drop)
    }

    async fn remove(&self, path: &str) -> Result<(), Fault> {
        self.write([Step::Delete(path.to_owned())]).await.map(drop)
    }

    async fn remove_version(&self, path: &str, version: i64) -> Result<(), Fault> {
        check_version(version)?;
        // A server has one request for it. Nobody watches these nodes, so it does not matter what would be told of the write.
        let write = Step::Write(path.to_owned(), Vec::new(), version);
        self.write([write, Step::Delete(path.to_owned())]).await.map(drop)
    }

    async fn write_content(&self, path: &str, content: &[u8], version: i64) -> Result<(), Fault> {
        check_version(version)?;
        self.write([Step::Write(path.to_owned(), content.to_vec(), version)]).await.map(drop)
    }

    async fn catch_up(&self, _path: &str) -> Result<(), Fault> {
        match self.check("/").await {
            Err(Fault::NoNode) => Ok(()),
            answer => answer,
        }
    }

    async fn sync(&self, _path: &str) -> Result<(), Fault> {
        self.ask(Ask::Sync).await.map(drop)
    }

    async fn list(&self, lock: &str) -> Result<Vec<String>, Fault> {
        self.names(lock, None).await.map(|(names, _)| names)
    }

    async fn list_and_watch(&self, lock: &str) -> Result<(Vec<String>, WatchEvent), Fault> {
        self.names(lock, Some(On::Children)).await.map(|(names, told)| (names, or_never(told)))
    }

    async fn token(&self, path: &str) -> Result<Option<StoreToken>, Fault> {
        match self.stat(path).await? {
            Some((_, token)) => token.map(Some).ok_or(Fault::OutOfTokens),
            None => Ok(None),
        }
    }

    async fn read(&self, path: &str) -> Result<Contender, Fault> {
        self.node(path, None).await.map(|(node, _)| node)
    }

    async fn read_and_watch(&self, path: &str) -> Result<(Vec<u8>, WatchEvent), Fault> {
        self.node(path, Some(On::Node)).await.map(|(node, told)| (node.content, or_never(told)))
    }

    async fn count(&self, path: &str) -> Result<Option<i32>, Fault> {
        self.stat(path).await.map(|stat| stat.map(|(children, _)| children))
    }
}

fn or_never(told: Option<WatchEvent>) -> WatchEvent {
    told.unwrap_or_else(|| Box::pin(std::future::pending()))
}

/// The driver refuses a negative version: for the servers -1 would stand for every version.
fn check_version(version: i64) -> Result<(), Fault> {
    if version < 0 { Err(Fault::BadVersion) } else { Ok(()) }
}

fn child(lock: &str, name: &str) -> String {
    format!("{lock}/{name}")
}

fn contender(lock: &str, name: &str, content: &[u8]) -> Step {
    Step::Create(child(lock, name), content.to_vec(), Kind::Numbered)
}

impl Drop for Session {
    /// A session that no task has any more is closed.
    fn drop(&mut self) {
        self.end(Moment::ZERO);
    }
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clients")
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Session").field(&self.line.known().map(|known| known.session)).finish()
    }
}
