//! The servers as the algorithm needs them, with nothing of how the driver provides it.
//!
//! A [`Store`] is one session with the servers: the requests that the algorithm sends on it, one trip each, and the life of the session.
//! An [`Ensemble`] makes sessions.
//!
//! The servers have a node for each lock; in it one node for each *contender*, which belongs to the session that made it and is gone when
//! that session ends. A contender's name is what its client gave it and behind that, in ten digits or more, its **place**. The place is
//! what orders contenders: the servers give it when they make the node, larger than all places that the lock's node has given before.
//!
//! # In other stores
//! Each write is one transaction in etcd too. A lock's node is a prefix there, without a key of its own; a contender is a key with the
//! client's lease; the place is the key's `create_revision`, a version its `mod_revision`. What etcd does not have is the order of the
//! requests of one session: there the search for what is left of an acquisition leaves a mark under the same lease, as one more request,
//! and nothing is made where the mark is.
//!
//! | method | ZooKeeper | etcd |
//! |---|---|---|
//! | [`attach`](Store::attach) | a new session, or the same one over another connection | `LeaseGrant`, or the same lease at another member |
//! | [`timeout`](Store::timeout) | the timeout that the servers granted | the TTL that they granted |
//! | [`end`](Store::end) | `closeSession` | `LeaseRevoke` |
//! | [`check`](Store::check) | a transaction with one check | `LeaseKeepAlive` and, sent after it, a linearizable read: both answered in one raft term |
//! | [`mkdir`](Store::mkdir) | `create`, for each level | nothing: a key has no parent |
//! | [`make_both`](Store::make_both) | a transaction: `create` of a container and of an ephemeral, sequential node | if no key has the prefix, and the mark is not there: `put` with the lease |
//! | [`join`](Store::join) | `create` of an ephemeral, sequential node | if neither the key nor the mark is there: `put` with the lease |
//! | [`replace`](Store::replace) | a transaction: `create`, `delete` | if the old key has its place: `delete`, `put` |
//! | [`rename`](Store::rename) | a transaction: `setData` of this version, `create`, `delete` | if the key has this version: `put` with the mode in the value, so that key, place and lease stay |
//! | [`remove_both`](Store::remove_both) | a transaction: two `delete` | as `remove`; never `NotEmpty` |
//! | [`remove`](Store::remove) | `delete` | if the key has its place: `delete` |
//! | [`remove_version`](Store::remove_version) | `delete` of this version | if the key has this version: `delete` |
//! | [`write_content`](Store::write_content) | `setData` of this version | if the key has this version: `put`, the lease stays |
//! | [`catch_up`](Store::catch_up) | a transaction with one check, whatever its answer is | a linearizable read; a `list` sent after it is asked again if its revision is below the one of that read |
//! | [`sync`](Store::sync) | `sync` | as `catch_up` |
//! | [`list`](Store::list) | `getChildren` | a serializable range: the mode in a name comes from the value |
//! | [`list_and_watch`](Store::list_and_watch) | `getChildren` with a watch | a watch from now on, and beside it a range |
//! | [`token`](Store::token) | `exists`: the `czxid` | a range of one key: the `create_revision`, and what makes it grow after a restore |
//! | [`read`](Store::read) | `getData` | a range of one key |
//! | [`read_and_watch`](Store::read_and_watch) | `getData` with a watch | a watch from now on, and beside it a range of one key |
//! | [`count`](Store::count) | `exists`: the number of children | a range that counts; never `None` |

mod fault;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ylock_core::engine::ServerReport;
use ylock_core::environment::{BoxFuture, Moment};
use ylock_core::{Error, Result, StoreToken};

pub use fault::{Cause, Fault};
pub(crate) use fault::{ends_session, failure, failure_of_transaction, had_no_effect, to_error};

/// A watch: ends once, when what is watched changes or the session ends. Dropped, it takes the watch back.
///
/// It tells whether it was *seen* that the node was removed, and by nothing else than a plain removal. A contender that is
/// [renamed](Store::rename) is written to first, and that write is what the watch tells then.
pub type WatchEvent = Pin<Box<dyn Future<Output = bool> + Send>>;

/// A contender's node that was just made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Created {
    /// The place that orders the contenders of a lock.
    pub place: i64,
    /// The number of the transaction that made the node. `None` from servers that do not tell it.
    pub token: Option<StoreToken>,
}

/// A contender's node that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contender {
    /// The content of the node.
    pub content: Vec<u8>,
    /// The version of the content: another one after each write.
    pub version: i64,
    /// The number of the transaction that made the node.
    pub token: Option<StoreToken>,
}

/// The servers: what makes sessions.
pub trait Ensemble: fmt::Debug + Send + Sync + 'static {
    /// Returns a new session, to be [attached](Store::attach).
    fn session(&self) -> Arc<dyn Store>;

    /// Returns the error of a caller to whom no server granted a session in time.
    fn no_session(&self) -> Error;

    /// Asks each server what it tells of itself. By default nothing is told.
    fn servers(&self) -> Pin<Box<dyn Future<Output = Vec<ServerReport>> + Send>> {
        Box::pin(std::future::ready(Vec::new()))
    }
}

/// One session with the servers.
///
/// # Contract
/// - **In flight when polled once:** a request is on its way when its future has been polled for the first time, not before and not later. The
///   waker of that first poll may wake no task; the answer is told to the waker of the last poll.
/// - **In order:** the requests of a session are handled in the order in which they were sent, or not at all. Nothing is sent twice.
/// - **Writes** of all sessions have one order. A write is answered by `Ok` only when a majority of the servers has it. Of the faults that
///   say that it was refused none has had an effect; after any other it may have happened, or still happen, until the session has ended.
/// - **Reads** show all writes that were answered on this session, and those before them in the order of all writes. They may be older than
///   what other sessions have written since; see [`catch_up`](Self::catch_up).
/// - **Places** of contenders that are there at the same time have the order of the transactions that made them. A place is never given
///   twice as long as the lock's node is there.
/// - **Tokens** grow with the transactions, over all locks, also after a lock's node was removed and made again.
/// - **Watches** are told in the order of the answers: what changed before a request was handled is told before that request is answered.
/// - **The end:** the session's contenders are removed together when it ends. It does not end by itself within its
///   [`timeout`](Self::timeout) from when the leader heard of it: from when it was [asked for](Self::asked); and of a request that was
///   answered a sixth of the timeout before another one was sent that is confirmed, the leader heard no earlier than that request was sent.
///
/// Nothing here has a time limit or is counted: that is done once, by the caller of all requests.
#[async_trait]
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Returns whether the session has begun and is not over, so that a request can be sent. Otherwise each request fails with
    /// [`ConnectionLoss`](Fault::ConnectionLoss).
    fn is_attached(&self) -> bool;

    /// Waits until the session has begun, and begins it if no other task does.
    async fn attach(&self) -> Result<()>;

    /// Waits until the session has ended. Counts from the call.
    fn until_over(&self) -> BoxFuture;

    /// Returns whether the session is known to have ended.
    fn is_over(&self) -> bool;

    /// Returns how long the servers keep the session without a sign of life; zero before it has begun.
    fn timeout(&self) -> Duration;

    /// Returns the moment just before the session was asked for, or was asked for again over its last connection.
    fn asked(&self) -> Moment;

    /// Gives the session up. The servers are told at the moment `then`, and remove at once what the session still has.
    fn end(&self, then: Moment);

    /// Writes nothing, as a write: its answer says that a majority of the servers keeps the session. Fails with
    /// [`NoNode`](Fault::NoNode) if the node of this path, which all clients share, is not there.
    async fn check(&self, path: &str) -> Result<(), Fault>;

    /// Makes a node that stays, and the nodes above it, as far as they are not there.
    async fn mkdir(&self, path: &str) -> Result<(), Fault>;

    /// Makes the node of a lock, with the exact key in it, and a contender in it, in one transaction: the contender is alone then. The
    /// lock's node goes when it has been empty for some time. Fails with [`NodeExists`](Fault::NodeExists) if the lock has a node.
    async fn make_both(&self, lock: &str, key: &[u8], name: &str, content: &[u8]) -> Result<Created, Fault>;

    /// Makes a contender, at the end of the queue. `name` is its name without the place. Fails with [`NoNode`](Fault::NoNode) if the lock
    /// has no node.
    async fn join(&self, lock: &str, name: &str, content: &[u8]) -> Result<Created, Fault>;

    /// Makes a contender and removes another one of this session, in one transaction.
    async fn replace(&self, lock: &str, old: &str, name: &str, content: &[u8]) -> Result<Created, Fault>;

    /// Gives a contender another name and content at the same place, in one transaction that writes to the node before it removes it.
    /// `new` has the place in it. Fails with [`BadVersion`](Fault::BadVersion) if the content has another version.
    async fn rename(&self, lock: &str, old: (&str, i64), new: &str, content: &[u8]) -> Result<(), Fault>;

    /// Removes a contender and the node of its lock. Fails with [`NotEmpty`](Fault::NotEmpty) if another contender is there.
    async fn remove_both(&self, lock: &str, name: &str) -> Result<(), Fault>;

    /// Removes a node.
    async fn remove(&self, path: &str) -> Result<(), Fault>;

    /// Removes a node. Fails with [`BadVersion`](Fault::BadVersion) if the content has another version.
    async fn remove_version(&self, path: &str, version: i64) -> Result<(), Fault>;

    /// Writes the content of a node. Fails with [`BadVersion`](Fault::BadVersion) if the content has another version.
    async fn write_content(&self, path: &str, content: &[u8], version: i64) -> Result<(), Fault>;

    /// Makes what is asked on this session from now on show every write that was answered to any session before this call, and every one that this
    /// session has sent, also over an earlier connection: of those the ones that are not shown then will never be done. A read that is sent behind
    /// it, without waiting for the answer, is answered from there.
    async fn catch_up(&self, path: &str) -> Result<(), Fault>;

    /// Does the same at the cost of a read, but for a moment: a leader answers its own clients as if this were a read, beside what is on its way, and
    /// before it shows what its followers show already. So what a session has sent over an earlier connection may still be done.
    async fn sync(&self, path: &str) -> Result<(), Fault>;

    /// Returns the names of a lock's contenders, in no promised order. Fails with [`NoNode`](Fault::NoNode) if the lock has no node.
    async fn list(&self, lock: &str) -> Result<Vec<String>, Fault>;

    /// Returns the names of a lock's contenders, and a watch that fires when these change.
    async fn list_and_watch(&self, lock: &str) -> Result<(Vec<String>, WatchEvent), Fault>;

    /// Returns the number of the transaction that made a node; `None` if the node is not there. Fails with
    /// [`OutOfTokens`](Fault::OutOfTokens) if the number is too large.
    async fn token(&self, path: &str) -> Result<Option<StoreToken>, Fault>;

    /// Returns what a contender's node has.
    async fn read(&self, path: &str) -> Result<Contender, Fault>;

    /// Returns the content of a contender, and a watch that fires when the node changes or is gone. Leaves no watch behind if the node is
    /// gone already.
    async fn read_and_watch(&self, path: &str) -> Result<(Vec<u8>, WatchEvent), Fault>;

    /// Makes a node that goes with the session, and returns the time at which the servers say that it was made, in milliseconds since 1970. By
    /// default nothing is made, and nothing told.
    async fn make_for_the_time(&self, _path: &str) -> Result<Option<i64>, Fault> {
        Ok(None)
    }

    /// Returns how many children a node has; `None` if it is not there.
    async fn count(&self, path: &str) -> Result<Option<i32>, Fault>;
}
