//! The members, the messages between them, and what their clients see of them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use ylock_engine_etcd::algorithm::store::Header;

use super::data::Data;
use super::event::Event;
use super::leading::Leading;
use super::member::{Member, Role};
use super::wire::Wire;
use super::{ConnectionId, MemberId};
use crate::chance::Chance;
use crate::led::Elects;
use crate::store::Weather;
use crate::world::World;

/// The cluster; see the [module](self).
pub struct Cluster {
    world: Arc<World>,
    members: Mutex<Members>,
}

/// The settings of a cluster that a run decides.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The time after which a follower knows that it has lost its leader.
    pub patience: Duration,
    /// The time after which a leader knows that it has lost its followers.
    pub trust: Duration,
    /// The longest time by which a follower is behind with what it shows, and a watch with what it tells.
    pub lag: Duration,
    /// The speed of each member's clock.
    pub rates: Vec<f64>,
}

/// The state of all members.
pub(crate) struct Members {
    pub(super) world: Arc<World>,
    pub(super) rules: Rules,
    pub(super) weather: Weather,
    pub(super) chance: Chance,
    pub(super) members: Vec<Member>,
    pub(super) wires: BTreeMap<ConnectionId, Wire>,
    /// The messages between members that are held up, in order, whatever holds them up: one queue, so that none overtakes another one of the same two.
    pub(super) held: Vec<Event>,
    /// The number of the cluster: another one when it was set up anew.
    pub(super) cluster: u64,
    /// What a new member of it has.
    pub(super) base: Data,
    /// The term of the last leader.
    pub(super) term: u64,
    /// True if an election is to come.
    pub(super) is_electing: bool,
    /// True while there is no cluster, because it is being set up anew.
    pub(super) is_rebuilding: bool,
    last: Numbers,
    /// The events to come, each with its delay in nanoseconds.
    out: Vec<(u64, Event)>,
}

/// The last numbers that were given.
#[derive(Debug, Default)]
struct Numbers {
    connection: ConnectionId,
    request: u64,
    lease: i64,
}

impl Cluster {
    /// Starts the members. The first leader is elected at once.
    pub fn new(world: &Arc<World>, rules: Rules, weather: Weather, chance: Chance) -> Arc<Self> {
        let base = Data::default();
        let members = rules.rates.iter().map(|rate| Member::new(*rate, &base)).collect();
        let members = Members {
            world: Arc::clone(world),
            rules,
            weather,
            chance,
            members,
            wires: BTreeMap::new(),
            held: Vec::new(),
            cluster: 1,
            base,
            term: 0,
            is_electing: false,
            is_rebuilding: false,
            last: Numbers::default(),
            out: Vec::new(),
        };
        let cluster = Arc::new(Self { world: Arc::clone(world), members: Mutex::new(members) });
        cluster.with(Members::elect);
        cluster
    }

    /// Does something with the members, and sees to what follows of it.
    pub(super) fn with<T>(self: &Arc<Self>, work: impl FnOnce(&mut Members) -> T) -> T {
        let mut members = self.members.lock();
        let result = work(&mut members);
        let out = std::mem::take(&mut members.out);
        drop(members);
        for (delay, event) in out {
            let cluster = Arc::clone(self);
            self.world.after(Duration::from_nanos(delay), move || cluster.happens(event));
        }
        result
    }

    fn happens(self: &Arc<Self>, event: Event) {
        self.with(|members| members.happens(event));
    }

    pub(super) fn size(&self) -> usize {
        self.members.lock().members.len()
    }

    pub(super) fn note(&self, line: impl FnOnce() -> String) {
        self.world.note(line);
    }

    /// Returns how many keys of contenders there are of the client with this name.
    pub fn kept_by(&self, client: &str) -> usize {
        let is_of_client = |kept: &&String| kept.contains("/k/") && kept.ends_with(&format!(" {client}"));
        self.left().iter().filter(is_of_client).count()
    }

    /// Returns the keys of contenders, and marks, that the members have.
    pub fn left(&self) -> Vec<String> {
        let members = self.members.lock();
        let newest = members.members.iter().max_by_key(|member| member.data.revision());
        let keys = newest.into_iter().flat_map(|member| member.data.keys());
        let shown = keys.map(|entry| {
            let [key, value] = [&entry.key, &entry.value].map(|text| String::from_utf8_lossy(text));
            format!("{key} made at {}: {value}", entry.made)
        });
        shown.filter(|shown| shown.contains("/k/") || shown.contains("/x/")).collect()
    }
}

impl Members {
    pub(super) fn now(&self) -> u64 {
        self.world.now()
    }

    pub(super) fn after(&mut self, delay: Duration, event: Event) {
        self.in_nanos(nanos(delay), event);
    }

    pub(super) fn in_nanos(&mut self, delay: u64, event: Event) {
        self.out.push((delay, event));
    }

    /// Returns a time that a member measures by its own clock.
    pub(super) fn by_clock(&self, member: MemberId, time: Duration) -> Duration {
        time.div_f64(self.members[member].rate)
    }

    pub(super) fn leading(&mut self, member: MemberId) -> Option<&mut Leading> {
        match &mut self.members[member].role {
            Role::Leading(leading) => Some(leading),
            Role::Looking | Role::Following(_) => None,
        }
    }

    /// Returns what an answer of a member says now.
    pub(super) fn header(&self, member: MemberId) -> Header {
        let state = &self.members[member];
        Header { cluster: self.cluster, member: member as u64, revision: state.data.revision() }
    }

    pub(super) fn next_connection(&mut self) -> ConnectionId {
        self.last.connection += 1;
        self.last.connection
    }

    pub(super) fn next_request(&mut self) -> u64 {
        self.last.request += 1;
        self.last.request
    }

    pub(super) fn next_lease(&mut self) -> i64 {
        self.last.lease += 1;
        self.last.lease
    }

    pub(super) fn happens(&mut self, event: Event) {
        if let Some(member) = self.stalls(&event) {
            return self.members[member].stalled.push(event);
        }
        match event {
            Event::Arrives(connection, frame) => self.arrives(connection, frame),
            Event::Late(member, cluster, ask) if cluster == self.cluster => self.comes_late(member, ask),
            Event::ToClient(connection, told) => self.delivers(connection, told),
            Event::Watches(origin, number, watch) => self.watches(origin, number, watch),
            Event::Tells(connection, told) => self.tell(connection, told),
            Event::Between { from, to, memberships, word } => self.hears(from, to, memberships, word),
            Event::Applies(member, term, count) if self.is_still(member, term) => self.applies(member, count),
            Event::Ticks(member, term) if self.is_still(member, term) => self.ticks(member),
            Event::MayEnd(member, term, lease) if self.is_still(member, term) => self.may_end(member, lease),
            Event::LosesLeader(member, term) if self.is_still(member, term) => self.looks(member),
            Event::Election => self.elect(),
            Event::Rebuilt => self.rebuilt(),
            _ => {}
        }
    }

    /// Returns whether what one member says to another one is held up: one of them is cut off, or the process of the other one is stopped.
    pub(super) fn is_held_up(&self, from: MemberId, to: MemberId) -> bool {
        let [from, to] = [from, to].map(|member| self.members[member].reach);
        from.is_cut || to.is_cut || to.is_suspended
    }

    fn is_still(&self, member: MemberId, membership: u64) -> bool {
        self.members[member].membership == membership
    }

    /// Returns the member at which something happens, if its process is stopped.
    fn stalls(&self, event: &Event) -> Option<MemberId> {
        let member = match event {
            Event::Arrives(connection, _) | Event::Tells(connection, _) => self.wires.get(connection)?.member,
            Event::Watches(origin, ..) => origin.member,
            Event::Late(member, ..)
            | Event::Applies(member, ..)
            | Event::Ticks(member, _)
            | Event::MayEnd(member, ..)
            | Event::LosesLeader(member, _) => *member,
            Event::Between { .. } | Event::ToClient(..) | Event::Election | Event::Rebuilt => return None,
        };
        self.members[member].reach.is_suspended.then_some(member)
    }
}

pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cluster")
    }
}

impl fmt::Debug for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Members")
    }
}
