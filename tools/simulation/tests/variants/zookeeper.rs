//! Mistakes that can be made between the algorithm and an ensemble.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ylock_core::environment::{BoxFuture, Environment, Moment};
use ylock_core::{Error, Result as Answer, StoreToken};
use ylock_engine_zookeeper::algorithm::store::{Contender, Created, Ensemble, Fault, Store, WatchEvent};
use ylock_simulation::clocks::Clocks;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    /// A contender of which no answer came is taken as not made.
    ForgetsContenders,
    /// A contender of which no answer came is made again, half a second later.
    MakesLate,
    /// A removal of which no answer came is taken as done.
    ForgetsRemovals,
    /// The server is not asked to catch up before it is asked what there is.
    SearchesBehind,
    /// It is asked by a `sync`.
    SearchesBehindSync,
    /// A heartbeat is a read.
    BeatsByReading,
    /// Leases are for a session that lasts twice as long.
    LeaseIsLonger,
    /// The leader is taken to have heard of the session just before each write.
    IgnoresSilence,
    /// A writer that becomes a reader gets a place at the end of the queue.
    DowngradesToTheEnd,
    /// A contender gives its place up by one request, and takes the next one by another.
    GivesWayInTwo,
    /// Whatever a watch tells is taken for a removal that was seen.
    TakesWritesForRemovals,
    /// The token is the place.
    TokenIsPlace,
}

/// Makes this mistake on a client's way to an ensemble.
pub(crate) fn broken(defect: Defect) -> impl Fn(Arc<dyn Ensemble>, &Arc<Clocks>) -> Arc<dyn Ensemble> {
    move |inner, clocks| Arc::new(BrokenEnsemble { inner, clocks: Arc::clone(clocks), defect })
}

#[derive(Debug)]
struct BrokenEnsemble {
    inner: Arc<dyn Ensemble>,
    clocks: Arc<Clocks>,
    defect: Defect,
}

impl Ensemble for BrokenEnsemble {
    fn session(&self) -> Arc<dyn Store> {
        let (inner, clocks) = (self.inner.session(), Arc::clone(&self.clocks));
        Arc::new(Broken { inner, clocks, defect: self.defect })
    }

    fn no_session(&self) -> Error {
        self.inner.no_session()
    }
}

#[derive(Debug)]
struct Broken {
    inner: Arc<dyn Store>,
    clocks: Arc<Clocks>,
    defect: Defect,
}

/// Returns whether no answer came.
fn is_in_doubt<T>(answer: &Result<T, Fault>) -> bool {
    matches!(answer, Err(Fault::ConnectionLoss))
}

impl Broken {
    fn is(&self, defect: Defect) -> bool {
        self.defect == defect
    }

    fn made(&self, mut answer: Result<Created, Fault>) -> Result<Created, Fault> {
        if self.is(Defect::ForgetsContenders) && is_in_doubt(&answer) {
            return Err(Fault::NoNode);
        }
        if let (true, Ok(created)) = (self.is(Defect::TokenIsPlace), &mut answer) {
            created.token = token_of(created.place);
        }
        answer
    }

    fn removed(&self, answer: Result<(), Fault>) -> Result<(), Fault> {
        if self.is(Defect::ForgetsRemovals) && is_in_doubt(&answer) { Ok(()) } else { answer }
    }

    fn told(&self, told: WatchEvent) -> WatchEvent {
        if self.is(Defect::TakesWritesForRemovals) {
            return Box::pin(async move {
                told.await;
                true
            });
        }
        told
    }

    /// Makes a contender once more, as a driver would that sends requests again by itself.
    fn make_late(&self, lock: &str, name: &str, content: &[u8]) {
        let (inner, clocks) = (Arc::clone(&self.inner), Arc::clone(&self.clocks));
        let (lock, name, content) = (lock.to_owned(), name.to_owned(), content.to_vec());
        self.clocks.spawn(Box::pin(async move {
            clocks.sleep(Duration::from_millis(500)).await;
            drop(inner.join(&lock, &name, &content).await);
        }));
    }
}

fn token_of(place: i64) -> Option<StoreToken> {
    StoreToken::new(u64::try_from(place).ok()? + 1)
}

#[async_trait]
impl Store for Broken {
    fn is_attached(&self) -> bool {
        self.inner.is_attached()
    }

    async fn attach(&self) -> Answer<()> {
        self.inner.attach().await
    }

    fn until_over(&self) -> BoxFuture {
        self.inner.until_over()
    }

    fn is_over(&self) -> bool {
        self.inner.is_over()
    }

    fn timeout(&self) -> Duration {
        let longer = if self.is(Defect::LeaseIsLonger) { 2 } else { 1 };
        self.inner.timeout() * longer
    }

    fn asked(&self) -> Moment {
        if self.is(Defect::IgnoresSilence) { self.clocks.now() } else { self.inner.asked() }
    }

    fn end(&self, then: Moment) {
        self.inner.end(then);
    }

    async fn check(&self, path: &str) -> Result<(), Fault> {
        match self.defect {
            Defect::BeatsByReading => self.inner.read(path).await.map(drop),
            _ => self.inner.check(path).await,
        }
    }

    async fn mkdir(&self, path: &str) -> Result<(), Fault> {
        self.inner.mkdir(path).await
    }

    async fn make_both(&self, lock: &str, key: &[u8], name: &str, content: &[u8]) -> Result<Created, Fault> {
        self.made(self.inner.make_both(lock, key, name, content).await)
    }

    async fn join(&self, lock: &str, name: &str, content: &[u8]) -> Result<Created, Fault> {
        let answer = self.inner.join(lock, name, content).await;
        if self.is(Defect::MakesLate) && is_in_doubt(&answer) {
            self.make_late(lock, name, content);
        }
        self.made(answer)
    }

    async fn replace(&self, lock: &str, old: &str, name: &str, content: &[u8]) -> Result<Created, Fault> {
        if self.is(Defect::GivesWayInTwo) {
            self.inner.remove(&format!("{lock}/{old}")).await?;
            return self.inner.join(lock, name, content).await;
        }
        self.made(self.inner.replace(lock, old, name, content).await)
    }

    async fn rename(&self, lock: &str, old: (&str, i64), new: &str, content: &[u8]) -> Result<(), Fault> {
        if self.is(Defect::DowngradesToTheEnd) {
            // Ten digits are the place.
            let name = &new[..new.len() - 10];
            return self.inner.replace(lock, old.0, name, content).await.map(drop);
        }
        self.inner.rename(lock, old, new, content).await
    }

    async fn remove_both(&self, lock: &str, name: &str) -> Result<(), Fault> {
        self.removed(self.inner.remove_both(lock, name).await)
    }

    async fn remove(&self, path: &str) -> Result<(), Fault> {
        self.removed(self.inner.remove(path).await)
    }

    async fn remove_version(&self, path: &str, version: i64) -> Result<(), Fault> {
        self.inner.remove_version(path, version).await
    }

    async fn write_content(&self, path: &str, content: &[u8], version: i64) -> Result<(), Fault> {
        self.inner.write_content(path, content, version).await
    }

    async fn catch_up(&self, path: &str) -> Result<(), Fault> {
        match self.defect {
            Defect::SearchesBehind => Ok(()),
            Defect::SearchesBehindSync => self.inner.sync(path).await,
            _ => self.inner.catch_up(path).await,
        }
    }

    async fn sync(&self, path: &str) -> Result<(), Fault> {
        self.inner.sync(path).await
    }

    async fn list(&self, lock: &str) -> Result<Vec<String>, Fault> {
        self.inner.list(lock).await
    }

    async fn list_and_watch(&self, lock: &str) -> Result<(Vec<String>, WatchEvent), Fault> {
        self.inner.list_and_watch(lock).await
    }

    async fn token(&self, path: &str) -> Result<Option<StoreToken>, Fault> {
        let token = self.inner.token(path).await?;
        if self.is(Defect::TokenIsPlace) {
            return Ok(token.and_then(|_| token_of(path[path.len() - 10..].parse().ok()?)));
        }
        Ok(token)
    }

    async fn read(&self, path: &str) -> Result<Contender, Fault> {
        self.inner.read(path).await
    }

    async fn read_and_watch(&self, path: &str) -> Result<(Vec<u8>, WatchEvent), Fault> {
        let (content, told) = self.inner.read_and_watch(path).await?;
        Ok((content, self.told(told)))
    }

    async fn count(&self, path: &str) -> Result<Option<i32>, Fault> {
        self.inner.count(path).await
    }
}
