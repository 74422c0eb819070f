//! One server: what it has on its disk, what it shows, and the connections of clients.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use ylock_core::StoreToken;
use ylock_engine_zookeeper::algorithm::store::Fault;

use super::event::{Frame, Message, Origin, Read, Reply, Transaction};
use super::leader::Leading;
use super::tree::{Changes, On, Tree};
use super::{ConnectionId, ServerId, SessionId};
use crate::led::Reach;

/// One server; see the [module](self).
#[derive(Debug)]
pub(super) struct Server {
    pub(super) reach: Reach,
    pub(super) role: Role,
    /// The number of its membership: what was sent under another one is not heard.
    pub(super) term: u64,
    /// The number of the last election in which it took part.
    pub(super) epoch: u64,
    /// All transactions that it knows, those that may not be done yet at the end.
    pub(super) log: Vec<Arc<Transaction>>,
    /// The number of transactions that it shows.
    pub(super) applied: usize,
    pub(super) tree: Tree,
    pub(super) connections: BTreeMap<ConnectionId, Served>,
    /// The sessions that it has heard of since it last reported to the leader.
    pub(super) signs: BTreeSet<SessionId>,
    /// When it last heard of the leader.
    pub(super) heard: u64,
    /// The speed of its clock.
    pub(super) rate: f64,
    /// When the last message to each server arrives, and the last of its own work is done.
    pub(super) arrivals: BTreeMap<ServerId, u64>,
    pub(super) works: u64,
}

/// The part that a server has in the ensemble.
#[derive(Debug)]
pub(super) enum Role {
    /// It knows no leader, and serves no client.
    Looking,
    Following(ServerId),
    Leading(Box<Leading>),
}

/// One connection of a client, as its server sees it.
#[derive(Debug, Default)]
pub(super) struct Served {
    /// The session, once the leader has said that it is there.
    pub(super) session: Option<SessionId>,
    /// The session that the leader has been asked for.
    pub(super) asked: Option<SessionId>,
    queue: VecDeque<Queued>,
    pub(super) watches: BTreeSet<(Arc<str>, On)>,
}

impl Served {
    /// Returns a connection that has just been made, perhaps to go on with a session.
    pub(super) fn asking(session: Option<SessionId>) -> Self {
        Self { asked: session, ..Self::default() }
    }
}

/// A request that waits for those before it.
#[derive(Debug)]
enum Queued {
    /// Its answer has come, or not yet.
    Waits(u64, Option<Result<Reply, Fault>>),
    Read(u64, Read, Option<On>),
    Ping,
}

impl Server {
    pub(super) fn new(rate: f64) -> Self {
        Self {
            reach: Reach::default(),
            role: Role::Looking,
            term: 0,
            epoch: 0,
            log: Vec::new(),
            applied: 0,
            tree: Tree::default(),
            connections: BTreeMap::new(),
            signs: BTreeSet::new(),
            heard: 0,
            rate,
            arrivals: BTreeMap::new(),
            works: 0,
        }
    }

    pub(super) fn serves(&self) -> bool {
        self.reach.is_up && !matches!(self.role, Role::Looking)
    }

    /// Returns how much it knows: the last election, and the last transaction in its log. What it has beyond a later election was never done.
    pub(super) fn knows(&self) -> (u64, u64) {
        (self.epoch, self.log.last().map_or(0, |last| last.zxid))
    }

    /// Shows one more transaction. Returns it with what watches have to tell of it.
    pub(super) fn apply_next(&mut self, until: usize) -> Option<(Arc<Transaction>, Changes)> {
        let next = self.log.get(self.applied).filter(|_| self.applied < until)?;
        let next = Arc::clone(next);
        self.applied += 1;
        let changes = self.tree.apply(next.zxid, &next.edits);
        Some((next, changes))
    }

    /// Returns what the clients have to be told of a change, and takes the watches back that tell it.
    pub(super) fn fire(&mut self, zxid: u64, changes: &Changes) -> Vec<(ConnectionId, Message)> {
        let mut told = Vec::new();
        for (path, change) in changes {
            for (&connection, served) in &mut self.connections {
                let mut fires = false;
                for on in [On::Node, On::Children] {
                    fires |= change.fires(on) && served.watches.remove(&(Arc::clone(path), on));
                }
                if fires {
                    told.push((connection, Message::Changed(Arc::clone(path), *change, Some(zxid))));
                }
            }
        }
        told
    }

    /// Puts a request behind those before it. Returns whether the leader is to be asked.
    pub(super) fn enqueue(&mut self, connection: ConnectionId, frame: &Frame) -> bool {
        let Some(served) = self.connections.get_mut(&connection) else { return false };
        let (queued, asks) = match frame {
            Frame::Write(xid, _) | Frame::Sync(xid) => (Queued::Waits(*xid, None), true),
            Frame::Read(xid, read, on) => (Queued::Read(*xid, read.clone(), *on), false),
            Frame::Ping => (Queued::Ping, false),
            Frame::SetWatches(..) => return false,
        };
        served.queue.push_back(queued);
        asks
    }

    /// Notes the answer to a request for which the leader was asked.
    pub(super) fn settle(&mut self, connection: ConnectionId, xid: u64, answer: Result<Reply, Fault>) {
        let Some(served) = self.connections.get_mut(&connection) else { return };
        let waits = served.queue.iter_mut().find_map(|queued| match queued {
            Queued::Waits(number, waits) if *number == xid => Some(waits),
            _ => None,
        });
        if let Some(waits) = waits {
            *waits = Some(answer);
        }
    }

    /// Answers what can be answered now, in order.
    pub(super) fn answers(&mut self, connection: ConnectionId) -> Vec<Message> {
        let mut answers = Vec::new();
        let Some(served) = self.connections.get_mut(&connection) else { return answers };
        while let Some(next) = served.queue.pop_front() {
            match next {
                Queued::Waits(_, None) => {
                    served.queue.push_front(next);
                    break;
                }
                Queued::Waits(xid, Some(answer)) => {
                    answers.push(Message::Answer(xid, self.tree.last(), answer));
                }
                Queued::Read(xid, read, on) => {
                    let answer = answer(&self.tree, &read);
                    if let (Some(on), Ok(_), Read::Names(path) | Read::Node(path)) = (on, &answer, &read) {
                        served.watches.insert((path.as_str().into(), on));
                    }
                    answers.push(Message::Answer(xid, self.tree.last(), answer));
                }
                Queued::Ping => answers.push(Message::Pong),
            }
        }
        answers
    }

    /// Sets watches again. Returns what has changed meanwhile: only the outcome is known.
    pub(super) fn set_watches(
        &mut self,
        connection: ConnectionId,
        seen: u64,
        watches: Vec<(Arc<str>, On)>,
    ) -> Vec<Message> {
        let Some(served) = self.connections.get_mut(&connection) else { return Vec::new() };
        let mut told = Vec::new();
        for (path, on) in watches {
            match self.tree.change_since(&path, on, seen) {
                Some(change) => told.push(Message::Changed(path, change, None)),
                None => drop(served.watches.insert((path, on))),
            }
        }
        told
    }

    /// Returns the connections of a session.
    pub(super) fn connections_of(&self, session: SessionId) -> Vec<ConnectionId> {
        let is_of = |served: &Served| served.session == Some(session) || served.asked == Some(session);
        self.connections.iter().filter(|(_, served)| is_of(served)).map(|(&number, _)| number).collect()
    }
}

impl Transaction {
    /// Returns the answer to the request that asked for it, if this server was asked.
    pub(super) fn answer_at(&self, server: ServerId) -> Option<(Origin, Result<Reply, Fault>)> {
        let origin = self.origin.filter(|origin| origin.server == server)?;
        Some((origin, self.answer.clone().map(Reply::NewNode)))
    }
}

fn answer(tree: &Tree, read: &Read) -> Result<Reply, Fault> {
    match read {
        Read::Names(path) => tree.names(path).map(Reply::Names),
        Read::Node(path) => tree.read(path).map(Reply::Node),
        Read::Stat(path) => {
            let stat = tree.stat(path);
            Ok(Reply::Stat(stat.map(|(children, made)| (children, StoreToken::new(made)))))
        }
    }
}
