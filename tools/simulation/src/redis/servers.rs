//! The servers of a run: one, or those of a cluster, whose slots move from one to another while locks are held and waited for.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use ylock_core::Key;
use ylock_engine_redis::RedisOptions;
use ylock_engine_redis::transport::place;

use super::server::Server;
use super::slots::{News, PORT, Slots, host, server_at, slot_of};
use crate::chance::Chance;
use crate::world::World;

/// The longest time between two steps of a move.
const STEP: Duration = Duration::from_secs(2);
/// The time after which a step is tried again, because one of the two servers does not run.
const AGAIN: Duration = Duration::from_millis(500);

/// The servers of a run.
#[derive(Debug)]
pub struct Servers {
    world: Arc<World>,
    all: Vec<Arc<Server>>,
    /// Nothing for a server that is in no cluster.
    slots: Option<Arc<Mutex<Slots>>>,
    chance: Mutex<Chance>,
}

impl Servers {
    /// Takes one server.
    pub(crate) fn one(world: &Arc<World>, server: Arc<Server>) -> Arc<Self> {
        let chance = Mutex::new(Chance::new(0));
        Arc::new(Self { world: Arc::clone(world), all: vec![server], slots: None, chance })
    }

    /// Makes a cluster of servers.
    pub(crate) fn cluster(world: &Arc<World>, all: Vec<Arc<Server>>, chance: Chance) -> Arc<Self> {
        let slots = Arc::new(Mutex::new(Slots::new(all.len())));
        let undone = all[0].undone();
        for (number, server) in all.iter().enumerate() {
            server.joins(number, &slots, &undone);
        }
        Arc::new(Self { world: Arc::clone(world), all, slots: Some(slots), chance: Mutex::new(chance) })
    }

    /// Returns the server with this host.
    pub(super) fn at(&self, host: &str) -> Option<&Arc<Server>> {
        if self.slots.is_some() { self.all.get(server_at(host)?) } else { self.all.first() }
    }

    /// Returns the options of a client.
    pub(crate) fn options(&self) -> RedisOptions {
        let addresses = (0..self.all.len()).map(|server| (host(server), PORT));
        if self.slots.is_some() {
            RedisOptions::cluster(addresses)
        } else {
            RedisOptions::new("simulated", PORT)
        }
    }

    /// Returns any server.
    pub(crate) fn any(&self, number: usize) -> &Arc<Server> {
        &self.all[number % self.all.len()]
    }

    /// Ends all trouble. Moves of slots go on.
    pub(crate) fn calm_down(&self) {
        self.all.iter().for_each(Server::calm_down);
    }

    /// Returns what is left that should not be.
    pub(crate) fn left(&self, keys: &[Key]) -> Vec<String> {
        let mut left: Vec<_> = self.all.iter().flat_map(|server| server.left()).collect();
        let names: Vec<_> = self.all.iter().flat_map(|server| server.names()).collect();
        let different: BTreeSet<_> = names.iter().collect();
        if different.len() < names.len() {
            left.push("a lock is on two servers".to_owned());
        }
        if different.len() > keys.len() {
            left.push("a hash that belongs to no lock".to_owned());
        }
        left
    }

    /// Moves the slot of a lock from the server that keeps it to the next one.
    pub(crate) fn move_slot(self: &Arc<Self>, key: &Key) {
        let Some(slots) = &self.slots else { return };
        // The slot is that of the part in braces, which the engine makes of group and name.
        let slot = slot_of(place(self.options().prefix(), key).as_bytes());
        let Some((from, to)) = slots.lock().begin(slot) else { return };
        self.world.note(|| format!("slot {slot} moves from server {from} to {to}"));
        self.next(slot, from, to);
    }

    /// Does one step of a move after some time: a key goes to the other server; or, when there is none any more, the servers hear of it.
    fn next(self: &Arc<Self>, slot: u16, from: usize, to: usize) {
        let servers = Arc::clone(self);
        let pause = self.chance.lock().between(Duration::ZERO, STEP);
        self.world.after(pause, move || servers.step(slot, from, to));
    }

    fn step(self: &Arc<Self>, slot: u16, from: usize, to: usize) {
        let (source, target) = (&self.all[from], &self.all[to]);
        if !source.runs() || !target.runs() {
            let servers = Arc::clone(self);
            return self.world.after(AGAIN, move || servers.step(slot, from, to));
        }
        if let Some((name, hash, lives)) = source.give_away(slot) {
            self.world.note(|| format!("{} is on server {to} now", String::from_utf8_lossy(&name)));
            target.take_over(name, hash, lives);
            return self.next(slot, from, to);
        }
        // The new owner first. Until the old owner hears of it, it sends clients to the new one.
        let Some(slots) = &self.slots else { return };
        let news = slots.lock().arrives(slot, to);
        for server in (0..self.all.len()).filter(|server| *server != to) {
            // The old owner hears soon, unless the administrator's program stops between the two.
            let is_soon = server == from && self.chance.lock().happens(0.75);
            self.is_to_hear(server, slot, news, if is_soon { STEP / 20 } else { STEP });
        }
    }

    fn is_to_hear(self: &Arc<Self>, server: usize, slot: u16, news: News, within: Duration) {
        let delay = self.chance.lock().between(Duration::ZERO, within);
        let servers = Arc::clone(self);
        self.world.after(delay, move || servers.hears(server, slot, news));
    }

    fn hears(self: &Arc<Self>, server: usize, slot: u16, news: News) {
        let Some(slots) = &self.slots else { return };
        if !self.all[server].runs() {
            return self.is_to_hear(server, slot, news, AGAIN);
        }
        let is_old_owner = {
            let mut slots = slots.lock();
            slots.hears(server, slot, news);
            let is_old_owner = slots.goes_to(slot, server).is_some();
            if is_old_owner {
                slots.ends(slot);
            }
            is_old_owner
        };
        if is_old_owner {
            self.all[server].unsubscribes(slot);
        }
    }
}
