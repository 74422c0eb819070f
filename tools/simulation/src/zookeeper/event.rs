//! The messages, and what else happens at a moment.

use std::fmt;
use std::sync::Arc;

use ylock_core::StoreToken;
use ylock_engine_zookeeper::algorithm::store::{Contender, Created, Fault};

use super::step::{Edit, Step};
use super::tree::{Change, On};
use super::{ConnectionId, ServerId, SessionId};

/// One transaction.
#[derive(Debug)]
pub(super) struct Transaction {
    pub(super) zxid: u64,
    pub(super) edits: Vec<Edit>,
    pub(super) answer: Result<Vec<Created>, Fault>,
    /// The request that asked for it; none if the leader itself did.
    pub(super) origin: Option<Origin>,
    /// The session that it ends.
    pub(super) ends: Option<SessionId>,
    /// True if it is a refusal because the client's session has moved to another server. The server that was asked does not answer then, but closes
    /// the connection.
    pub(super) has_moved: bool,
}

/// As the trace shows it.
impl fmt::Display for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.zxid)?;
        self.edits.iter().try_for_each(|edit| match edit {
            Edit::Create { path, .. } => write!(f, " create {path}"),
            Edit::Delete(path) => write!(f, " delete {path}"),
            Edit::Write(path, _) => write!(f, " write {path}"),
            Edit::Begin(session) => write!(f, " begin session {session}"),
            Edit::End(session) => write!(f, " end session {session}"),
        })?;
        match &self.answer {
            Ok(_) => Ok(()),
            Err(fault) => write!(f, " refused: {fault}"),
        }
    }
}

/// The request of a client that a server has handed on to the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) server: ServerId,
    pub(super) connection: ConnectionId,
    pub(super) xid: u64,
}

/// A write, as a client asks for it.
#[derive(Clone, Debug)]
pub(super) enum Body {
    Begin(SessionId),
    Steps(Arc<[Step]>),
    Close,
}

/// A read, as a client asks for it.
#[derive(Clone, Debug)]
pub(super) enum Read {
    Names(String),
    Node(String),
    Stat(String),
}

/// As the trace shows it.
impl fmt::Display for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Begin(session) => write!(f, "begin session {session}"),
            Self::Steps(steps) => steps.iter().enumerate().try_for_each(|(number, step)| {
                let and = if number == 0 { "" } else { " and " };
                write!(f, "{and}{step}")
            }),
            Self::Close => f.write_str("close"),
        }
    }
}

/// A message of a client to its server.
#[derive(Clone, Debug)]
pub(super) enum Frame {
    Write(u64, Body),
    /// With a watch, if there is one.
    Read(u64, Read, Option<On>),
    Sync(u64),
    Ping,
    /// The watches that a new connection of an old session sets again, and the last transaction that it has seen.
    SetWatches(u64, Vec<(Arc<str>, On)>),
}

/// The result of a request that was not refused.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    NewNode(Vec<Created>),
    Names(Vec<String>),
    Node(Contender),
    Stat(Option<(i32, Option<StoreToken>)>),
    Done,
}

/// A message of a server to a client.
#[derive(Clone, Debug)]
pub(super) enum Message {
    Established(SessionId),
    /// The servers do not have this session.
    Expired,
    /// With the last transaction of the server that answers.
    Answer(u64, u64, Result<Reply, Fault>),
    Pong,
    /// With the transaction, unless only the outcome is known.
    Changed(Arc<str>, Change, Option<u64>),
    /// The connection is closed or refused.
    Closed,
}

/// A message between two servers, of which one leads.
#[derive(Clone, Debug)]
pub(super) enum Word {
    /// From the leader.
    Propose(Arc<Transaction>),
    Commit(usize),
    Ping,
    Synced(ConnectionId, u64),
    Validated(ConnectionId, SessionId, bool),
    /// To the leader.
    Ack(usize),
    Request(Origin, SessionId, Body),
    Sync(ConnectionId, u64),
    Validate(ConnectionId, SessionId),
    Pong(Vec<SessionId>),
}

/// The part of a server's work that happens in the order of the transactions, and perhaps late.
#[derive(Clone, Copy, Debug)]
pub(super) enum Work {
    Commit(usize),
    Synced(ConnectionId, u64),
}

/// What happens.
#[derive(Debug)]
pub(super) enum Event {
    Dial { connection: ConnectionId, session: Option<SessionId>, seen: u64 },
    ToServer(ConnectionId, Frame),
    HangsUp(ConnectionId),
    ToClient(ConnectionId, Message),
    Between { from: ServerId, to: ServerId, terms: (u64, u64), word: Word },
    Works(ServerId, u64, Work),
    HalfTick(ServerId, u64),
    MayExpire(ServerId, u64, SessionId),
    Sweep(ServerId, u64),
    LosesLeader(ServerId, u64),
    Election,
}
