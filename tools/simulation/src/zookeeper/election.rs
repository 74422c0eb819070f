//! Who leads, and what goes wrong with servers.

use std::sync::Arc;
use std::time::Duration;

use super::ServerId;
use super::ensemble::{Ensemble, Servers};
use super::event::Event;
use super::leader::{Follower, Leading};
use super::server::{Role, Server};

/// The longest time that servers take to agree on a leader.
const ELECTION: Duration = Duration::from_secs(2);

impl Ensemble {
    /// Takes a server down. What it has stays on its disk.
    pub fn stop(self: &Arc<Self>, server: ServerId, is_noticed: bool) {
        self.with(|servers| {
            servers.world.note(|| format!("server {server} is down"));
            servers.servers[server].is_up = false;
            servers.looks(server);
            if is_noticed {
                servers.lose(server);
            }
        });
    }

    /// Starts a server again.
    pub fn start(self: &Arc<Self>, server: ServerId) {
        self.with(|servers| {
            if !servers.servers[server].is_up {
                servers.world.note(|| format!("server {server} is up"));
                servers.servers[server].is_up = true;
                servers.elect_soon();
            }
        });
    }

    /// Cuts a server off from the others, but not from its clients.
    pub fn cut(self: &Arc<Self>, server: ServerId, is_noticed: bool) {
        self.with(|servers| {
            servers.world.note(|| format!("server {server} is cut off"));
            servers.servers[server].is_cut = true;
            if is_noticed {
                // By the others. This one goes on until it misses them.
                servers.lose(server);
            }
        });
    }

    /// Lets a server reach the others again.
    pub fn heal(self: &Arc<Self>, server: ServerId) {
        self.with(|servers| servers.heal(server));
    }

    /// Makes the leader step down.
    pub fn depose(self: &Arc<Self>) {
        self.with(|servers| {
            let Some(leader) = servers.leader() else { return };
            servers.world.note(|| format!("server {leader} steps down"));
            servers.looks(leader);
            servers.lose(leader);
        });
    }

    /// Returns the server that leads, as the others see it.
    pub fn leader(&self) -> Option<ServerId> {
        self.look().leader()
    }

    /// Ends all trouble.
    pub fn calm_down(self: &Arc<Self>) {
        let count = self.with(|servers| {
            servers.weather.calm_down();
            servers.rules.lag = servers.rules.lag.min(Duration::from_millis(5));
            servers.servers.len()
        });
        for server in 0..count {
            self.heal(server);
            self.start(server);
        }
    }
}

impl Servers {
    fn leader(&self) -> Option<ServerId> {
        let leads = |server: &&usize| {
            let server = &self.servers[**server];
            server.is_up && !server.is_cut && self.was_elected_last(server)
        };
        let all: Vec<_> = (0..self.servers.len()).collect();
        all.iter().find(leads).copied()
    }

    fn was_elected_last(&self, server: &Server) -> bool {
        matches!(&server.role, Role::Leading(leading) if leading.epoch() == self.epoch)
    }

    fn heal(&mut self, server: ServerId) {
        if !self.servers[server].is_cut {
            return;
        }
        self.world.note(|| format!("server {server} is not cut off any more"));
        self.servers[server].is_cut = false;
        for held in std::mem::take(&mut self.held) {
            self.after(Duration::ZERO, held);
        }
        let state = &self.servers[server];
        // A leader that hears of a later election steps down.
        if matches!(state.role, Role::Leading(_)) && !self.was_elected_last(state) {
            self.looks(server);
        }
        self.elect_soon();
    }

    /// The followers of a server notice that they have lost it, each in its own time.
    fn lose(&mut self, leader: ServerId) {
        let half_tick = self.half_tick();
        for server in 0..self.servers.len() {
            if matches!(self.servers[server].role, Role::Following(followed) if followed == leader) {
                let (delay, term) =
                    (self.chance.between(Duration::ZERO, half_tick), self.servers[server].term);
                self.after(delay, Event::LosesLeader(server, term));
            }
        }
    }

    /// A server looks for a leader, and serves no client meanwhile.
    pub(super) fn looks(&mut self, server: ServerId) {
        self.world.note(|| format!("server {server} looks for a leader"));
        self.closes_all(server);
        let state = &mut self.servers[server];
        state.role = Role::Looking;
        state.term += 1;
        state.signs.clear();
        self.elect_soon();
    }

    fn elect_soon(&mut self) {
        if !self.is_electing {
            self.is_electing = true;
            let delay = self.chance.between(Duration::from_millis(50), ELECTION);
            self.after(delay, Event::Election);
        }
    }

    /// Makes the servers that look for a leader follow the one that there is, or elect one of them if they are a majority.
    pub(super) fn elect(&mut self) {
        self.is_electing = false;
        let is_candidate = |server: &ServerId| {
            let server = &self.servers[*server];
            server.is_up && !server.is_cut && matches!(server.role, Role::Looking)
        };
        let candidates: Vec<_> = (0..self.servers.len()).filter(is_candidate).collect();
        match self.leader() {
            Some(leader) => candidates.into_iter().for_each(|server| self.follows(server, leader)),
            None if candidates.len() > self.servers.len() / 2 => self.elects(&candidates),
            None => {}
        }
        if self.servers.iter().any(|server| matches!(server.role, Role::Looking)) {
            self.elect_soon();
        }
    }

    /// Elects the server that knows most: it has everything that a majority has ever had.
    fn elects(&mut self, candidates: &[ServerId]) {
        let first = self.chance.below(candidates.len() as u64) as usize;
        let (before, behind) = candidates.split_at(first);
        let newest = behind.iter().chain(before).max_by_key(|server| self.servers[**server].knows());
        let Some(&leader) = newest else { return };
        self.leads(leader);
        for &server in candidates.iter().filter(|server| **server != leader) {
            self.follows(server, leader);
        }
    }

    fn leads(&mut self, leader: ServerId) {
        // What a majority may have is done, also if the last leader did not hear of it.
        let ends = self.ends(leader);
        let sure = self.servers[leader].log.len();
        self.applies(leader, sure);
        let state = &mut self.servers[leader];
        // A majority has agreed upon it: no two leaders have the same.
        self.epoch += 1;
        let epoch = self.epoch;
        let leading = Leading::new(&state.tree, epoch, ends);
        let sessions = leading.sessions();
        state.role = Role::Leading(Box::new(leading));
        state.epoch = epoch;
        state.term += 1;
        let term = state.term;
        self.world.note(|| format!("server {leader} leads, epoch {epoch}"));
        sessions.into_iter().for_each(|session| self.watch_session(leader, session));
        let half_tick = self.by_clock(leader, self.half_tick());
        self.after(half_tick, Event::HalfTick(leader, term));
        self.after(Duration::from_secs(2), Event::Sweep(leader, term));
    }

    /// Makes a server know what the leader knows. What it has beyond that was never done.
    fn follows(&mut self, server: ServerId, leader: ServerId) {
        self.world.note(|| format!("server {server} follows {leader}"));
        let (log, applied) = (self.servers[leader].log.clone(), self.servers[leader].applied);
        let (now, epoch) = (self.now(), self.epoch);
        let state = &mut self.servers[server];
        (state.log, state.heard, state.epoch) = (log, now, epoch);
        state.role = Role::Following(leader);
        state.term += 1;
        let (term, count) = (state.term, state.log.len());
        self.applies(server, applied);
        if let Some(leading) = self.leading(leader) {
            leading.followers.insert(server, Follower { term, acknowledged: count, heard: now });
        }
        let half_tick = self.by_clock(server, self.half_tick());
        self.after(half_tick, Event::HalfTick(server, term));
        self.commits(leader);
    }
}
