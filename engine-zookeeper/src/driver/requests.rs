//! The requests to the servers. Each may be answered late or never: then it is not known whether it took effect.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use ylock_core::StoreToken;
use zookeeper_client::{CreateMode, EventType, MultiWriteResult, OneshotWatcher, Stat, WatchedEvent};

use super::errors::Fault;
use super::session::Session;
use crate::algorithm::node::{Name, Tag};
use crate::algorithm::place::Place;

/// A contender's node that was just made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made {
    pub(crate) name: Name,
    /// `None` from servers that do not tell it.
    pub(crate) token: Option<StoreToken>,
}

/// A watch that fires once, when a node changes or the session ends.
#[derive(Debug)]
pub(crate) struct Told(OneshotWatcher);

impl Told {
    /// Waits until the watch fires. Returns whether it was seen that the node was removed, and by nothing else than a plain removal.
    ///
    /// A contender that is [renamed](Session::rename) is written to first, and that write is what the watch tells then. After a change of
    /// servers only the outcome is told: such an event has no transaction number, and neither has any event of a server before 3.9.
    pub(crate) async fn fires(self) -> bool {
        // The driver panics when the runtime is gone in which it made the session. Then there is nothing more to wait for.
        let event = AssertUnwindSafe(self.0.changed()).catch_unwind().await;
        let was_seen = |event: &WatchedEvent| event.zxid != WatchedEvent::NO_ZXID;
        event.is_ok_and(|event| event.event_type == EventType::NodeDeleted && was_seen(&event))
    }
}

impl Session {
    /// Makes a node and the nodes above it, unless they are there.
    pub(crate) async fn make(&self, path: &str) -> Result<(), Fault> {
        // A user that may not make the node may still use it.
        if self.count(path).await?.is_some() {
            return Ok(());
        }
        let client = self.client()?;
        let options = self.with(CreateMode::Persistent);
        self.write(|| client.mkdir(path, &options)).await
    }

    /// Makes the node of a lock and a contender in it, in one transaction: the contender is alone then. Fails with `NodeExists` if the lock
    /// has a node.
    pub(crate) async fn make_both(
        &self,
        place: &Place,
        key: &[u8],
        tag: &Tag,
        content: &[u8],
    ) -> Result<Made, Fault> {
        let client = self.client()?;
        let mut writer = client.new_multi_writer();
        writer.add_create(&place.lock, key, &self.with(CreateMode::Container))?;
        writer.add_create(
            &place.child(&tag.prefix()),
            content,
            &self.with(CreateMode::EphemeralSequential),
        )?;
        let results = self.multi(writer).await.map_err(Fault::from)?;
        let mut made = made(tag, &results)?;
        // Servers before 3.8.2 do not tell the token of the contender, but that of the lock's node, made in the same transaction.
        made.token = made.token.or_else(|| results.iter().find_map(token_of_result));
        Ok(made)
    }

    /// Makes a contender, at the end of the queue.
    pub(crate) async fn join(&self, place: &Place, tag: &Tag, content: &[u8]) -> Result<Made, Fault> {
        let (path, options) = (place.child(&tag.prefix()), self.with(CreateMode::EphemeralSequential));
        let client = self.client()?;
        let (stat, place) = self.write(|| client.create(&path, content, &options)).await?;
        let place = i32::try_from(place.into_i64()).unwrap_or(i32::MAX);
        Ok(Made { name: Name { tag: *tag, place }, token: token_of(&stat) })
    }

    /// Makes a contender and removes another one of this client, in one transaction.
    pub(crate) async fn replace(
        &self,
        place: &Place,
        old: &Name,
        tag: &Tag,
        content: &[u8],
    ) -> Result<Made, Fault> {
        let client = self.client()?;
        let mut writer = client.new_multi_writer();
        writer.add_create(
            &place.child(&tag.prefix()),
            content,
            &self.with(CreateMode::EphemeralSequential),
        )?;
        writer.add_delete(&place.child(&old.to_string()), None)?;
        let results = self.multi(writer).await.map_err(Fault::from)?;
        made(tag, &results)
    }

    /// Gives a contender another name and content at the same place, in one transaction. A contender that watches its node is told of the
    /// write, not of the removal, and so does not take the place for free.
    ///
    /// Fails with `BadVersion` if another client has written to the node, such as one that revokes the lock: that write must not be lost
    /// with the old node.
    pub(crate) async fn rename(
        &self,
        place: &Place,
        (old, version): (&Name, i32),
        new: &Name,
        content: &[u8],
    ) -> Result<(), Fault> {
        let client = self.client()?;
        let mut writer = client.new_multi_writer();
        let old = place.child(&old.to_string());
        writer.add_set_data(&old, content, Some(version))?;
        writer.add_create(&place.child(&new.to_string()), content, &self.with(CreateMode::Ephemeral))?;
        writer.add_delete(&old, None)?;
        self.multi(writer).await.map(drop).map_err(Fault::from)
    }

    /// Removes a contender and the node of its lock. Fails with `NotEmpty` if another contender is there.
    pub(crate) async fn remove_both(&self, place: &Place, name: &Name) -> Result<(), Fault> {
        let client = self.client()?;
        let mut writer = client.new_multi_writer();
        writer.add_delete(&place.child(&name.to_string()), None)?;
        writer.add_delete(&place.lock, None)?;
        self.multi(writer).await.map(drop).map_err(Fault::from)
    }

    pub(crate) async fn remove(&self, path: &str) -> Result<(), Fault> {
        let client = self.client()?;
        self.write(|| client.delete(path, None)).await
    }

    pub(crate) async fn write_content(&self, path: &str, content: &[u8], version: i32) -> Result<(), Fault> {
        let client = self.client()?;
        self.write(|| client.set_data(path, content, Some(version))).await.map(drop)
    }

    /// Returns the names of a lock's contenders; none if there is no such lock.
    pub(crate) async fn list(&self, place: &Place) -> Result<Vec<String>, Fault> {
        let client = self.client()?;
        or_none(self.ask(client.list_children(&place.lock)).await)
    }

    /// Returns the names of a lock's contenders, not older than this call.
    pub(crate) async fn list_now(&self, place: &Place) -> Result<Vec<String>, Fault> {
        // Both are sent at once. The server answers them in order, the second from what it has when it has caught up.
        let client = self.client()?;
        let (caught_up, list) = (client.sync(&place.lock), client.list_children(&place.lock));
        self.ask(caught_up).await?;
        or_none(self.ask(list).await)
    }

    /// Returns the names of a lock's contenders, and a watch that fires when these change.
    pub(crate) async fn list_and_watch(&self, place: &Place) -> Result<(Vec<String>, Told), Fault> {
        let client = self.client()?;
        let (all, told) = self.ask(client.list_and_watch_children(&place.lock)).await?;
        Ok((all, Told(told)))
    }

    /// Returns the token that a contender has from the transaction that made its node; `None` if the node is not there.
    pub(crate) async fn token(&self, path: &str) -> Result<Option<StoreToken>, Fault> {
        let client = self.client()?;
        let stat = self.ask(client.check_stat(path)).await?;
        Ok(stat.and_then(|stat| token_of(&stat)))
    }

    /// Returns content, version and token of a contender.
    pub(crate) async fn read(&self, path: &str) -> Result<(Vec<u8>, i32, Option<StoreToken>), Fault> {
        let client = self.client()?;
        let (content, stat) = self.ask(client.get_data(path)).await?;
        Ok((content, stat.version, token_of(&stat)))
    }

    /// Returns the content of a contender, and a watch that fires when the node changes or is gone. Leaves no watch behind if the node is
    /// gone already.
    pub(crate) async fn read_and_watch(&self, path: &str) -> Result<(Vec<u8>, Told), Fault> {
        let client = self.client()?;
        let (content, _, told) = self.ask(client.get_and_watch_data(path)).await?;
        Ok((content, Told(told)))
    }

    /// Returns how many children a node has; `None` if it is not there.
    pub(crate) async fn count(&self, path: &str) -> Result<Option<i32>, Fault> {
        let client = self.client()?;
        Ok(self.ask(client.check_stat(path)).await?.map(|stat| stat.num_children))
    }
}

fn or_none(answer: Result<Vec<String>, Fault>) -> Result<Vec<String>, Fault> {
    match answer {
        Err(Fault::NoNode) => Ok(Vec::new()),
        answer => answer,
    }
}

fn made(tag: &Tag, results: &[MultiWriteResult]) -> Result<Made, Fault> {
    let contender = results.iter().find_map(|result| match result {
        MultiWriteResult::Create { path, stat } => {
            let name = path.rsplit('/').next().and_then(|name| Name::read(name).ok())?;
            (name.tag == *tag).then_some(Made { name, token: token_of(stat) })
        }
        _ => None,
    });
    contender.ok_or_else(|| Fault::UnexpectedError("the server did not say what it made".to_owned()))
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
