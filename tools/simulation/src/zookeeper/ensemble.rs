//! The servers, the messages between them, and what their clients see of them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use super::connection::Wire;
use super::event::Event;
use super::leader::Leading;
use super::mailbox::Mailbox;
use super::server::{Role, Server};
use super::{ConnectionId, ServerId, SessionId};
use crate::chance::Chance;
use crate::led::Elects;
use crate::store::Weather;
use crate::world::World;

/// The ensemble; see the [module](self).
pub struct Ensemble {
    world: Arc<World>,
    servers: Mutex<Servers>,
}

/// The settings of an ensemble that a run decides.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The timeout of every session.
    pub session: Duration,
    /// The ticks of a session.
    pub ticks: u32,
    /// The ticks after which a server knows that it has lost its leader, or its followers.
    pub patience: u32,
    /// The longest time for which a server is behind with what it shows.
    pub lag: Duration,
    /// The speed of each server's clock.
    pub rates: Vec<f64>,
}

/// The state of all servers.
pub(crate) struct Servers {
    pub(super) world: Arc<World>,
    pub(super) rules: Rules,
    pub(super) weather: Weather,
    pub(super) chance: Chance,
    pub(super) servers: Vec<Server>,
    pub(super) wires: BTreeMap<ConnectionId, Wire>,
    /// The messages between servers that arrived while one of the two was cut off, in order: each server's own list would let a message
    /// overtake another one of the same sender when both servers were cut off.
    pub(super) held: Vec<Event>,
    /// The number of elections.
    pub(super) epoch: u64,
    next_session: SessionId,
    next_connection: ConnectionId,
    /// True if an election is to come.
    pub(super) is_electing: bool,
    /// The events to come, each with its delay in nanoseconds.
    out: Vec<(u64, Event)>,
}

impl Ensemble {
    /// Starts the servers. The first leader is elected at once.
    pub fn new(world: &Arc<World>, rules: Rules, weather: Weather, chance: Chance) -> Arc<Self> {
        let servers = rules.rates.iter().copied().map(Server::new).collect();
        let servers = Servers {
            world: Arc::clone(world),
            rules,
            weather,
            chance,
            servers,
            wires: BTreeMap::new(),
            held: Vec::new(),
            epoch: 0,
            next_session: 0,
            next_connection: 0,
            is_electing: false,
            out: Vec::new(),
        };
        let ensemble = Arc::new(Self { world: Arc::clone(world), servers: Mutex::new(servers) });
        ensemble.with(Servers::elect);
        ensemble
    }

    /// Does something with the servers, and sees to what follows of it.
    pub(super) fn with<T>(self: &Arc<Self>, work: impl FnOnce(&mut Servers) -> T) -> T {
        let mut servers = self.servers.lock();
        let result = work(&mut servers);
        let out = std::mem::take(&mut servers.out);
        drop(servers);
        for (delay, event) in out {
            let ensemble = Arc::clone(self);
            self.world.after(Duration::from_nanos(delay), move || ensemble.happens(event));
        }
        result
    }

    fn happens(self: &Arc<Self>, event: Event) {
        self.with(|servers| servers.happens(event));
    }

    pub(super) fn look(&self) -> MutexGuard<'_, Servers> {
        self.servers.lock()
    }

    pub(super) fn size(&self) -> usize {
        self.look().servers.len()
    }

    pub(super) fn note(&self, line: impl FnOnce() -> String) {
        self.world.note(line);
    }

    /// Returns the nodes of locks and contenders that the servers have.
    pub fn left(&self) -> Vec<String> {
        let servers = self.look();
        let newest = servers.servers.iter().max_by_key(|server| server.tree.last());
        newest.map(|server| server.tree.locks()).unwrap_or_default()
    }
}

impl Servers {
    pub(super) fn now(&self) -> u64 {
        self.world.now()
    }

    pub(super) fn after(&mut self, delay: Duration, event: Event) {
        self.in_nanos(u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX), event);
    }

    pub(super) fn in_nanos(&mut self, delay: u64, event: Event) {
        self.out.push((delay, event));
    }

    /// Returns a time that a server measures by its own clock.
    pub(super) fn by_clock(&self, server: ServerId, time: Duration) -> Duration {
        time.div_f64(self.servers[server].rate)
    }

    pub(super) fn half_tick(&self) -> Duration {
        self.rules.session / (self.rules.ticks * 2)
    }

    /// Returns when a session ends of which a leader hears now.
    pub(super) fn ends(&self, leader: ServerId) -> u64 {
        let time = self.by_clock(leader, self.rules.session);
        self.now() + u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
    }

    pub(super) fn leading(&mut self, server: ServerId) -> Option<&mut Leading> {
        match &mut self.servers[server].role {
            Role::Leading(leading) => Some(leading),
            Role::Looking | Role::Following(_) => None,
        }
    }

    pub(super) fn new_session(&mut self) -> SessionId {
        self.next_session += 1;
        self.next_session
    }

    pub(super) fn new_connection(&mut self, server: ServerId, mailbox: &Arc<Mailbox>) -> ConnectionId {
        self.next_connection += 1;
        self.wires.insert(self.next_connection, Wire::new(server, mailbox));
        self.next_connection
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Dial { connection, session, seen } => self.dialed(connection, session, seen),
            Event::ToServer(connection, frame) => self.arrives(connection, frame),
            Event::HangsUp(connection) => self.hung_up(connection),
            Event::ToClient(connection, message) => self.delivers(connection, message),
            Event::Between { from, to, terms, word } => self.hears(from, to, terms, word),
            Event::Works(server, term, work) if self.servers[server].term == term => self.works(server, work),
            Event::HalfTick(server, term) if self.servers[server].term == term => self.half_ticks(server),
            Event::MayExpire(server, term, session) if self.servers[server].term == term => {
                self.may_expire(server, session);
            }
            Event::Sweep(server, term) if self.servers[server].term == term => self.sweeps(server),
            Event::LosesLeader(server, term) if self.servers[server].term == term => self.looks(server),
            Event::Election => self.elect(),
            _ => {}
        }
    }
}

impl fmt::Debug for Ensemble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ensemble")
    }
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Servers")
    }
}
