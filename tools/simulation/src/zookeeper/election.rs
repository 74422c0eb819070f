//! How servers of ZooKeeper become leaders and followers.

use std::sync::Arc;
use std::time::Duration;

use super::ServerId;
use super::ensemble::{Ensemble, Servers};
use super::event::Event;
use super::leader::{Follower, Leading};
use super::server::Role;
use crate::chance::Chance;
use crate::led::{Coming, Elects, Group, Part, Reach};
use crate::world::World;

impl Group for Ensemble {
    type Servers = Servers;

    fn with<T>(self: &Arc<Self>, work: impl FnOnce(&mut Servers) -> T) -> T {
        Self::with(self, work)
    }
}

impl Elects for Servers {
    fn world(&self) -> &Arc<World> {
        &self.world
    }

    fn chance(&mut self) -> &mut Chance {
        &mut self.chance
    }

    fn count(&self) -> usize {
        self.servers.len()
    }

    fn reach(&self, server: ServerId) -> Reach {
        self.servers[server].reach
    }

    fn reach_mut(&mut self, server: ServerId) -> &mut Reach {
        &mut self.servers[server].reach
    }

    fn part(&self, server: ServerId) -> Part {
        match &self.servers[server].role {
            Role::Looking => Part::Looking,
            Role::Following(leader) => Part::Following(*leader),
            Role::Leading(leading) => Part::Leading(leading.epoch()),
        }
    }

    fn knows(&self, server: ServerId) -> (u64, u64) {
        self.servers[server].knows()
    }

    fn last_election(&self) -> u64 {
        self.epoch
    }

    fn is_electing(&mut self) -> &mut bool {
        &mut self.is_electing
    }

    fn notice(&self) -> Duration {
        self.half_tick()
    }

    fn comes(&mut self, after: Duration, what: Coming) {
        let event = match what {
            Coming::Election => Event::Election,
            Coming::Loss(server) => Event::LosesLeader(server, self.servers[server].term),
        };
        self.after(after, event);
    }

    fn bring_held(&mut self) {
        for held in std::mem::take(&mut self.held) {
            self.after(Duration::ZERO, held);
        }
    }

    fn calms(&mut self) {
        self.weather.calm_down();
        self.rules.lag = self.rules.lag.min(Duration::from_millis(5));
    }

    /// A server looks for a leader, and serves no client meanwhile.
    fn looks(&mut self, server: ServerId) {
        self.world.note(|| format!("server {server} looks for a leader"));
        self.closes_all(server);
        let state = &mut self.servers[server];
        state.role = Role::Looking;
        state.term += 1;
        state.signs.clear();
        self.elect_soon();
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
        let leading = Leading::new(&state.tree, sure, epoch, ends);
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
        let log = self.servers[leader].log.clone();
        let committed = self.leading(leader).map_or(0, |leading| leading.committed);
        let (now, epoch) = (self.now(), self.epoch);
        let state = &mut self.servers[server];
        (state.log, state.heard, state.epoch) = (log, now, epoch);
        state.role = Role::Following(leader);
        state.term += 1;
        let (term, count) = (state.term, state.log.len());
        self.applies(server, committed);
        if let Some(leading) = self.leading(leader) {
            leading.followers.insert(server, Follower { term, acknowledged: count, heard: now });
        }
        let half_tick = self.by_clock(server, self.half_tick());
        self.after(half_tick, Event::HalfTick(server, term));
        self.commits(leader);
    }
}
