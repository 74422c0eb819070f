//! What a leader knows beside what every server knows: the order of the transactions, who has them, and when sessions end.

use std::collections::BTreeMap;
use std::sync::Arc;

use ylock_engine_zookeeper::algorithm::store::{Cause, Created, Fault};

use super::event::{Body, Origin, Transaction};
use super::step::{Edit, Step};
use super::tree::Tree;
use super::{ConnectionId, ServerId, SessionId};

/// The number of bits for the transactions of one leader.
const COUNTER_BITS: u32 = 32;

/// The knowledge of a leader; see the [module](self).
#[derive(Debug)]
pub(super) struct Leading {
    /// The number of the last transaction that was proposed.
    zxid: u64,
    /// The nodes as they are when everything is done that was proposed.
    planned: Tree,
    /// The number of transactions that are done. It tells its followers so before it shows them itself.
    pub(super) committed: usize,
    pub(super) followers: BTreeMap<ServerId, Follower>,
    sessions: BTreeMap<SessionId, Tracked>,
    /// The questions of followers that have to wait until so many transactions are done.
    pub(super) syncs: Vec<(usize, ServerId, ConnectionId, u64)>,
}

/// One follower, as its leader sees it.
#[derive(Debug)]
pub(super) struct Follower {
    pub(super) term: u64,
    /// The number of transactions that it has on its disk.
    pub(super) acknowledged: usize,
    pub(super) heard: u64,
}

/// One session.
#[derive(Debug)]
struct Tracked {
    /// The moment at which it ends unless the leader hears of it before.
    ends: u64,
    /// The server to which its client is connected: what comes from others is refused.
    owner: Option<ServerId>,
}

/// An error of a server, for its words.
#[derive(Debug)]
struct Says(&'static str);

impl std::fmt::Display for Says {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Says {}

/// Returns the answer to a client whose session has ended.
pub(super) fn ended() -> Fault {
    Fault::Ended(Cause::new(Says("session expired")))
}

/// Returns why a client is refused whose session has moved to another server, for the trace.
fn moved() -> Fault {
    Fault::Other(Cause::new(Says("session moved")))
}

impl Leading {
    /// Begins to lead, with these nodes, which so many transactions have made. Every session has the whole time again: what earlier leaders heard is not known.
    pub(super) fn new(planned: &Tree, committed: usize, epoch: u64, ends: u64) -> Self {
        let zxid = epoch << COUNTER_BITS;
        let sessions = planned.sessions();
        let tracked = sessions.map(|session| (session, Tracked { ends, owner: None }));
        Self {
            zxid,
            sessions: tracked.collect(),
            planned: planned.clone(),
            committed,
            followers: BTreeMap::new(),
            syncs: Vec::new(),
        }
    }

    /// Returns the number of its election.
    pub(super) fn epoch(&self) -> u64 {
        self.zxid >> COUNTER_BITS
    }

    pub(super) fn sessions(&self) -> Vec<SessionId> {
        self.sessions.keys().copied().collect()
    }

    /// Notes a sign of life.
    pub(super) fn touch(&mut self, session: SessionId, ends: u64) {
        if let Some(tracked) = self.sessions.get_mut(&session) {
            tracked.ends = tracked.ends.max(ends);
        }
    }

    /// Gives a session to the server to which its client has connected, if there still is such a session. That is a sign of life.
    pub(super) fn validate(&mut self, session: SessionId, owner: ServerId, ends: u64) -> bool {
        let Some(tracked) = self.sessions.get_mut(&session) else { return false };
        (tracked.owner, tracked.ends) = (Some(owner), tracked.ends.max(ends));
        true
    }

    /// Returns when a session ends, unless it has ended.
    pub(super) fn ends(&self, session: SessionId) -> Option<u64> {
        self.sessions.get(&session).map(|tracked| tracked.ends)
    }

    /// Ends a session that was not heard of.
    pub(super) fn expire(&mut self, session: SessionId) -> Transaction {
        self.close(None, session)
    }

    /// Removes a container, unless it has children by now.
    pub(super) fn sweep(&mut self, path: String) -> Transaction {
        self.plan(None, 0, &Body::Steps([Step::Delete(path)].into()))
    }

    /// Makes a transaction of what a client asks for, or of its refusal.
    pub(super) fn request(
        &mut self,
        origin: Origin,
        session: SessionId,
        body: &Body,
        ends: u64,
    ) -> Transaction {
        if let Body::Begin(session) = body {
            let tracked = Tracked { ends, owner: Some(origin.server) };
            self.sessions.insert(*session, tracked);
            return self.transaction(Some(origin), vec![Edit::Begin(*session)], Ok(Vec::new()), None);
        }
        match self.sessions.get(&session) {
            None => self.refuse(origin, ended()),
            Some(tracked) if tracked.owner.is_some_and(|owner| owner != origin.server) => {
                Transaction { has_moved: true, ..self.refuse(origin, moved()) }
            }
            Some(_) => match body {
                Body::Close => self.close(Some(origin), session),
                body => self.plan(Some(origin), session, body),
            },
        }
    }

    fn refuse(&mut self, origin: Origin, fault: Fault) -> Transaction {
        self.transaction(Some(origin), Vec::new(), Err(fault), None)
    }

    fn close(&mut self, origin: Option<Origin>, session: SessionId) -> Transaction {
        self.sessions.remove(&session);
        let edits = self.planned.end(session);
        self.planned.apply(self.zxid + 1, &edits);
        self.transaction(origin, edits, Ok(Vec::new()), Some(session))
    }

    fn plan(&mut self, origin: Option<Origin>, session: SessionId, body: &Body) -> Transaction {
        let steps = match body {
            Body::Steps(steps) => Arc::clone(steps),
            Body::Begin(_) | Body::Close => [].into(),
        };
        let (edits, answer) = self.planned.plan(self.zxid + 1, session, &steps);
        self.transaction(origin, edits, answer, None)
    }

    fn transaction(
        &mut self,
        origin: Option<Origin>,
        edits: Vec<Edit>,
        answer: Result<Vec<Created>, Fault>,
        ends: Option<SessionId>,
    ) -> Transaction {
        self.zxid += 1;
        if let [Edit::Begin(_)] = edits[..] {
            self.planned.apply(self.zxid, &edits);
        }
        Transaction { zxid: self.zxid, edits, answer, origin, ends, has_moved: false }
    }

    /// Returns how many transactions a majority has, given how many the leader has.
    pub(super) fn done(&self, own: usize, servers: usize) -> usize {
        let followers = self.followers.values().map(|follower| follower.acknowledged);
        let mut all: Vec<_> = followers.chain([own]).collect();
        all.sort_unstable_by(|one, other| other.cmp(one));
        all.get(servers / 2).copied().unwrap_or(0)
    }

    /// Returns the followers, with their terms.
    pub(super) fn terms(&self) -> Vec<(ServerId, u64)> {
        self.followers.iter().map(|(&server, follower)| (server, follower.term)).collect()
    }
}
