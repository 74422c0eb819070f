//! What servers say to each other: in order, and not while one of them is cut off.

use std::time::Duration;

use super::ServerId;
use super::ensemble::Servers;
use super::event::{Event, Reply, Word, Work};
use super::server::Role;

impl Servers {
    /// Says something to another server. What is said arrives in order.
    pub(super) fn say(&mut self, from: ServerId, to: ServerId, terms: (u64, u64), word: Word) {
        let travel = self.travel_between();
        let arrives = self.now() + travel;
        let before = self.servers[from].arrivals.entry(to).or_default();
        *before = arrives.max(*before);
        let delay = *before - self.world.now();
        self.in_nanos(delay, Event::Between { from, to, terms, word });
    }

    /// Returns how long a message between servers takes: also a slow one takes far less than half a tick, within which a leader hears of the
    /// signs of life. What takes longer is a server that is cut off.
    pub(super) fn travel_between(&mut self) -> u64 {
        let (least, most) = self.weather.latency;
        let slow = self.half_tick() / 8;
        let time = if self.chance.happens(self.weather.slow.0) {
            self.chance.between(least, slow.max(most))
        } else {
            self.chance.between(least, most)
        };
        u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Says something to the followers of a leader.
    pub(super) fn tell_followers(&mut self, leader: ServerId, word: &Word) {
        let own = self.servers[leader].term;
        let terms = self.leading(leader).map(|leading| leading.terms()).unwrap_or_default();
        for (follower, term) in terms {
            self.say(leader, follower, (own, term), word.clone());
        }
    }

    pub(super) fn hears(&mut self, from: ServerId, to: ServerId, terms: (u64, u64), word: Word) {
        if self.servers[to].term != terms.1 || !self.servers[to].reach.is_up {
            return;
        }
        if self.servers[to].reach.is_cut || self.servers[from].reach.is_cut {
            // It is sent again when that is over.
            return self.held.push(Event::Between { from, to, terms, word });
        }
        match self.servers[to].role {
            Role::Leading(_) => self.leader_hears(from, to, terms.0, word),
            Role::Following(leader) if leader == from => self.follower_hears(to, leader, word),
            Role::Following(_) | Role::Looking => {}
        }
    }

    pub(super) fn leader_hears(&mut self, from: ServerId, leader: ServerId, term: u64, word: Word) {
        let now = self.now();
        let Some(leading) = self.leading(leader) else { return };
        let Some(follower) = leading.followers.get_mut(&from).filter(|follower| follower.term == term) else {
            return;
        };
        follower.heard = now;
        match word {
            Word::Ack(count) => {
                follower.acknowledged = follower.acknowledged.max(count);
                self.commits(leader);
            }
            Word::Request(origin, session, body) => self.proposes(leader, Some(origin), session, &body),
            Word::Sync(connection, xid) => self.asked_to_sync(leader, from, connection, xid),
            Word::Validate(connection, session) => {
                let is_there = self.validates(leader, from, session);
                self.answer_follower(leader, from, Word::Validated(connection, session, is_there));
            }
            Word::Pong(signs) => {
                let ends = self.ends(leader);
                if let Some(leading) = self.leading(leader) {
                    signs.iter().for_each(|session| leading.touch(*session, ends));
                }
            }
            _ => {}
        }
    }

    pub(super) fn answer_follower(&mut self, leader: ServerId, follower: ServerId, word: Word) {
        let own = self.servers[leader].term;
        let known = self.leading(leader).and_then(|leading| leading.followers.get(&follower));
        if let Some(term) = known.map(|known| known.term) {
            self.say(leader, follower, (own, term), word);
        }
    }

    pub(super) fn follower_hears(&mut self, server: ServerId, leader: ServerId, word: Word) {
        self.servers[server].heard = self.now();
        match word {
            Word::Propose(transaction) => {
                let log = &mut self.servers[server].log;
                assert!(
                    log.last().is_none_or(|last| last.zxid < transaction.zxid),
                    "proposals arrive in order"
                );
                log.push(transaction);
                let count = self.servers[server].log.len();
                self.say_to_leader(server, Word::Ack(count));
            }
            Word::Commit(count) => self.later(server, Work::Commit(count)),
            Word::Synced(connection, xid) => self.later(server, Work::Synced(connection, xid)),
            Word::Ping => {
                let signs = std::mem::take(&mut self.servers[server].signs);
                self.say_to_leader(server, Word::Pong(signs.into_iter().collect()));
            }
            Word::Validated(connection, session, is_there) => {
                self.validated(server, connection, session, is_there)
            }
            _ => debug_assert_ne!(server, leader),
        }
    }

    /// Does what comes in the order of the transactions, perhaps late.
    pub(super) fn later(&mut self, server: ServerId, work: Work) {
        let lag = self.chance.between(Duration::ZERO, self.rules.lag);
        let now = self.now();
        let state = &mut self.servers[server];
        state.works = state.works.max(now + u64::try_from(lag.as_nanos()).unwrap_or(u64::MAX));
        let (delay, term) = (state.works - now, state.term);
        self.in_nanos(delay, Event::Works(server, term, work));
    }

    pub(super) fn works(&mut self, server: ServerId, work: Work) {
        match work {
            Work::Commit(count) => self.applies(server, count),
            Work::Synced(connection, xid) => self.settles(server, connection, xid, Ok(Reply::Done)),
        }
    }

    pub(super) fn say_to_leader(&mut self, server: ServerId, word: Word) {
        let Role::Following(leader) = self.servers[server].role else { return };
        // The leader may have forgotten this follower, and looks at the follower's term.
        let terms = (self.servers[server].term, self.servers[leader].term);
        self.say(server, leader, terms, word);
    }
}
