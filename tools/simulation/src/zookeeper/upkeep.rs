//! What servers do from time to time: they look for each other, for signs of life of the sessions, and for what nothing is left in.

use std::time::Duration;

use super::ensemble::Servers;
use super::event::{Body, Event, Word};
use super::server::Role;
use super::{ServerId, SessionId};
use crate::led::Elects;

impl Servers {
    /// Asks the followers for signs of life, and looks whether there are enough of them.
    pub(super) fn half_ticks(&mut self, server: ServerId) {
        let now = self.now();
        let patience = self.by_clock(server, self.half_tick() * 2 * self.rules.patience);
        let patience = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
        let servers = self.servers.len();
        let is_late = |heard: u64| heard + patience < now;
        let is_alone = match &self.servers[server].role {
            Role::Leading(leading) => {
                let heard = leading.followers.values().filter(|follower| !is_late(follower.heard));
                heard.count() < servers / 2
            }
            Role::Following(_) => is_late(self.servers[server].heard),
            Role::Looking => return,
        };
        if is_alone {
            return self.looks(server);
        }
        self.tell_followers(server, &Word::Ping);
        let (delay, term) = (self.by_clock(server, self.half_tick()), self.servers[server].term);
        self.after(delay, Event::HalfTick(server, term));
    }

    pub(super) fn validates(&mut self, leader: ServerId, owner: ServerId, session: SessionId) -> bool {
        let ends = self.ends(leader);
        self.leading(leader).is_some_and(|leading| leading.validate(session, owner, ends))
    }

    pub(super) fn watch_session(&mut self, leader: ServerId, session: SessionId) {
        let term = self.servers[leader].term;
        let now = self.now();
        let ends = self.leading(leader).and_then(|leading| leading.ends(session));
        if let Some(ends) = ends {
            self.in_nanos(ends.saturating_sub(now), Event::MayExpire(leader, term, session));
        }
    }

    pub(super) fn may_expire(&mut self, leader: ServerId, session: SessionId) {
        let now = self.now();
        let ends = self.leading(leader).and_then(|leading| leading.ends(session));
        match ends {
            Some(ends) if ends <= now => {
                self.world.note(|| format!("server {leader} ends session {session}"));
                self.proposes(leader, None, session, &Body::Close);
            }
            Some(_) => self.watch_session(leader, session),
            None => {}
        }
    }

    /// Removes containers that are empty.
    pub(super) fn sweeps(&mut self, leader: ServerId) {
        for path in self.servers[leader].tree.empty_containers() {
            let Some(leading) = self.leading(leader) else { return };
            let transaction = leading.sweep(path);
            self.propose(leader, transaction);
        }
        let term = self.servers[leader].term;
        let pause = self.chance.between(Duration::from_secs(2), Duration::from_secs(20));
        self.after(pause, Event::Sweep(leader, term));
    }

    /// Notes a sign of life of a session.
    pub(super) fn signs(&mut self, server: ServerId, session: SessionId) {
        let ends = self.ends(server);
        match &mut self.servers[server].role {
            Role::Leading(leading) => leading.touch(session, ends),
            Role::Following(_) => drop(self.servers[server].signs.insert(session)),
            Role::Looking => {}
        }
    }
}
