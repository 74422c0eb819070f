//! The tree of nodes, as one session sees it. Each request may be answered late or never: then it is not known whether it took effect.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use ylock_core::environment::{BoxFuture, Moment};
use ylock_core::{Result as Answer, StoreToken};
use zookeeper_client::{
    Acls, Client, CreateMode, CreateOptions, Error, EventType, MultiWriteResult, MultiWriter, OneshotWatcher,
    Stat, WatchedEvent,
};

use super::connection::Connection;
use super::dialer::Dialer;
use super::errors::translated;
use crate::algorithm::store::{Cause, Contender, Created, Fault, Store, WatchEvent};
use crate::options::Acl;

/// The tree of nodes, over the connection of a session; see the [module](self).
#[derive(Debug)]
pub(super) struct Tree {
    connection: Arc<Connection>,
    acl: Acl,
}

impl Tree {
    /// Creates a session that has not begun yet.
    pub(super) fn new(dialer: &Arc<Dialer>) -> Self {
        Self { connection: Connection::new(dialer), acl: dialer.options.acl() }
    }

    /// Returns the driver, without waiting for it: what is sent for a claim is sent in the step that looks at the claim.
    fn client(&self) -> Result<Arc<Client>, Fault> {
        self.connection.client().ok_or(Fault::ConnectionLoss)
    }

    fn with(&self, mode: CreateMode) -> CreateOptions<'static> {
        mode.with_acls(match self.acl {
            Acl::Open => Acls::anyone_all(),
            Acl::Creator => Acls::creator_all(),
        })
    }

    /// Sends what `fill` puts in, in one transaction.
    async fn transact<F>(&self, fill: F) -> Result<Vec<MultiWriteResult>, Fault>
    where
        F: FnOnce(&mut MultiWriter<'_>) -> Result<(), Error> + Send,
    {
        let client = self.client()?;
        let mut writer = client.new_multi_writer();
        fill(&mut writer).map_err(translated)?;
        writer.commit().await.map_err(|error| translated(error.into()))
    }
}

/// Sends a transaction that changes nothing, and returns when it is done: the server that answers shows then all that was done before.
pub(super) async fn write_nothing(client: &Client) -> Result<(), Error> {
    let mut writer = client.new_multi_writer();
    writer.add_check_version("/", -1)?;
    match writer.commit().await.map_err(Error::from) {
        // A transaction that is refused has its place among the others too.
        Ok(_) | Err(Error::NoNode | Error::NoAuth) => Ok(()),
        Err(error) => Err(error),
    }
}

#[async_trait]
impl Store for Tree {
    fn is_attached(&self) -> bool {
        self.connection.client().is_some()
    }

    async fn attach(&self) -> Answer<()> {
        self.connection.attach().await
    }

    fn until_over(&self) -> BoxFuture {
        Box::pin(self.connection.until_over())
    }

    fn is_over(&self) -> bool {
        self.connection.is_over()
    }

    fn timeout(&self) -> Duration {
        self.connection.timeout()
    }

    fn asked(&self) -> Moment {
        self.connection.asked()
    }

    fn end(&self, then: Moment) {
        self.connection.end(then);
    }

    async fn check(&self, path: &str) -> Result<(), Fault> {
        self.transact(|writer| writer.add_check_version(path, -1)).await.map(drop)
    }

    async fn mkdir(&self, path: &str) -> Result<(), Fault> {
        let options = self.with(CreateMode::Persistent);
        self.client()?.mkdir(path, &options).await.map_err(translated)
    }

    async fn make_both(&self, lock: &str, key: &[u8], name: &str, content: &[u8]) -> Result<Created, Fault> {
        let results = self.transact(|writer| {
            writer.add_create(lock, key, &self.with(CreateMode::Container))?;
            writer.add_create(&child(lock, name), content, &self.with(CreateMode::EphemeralSequential))
        });
        let results = results.await?;
        let mut created = created(name, &results)?;
        // Servers before 3.8.2 do not tell the token of the contender, but that of the lock's node, made in the same transaction.
        created.token = created.token.or_else(|| results.iter().find_map(token_of_result));
        Ok(created)
    }

    async fn join(&self, lock: &str, name: &str, content: &[u8]) -> Result<Created, Fault> {
        let (path, options) = (child(lock, name), self.with(CreateMode::EphemeralSequential));
        let client = self.client()?;
        let (stat, place) = client.create(&path, content, &options).await.map_err(translated)?;
        Ok(Created { place: place.into_i64(), token: token_of(&stat) })
    }

    async fn replace(&self, lock: &str, old: &str, name: &str, content: &[u8]) -> Result<Created, Fault> {
        let results = self.transact(|writer| {
            writer.add_create(&child(lock, name), content, &self.with(CreateMode::EphemeralSequential))?;
            writer.add_delete(&child(lock, old), None)
        });
        created(name, &results.await?)
    }

    async fn rename(
        &self,
        lock: &str,
        (old, version): (&str, i64),
        new: &str,
        content: &[u8],
    ) -> Result<(), Fault> {
        let (old, version) = (child(lock, old), version_of_server(version)?);
        let results = self.transact(|writer| {
            writer.add_set_data(&old, content, Some(version))?;
            writer.add_create(&child(lock, new), content, &self.with(CreateMode::Ephemeral))?;
            writer.add_delete(&old, None)
        });
        results.await.map(drop)
    }

    async fn remove_both(&self, lock: &str, name: &str) -> Result<(), Fault> {
        let results = self.transact(|writer| {
            writer.add_delete(&child(lock, name), None)?;
            writer.add_delete(lock, None)
        });
        results.await.map(drop)
    }

    async fn remove(&self, path: &str) -> Result<(), Fault> {
        self.client()?.delete(path, None).await.map_err(translated)
    }

    async fn remove_version(&self, path: &str, version: i64) -> Result<(), Fault> {
        let version = version_of_server(version)?;
        self.client()?.delete(path, Some(version)).await.map_err(translated)
    }

    async fn write_content(&self, path: &str, content: &[u8], version: i64) -> Result<(), Fault> {
        let version = version_of_server(version)?;
        self.client()?.set_data(path, content, Some(version)).await.map(drop).map_err(translated)
    }

    async fn catch_up(&self, _path: &str) -> Result<(), Fault> {
        write_nothing(&*self.client()?).await.map_err(translated)
    }

    async fn sync(&self, path: &str) -> Result<(), Fault> {
        self.client()?.sync(path).await.map_err(translated)
    }

    async fn list(&self, lock: &str) -> Result<Vec<String>, Fault> {
        self.client()?.list_children(lock).await.map_err(translated)
    }

    async fn list_and_watch(&self, lock: &str) -> Result<(Vec<String>, WatchEvent), Fault> {
        let (all, watcher) = self.client()?.list_and_watch_children(lock).await.map_err(translated)?;
        Ok((all, Box::pin(fires(watcher))))
    }

    async fn token(&self, path: &str) -> Result<Option<StoreToken>, Fault> {
        let stat = self.client()?.check_stat(path).await.map_err(translated)?;
        stat.map(|stat| token_of(&stat).ok_or(Fault::OutOfTokens)).transpose()
    }

    async fn read(&self, path: &str) -> Result<Contender, Fault> {
        let (content, stat) = self.client()?.get_data(path).await.map_err(translated)?;
        Ok(Contender { content, version: stat.version.into(), token: token_of(&stat) })
    }

    async fn read_and_watch(&self, path: &str) -> Result<(Vec<u8>, WatchEvent), Fault> {
        let (content, _, watcher) = self.client()?.get_and_watch_data(path).await.map_err(translated)?;
        Ok((content, Box::pin(fires(watcher))))
    }

    async fn make_for_the_time(&self, path: &str) -> Result<Option<i64>, Fault> {
        let options = self.with(CreateMode::Ephemeral);
        let (stat, _) = self.client()?.create(path, &[], &options).await.map_err(translated)?;
        // The server does not tell it with the answer, unless it is a recent one.
        if stat.ctime > 0 {
            return Ok(Some(stat.ctime));
        }
        let stat = self.client()?.check_stat(path).await.map_err(translated)?;
        Ok(stat.map(|stat| stat.ctime))
    }

    async fn count(&self, path: &str) -> Result<Option<i32>, Fault> {
        let stat = self.client()?.check_stat(path).await.map_err(translated)?;
        Ok(stat.map(|stat| stat.num_children))
    }
}

/// Waits until a watch fires. Returns whether it was seen that the node was removed, and by nothing else than a plain removal.
///
/// After a change of servers only the outcome is told: such an event has no transaction number, and neither has any event of a server
/// before 3.9.
async fn fires(watcher: OneshotWatcher) -> bool {
    // The driver panics when the runtime is gone in which it made the session. Then there is nothing more to wait for.
    let event = AssertUnwindSafe(watcher.changed()).catch_unwind().await;
    let was_seen = |event: &WatchedEvent| event.zxid != WatchedEvent::NO_ZXID;
    event.is_ok_and(|event| event.event_type == EventType::NodeDeleted && was_seen(&event))
}

fn child(lock: &str, name: &str) -> String {
    format!("{lock}/{name}")
}

/// Returns a version as the server has it. No node has another one: -1 would stand for every version there.
fn version_of_server(version: i64) -> Result<i32, Fault> {
    i32::try_from(version).ok().filter(|version| *version >= 0).ok_or(Fault::BadVersion)
}

fn created(name: &str, results: &[MultiWriteResult]) -> Result<Created, Fault> {
    let contender = results.iter().find_map(|result| match result {
        MultiWriteResult::Create { path, stat } => {
            let place = path.rsplit('/').next()?.strip_prefix(name)?.parse().ok()?;
            Some(Created { place, token: token_of(stat) })
        }
        _ => None,
    });
    contender.ok_or_else(|| {
        let error = Error::UnexpectedError("the server did not say what it made".to_owned());
        Fault::Other(Cause::new(error))
    })
}

fn token_of_result(result: &MultiWriteResult) -> Option<StoreToken> {
    match result {
        MultiWriteResult::Create { stat, .. } => token_of(stat),
        _ => None,
    }
}

/// Returns the number of the transaction that made the node: it grows from one transaction to the next, over all nodes and for ever.
fn token_of(stat: &Stat) -> Option<StoreToken> {
    u64::try_from(stat.czxid).ok().and_then(StoreToken::new)
}
