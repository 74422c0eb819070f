//! One member: what it has on its disk, what it shows, and what clients wait for at it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ylock_engine_etcd::algorithm::store::{Fault, Header, Transaction};

use super::data::{Applied, Changed, Data};
use super::event::{Event, Logged, Origin};
use super::leading::Leading;
use super::{ConnectionId, LeaseId, MemberId};
use crate::led::Reach;

/// One member; see the [module](self).
#[derive(Debug)]
pub(super) struct Member {
    pub(super) reach: Reach,
    pub(super) role: Role,
    /// The number of its membership: what was sent under another one is not heard.
    pub(super) membership: u64,
    /// All entries that it knows, those that may not be done yet at the end.
    pub(super) log: Vec<Arc<Logged>>,
    /// The number of entries that it shows.
    pub(super) applied: usize,
    pub(super) data: Data,
    pub(super) connections: BTreeSet<ConnectionId>,
    pub(super) watches: BTreeMap<(ConnectionId, i64), Watch>,
    /// The looks that wait until a majority has confirmed the leader, or until what they must show is applied.
    pub(super) looks: BTreeMap<u64, Waiting>,
    /// The keep-alives that wait for a leader's answer.
    pub(super) prolonging: BTreeMap<u64, (Origin, LeaseId, Header)>,
    /// The leases that it was about to revoke as a leader that was deposed meanwhile: it asks the next leader to.
    pub(super) revoking: Vec<LeaseId>,
    /// The moment at which it last heard of the leader.
    pub(super) heard: u64,
    /// The speed of its clock.
    pub(super) rate: f64,
    /// The moments at which the last message to each member arrives, and the last entry is applied.
    pub(super) arrivals: BTreeMap<MemberId, u64>,
    pub(super) works: u64,
    /// What has happened while its process was stopped, but for what other members said.
    pub(super) stalled: Vec<Event>,
}

/// The part that a member has in the cluster.
#[derive(Debug)]
pub(super) enum Role {
    /// It knows no leader.
    Looking,
    Following(MemberId),
    Leading(Box<Leading>),
}

/// One watch of a client.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) key: Vec<u8>,
    pub(super) changes: bool,
}

/// A transaction that only looks, and waits.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) origin: Origin,
    pub(super) transaction: Arc<Transaction>,
    /// The entries that it must show, once the leader has said so.
    pub(super) at: Option<usize>,
}

/// An entry that was applied, and what has come of it.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) logged: Arc<Logged>,
    pub(super) answer: Result<Applied, Fault>,
    /// What watches have to tell of it.
    pub(super) changed: Vec<Changed>,
}

impl Member {
    pub(super) fn new(rate: f64, data: &Data) -> Self {
        Self {
            reach: Reach::default(),
            role: Role::Looking,
            membership: 0,
            log: Vec::new(),
            applied: 0,
            data: data.clone(),
            connections: BTreeSet::new(),
            watches: BTreeMap::new(),
            looks: BTreeMap::new(),
            prolonging: BTreeMap::new(),
            revoking: Vec::new(),
            heard: 0,
            rate,
            arrivals: BTreeMap::new(),
            works: 0,
            stalled: Vec::new(),
        }
    }

    /// Returns how much it knows: the term of the last entry in its log, and how many there are. What it has beyond that of a later leader was never
    /// done.
    pub(super) fn knows(&self) -> (u64, u64) {
        (self.log.last().map_or(0, |last| last.term), self.log.len() as u64)
    }

    /// Applies one more entry. Returns what has come of it.
    pub(super) fn apply_next(&mut self, until: usize) -> Option<Made> {
        let next = self.log.get(self.applied).filter(|_| self.applied < until)?;
        let next = Arc::clone(next);
        self.applied += 1;
        let (answer, changed) = self.data.apply(&next.change);
        Some(Made { logged: next, answer, changed })
    }

    /// Returns the looks that can be answered now.
    pub(super) fn due_looks(&mut self) -> Vec<Waiting> {
        let is_due = |waiting: &Waiting| waiting.at.is_some_and(|at| at <= self.applied);
        let due: Vec<_> =
            self.looks.iter().filter(|(_, waiting)| is_due(waiting)).map(|(&number, _)| number).collect();
        due.iter().filter_map(|number| self.looks.remove(number)).collect()
    }

    /// Returns the watches that a change of a key concerns.
    pub(super) fn watches_of(&self, (key, deleted): &Changed) -> Vec<(ConnectionId, i64)> {
        let concerns = |watch: &Watch| watch.key == *key && (*deleted || watch.changes);
        self.watches.iter().filter(|(_, watch)| concerns(watch)).map(|(&id, _)| id).collect()
    }

    /// Forgets a connection, and what clients wait for over it.
    pub(super) fn forget(&mut self, connection: ConnectionId) {
        self.connections.remove(&connection);
        self.watches.retain(|(of, _), _| *of != connection);
        self.looks.retain(|_, waiting| waiting.origin.connection != connection);
        self.prolonging.retain(|_, (origin, ..)| origin.connection != connection);
    }
}
