//! The requests of a session: each with its time limit and counted, see [`Link::ask`] and its
//! neighbours.

use ylock_core::StoreToken;

use super::in_flight::InFlight;
use super::link::Link;
use super::node::{Name, Tag};
use super::place::Place;
use super::store::{Contender, Created, Fault, WatchEvent};

/// A contender's node that was just made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewNode {
    pub(crate) name: Name,
    /// `None` from servers that do not tell it, if the floor may have changed, and if there is
    /// none: then [`Link::token`] tells.
    pub(crate) token: Option<StoreToken>,
}

impl Link {
    fn made(&self, tag: &Tag, created: Created) -> NewNode {
        let place = i32::try_from(created.place).unwrap_or(i32::MAX);
        let token = created.token.filter(|_| self.knows_floor()).and_then(|token| self.floor.token(token));
        NewNode { name: Name { tag: *tag, place }, token }
    }

    /// Makes a node and the nodes above it, unless they are there.
    pub(crate) async fn make(&self, path: &str) -> Result<(), Fault> {
        // A user that may not make the node may still use it.
        if self.count(path).await?.is_some() {
            return Ok(());
        }
        self.write(self.store.mkdir(path)).await
    }

    /// Makes the node of a lock and a contender in it, in one transaction: the contender is alone then. Fails with `NodeExists` if the lock
    /// has a node.
    pub(crate) async fn make_both(
        &self,
        place: &Place,
        key: &[u8],
        tag: &Tag,
        content: &[u8],
    ) -> Result<NewNode, Fault> {
        let prefix = tag.prefix();
        let created = self.transact(self.store.make_both(&place.lock, key, &prefix, content)).await?;
        Ok(self.made(tag, created))
    }

    /// Makes a contender, at the end of the queue.
    pub(crate) async fn join(&self, place: &Place, tag: &Tag, content: &[u8]) -> Result<NewNode, Fault> {
        let prefix = tag.prefix();
        let created = self.write(self.store.join(&place.lock, &prefix, content)).await?;
        Ok(self.made(tag, created))
    }

    /// Makes a contender and removes another one of this client, in one transaction.
    pub(crate) async fn replace(
        &self,
        place: &Place,
        old: &Name,
        tag: &Tag,
        content: &[u8],
    ) -> Result<NewNode, Fault> {
        let (old, prefix) = (old.to_string(), tag.prefix());
        let created = self.transact(self.store.replace(&place.lock, &old, &prefix, content)).await?;
        Ok(self.made(tag, created))
    }

    /// Gives a contender another name and content at the same place, in one transaction. A contender that watches its node is told of the
    /// write, not of the removal, and so does not take the place for free.
    ///
    /// Fails with `BadVersion` if another client has written to the node, such as one that revokes the lock: that write must not be lost
    /// with the old node.
    pub(crate) async fn rename(
        &self,
        place: &Place,
        (old, version): (&Name, i64),
        new: &Name,
        content: &[u8],
    ) -> Result<(), Fault> {
        let (old, new) = (old.to_string(), new.to_string());
        self.transact(self.store.rename(&place.lock, (&old, version), &new, content)).await
    }

    /// Removes a contender and the node of its lock. Fails with `NotEmpty` if another contender is there.
    pub(crate) async fn remove_both(&self, place: &Place, name: &Name) -> Result<(), Fault> {
        let name = name.to_string();
        self.transact(self.store.remove_both(&place.lock, &name)).await
    }

    pub(crate) async fn remove(&self, path: &str) -> Result<(), Fault> {
        self.write(self.store.remove(path)).await
    }

    /// Removes a node, if its content still has this version.
    pub(crate) async fn remove_version(&self, path: &str, version: i64) -> Result<(), Fault> {
        self.write(self.store.remove_version(path, version)).await
    }

    pub(crate) async fn write_content(&self, path: &str, content: &[u8], version: i64) -> Result<(), Fault> {
        self.write(self.store.write_content(path, content, version)).await
    }

    /// Returns the names of a lock's contenders; none if there is no such lock.
    pub(crate) async fn list(&self, place: &Place) -> Result<Vec<String>, Fault> {
        or_none(self.ask(self.store.list(&place.lock)).await)
    }

    /// Returns the names of a lock's contenders, after all writes that were answered to any client before this call, and all that this session has
    /// sent over this connection or another one: what is not there then never will be.
    pub(crate) async fn list_after_all(&self, place: &Place) -> Result<Vec<String>, Fault> {
        self.attached()?;
        // Both are sent at once. The server answers them in order, the second from what it has when it has caught up.
        let caught_up = InFlight::send(self.store.catch_up(&place.lock));
        let list = InFlight::send(self.store.list(&place.lock));
        self.caught_up(caught_up).await?;
        or_none(self.answer(list).await)
    }

    /// Returns the names of a lock's contenders, not older than this call but as [`sync`](super::store::Store::sync) says.
    pub(crate) async fn list_now(&self, place: &Place) -> Result<Vec<String>, Fault> {
        self.attached()?;
        // As in `list_after_all`.
        let synced = InFlight::send(self.store.sync(&place.lock));
        let list = InFlight::send(self.store.list(&place.lock));
        self.answer(synced).await?;
        or_none(self.answer(list).await)
    }

    /// Returns the names of a lock's contenders, and a watch that fires when these change.
    pub(crate) async fn list_and_watch(&self, place: &Place) -> Result<(Vec<String>, WatchEvent), Fault> {
        self.ask(self.store.list_and_watch(&place.lock)).await
    }

    /// Returns content, version and token of a node.
    pub(crate) async fn read(&self, path: &str) -> Result<Contender, Fault> {
        let stored = self.ask(self.store.read(path)).await?;
        let token = stored.token.and_then(|number| self.floor.token(number));
        Ok(Contender { token, ..stored })
    }

    /// Returns content and version of a node, after all writes that were answered to any client before this call.
    pub(crate) async fn read_after_all(&self, path: &str) -> Result<Contender, Fault> {
        self.attached()?;
        // As in `list_after_all`.
        let caught_up = InFlight::send(self.store.catch_up(path));
        let read = InFlight::send(self.store.read(path));
        self.caught_up(caught_up).await?;
        self.answer(read).await
    }

    /// Returns the content of a contender, and a watch that fires when the node changes or is gone. Leaves no watch behind if the node is
    /// gone already.
    pub(crate) async fn read_and_watch(&self, path: &str) -> Result<(Vec<u8>, WatchEvent), Fault> {
        self.ask(self.store.read_and_watch(path)).await
    }

    /// Makes a node that goes with the session, and returns when the servers say that it was made, in milliseconds since 1970.
    pub(crate) async fn make_for_the_time(&self, path: &str) -> Result<Option<i64>, Fault> {
        self.write(self.store.make_for_the_time(path)).await
    }

    /// Returns how many children a node has; `None` if it is not there.
    pub(crate) async fn count(&self, path: &str) -> Result<Option<i32>, Fault> {
        self.ask(self.store.count(path)).await
    }
}

fn or_none(answer: Result<Vec<String>, Fault>) -> Result<Vec<String>, Fault> {
    match answer {
        Err(Fault::NoNode) => Ok(Vec::new()),
        answer => answer,
    }
}
