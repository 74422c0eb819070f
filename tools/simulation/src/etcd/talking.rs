//! What members say to each other: in order, and not while one of them is cut off; and how they notice that they have lost each other.

use std::time::Duration;

use super::MemberId;
use super::cluster::{Members, nanos};
use super::event::{Event, Word};
use super::member::Role;
use crate::led::Elects;

/// The pause between two heartbeats of a leader.
pub(super) const TICK: Duration = Duration::from_millis(300);

impl Members {
    /// Says something to another member. What is said arrives in order.
    pub(super) fn say(&mut self, from: MemberId, to: MemberId, memberships: (u64, u64), word: Word) {
        let travel = self.travel_between();
        let now = self.now();
        let last = self.members[from].arrivals.entry(to).or_default();
        *last = (now + travel).max(*last);
        let delay = *last - now;
        self.in_nanos(delay, Event::Between { from, to, memberships, word });
    }

    /// Returns how long a message takes: less than a heartbeat, also a slow one. What takes longer is a member that is cut off.
    fn travel_between(&mut self) -> u64 {
        let (least, most) = self.weather.latency;
        let most = if self.chance.happens(self.weather.slow.0) { most.max(TICK / 2) } else { most };
        nanos(self.chance.between(least, most))
    }

    /// Says something to the followers of a leader.
    pub(super) fn tell_followers(&mut self, leader: MemberId, word: &Word) {
        let own = self.members[leader].membership;
        let followers = self.leading(leader).map(|leading| leading.memberships()).unwrap_or_default();
        for (follower, membership) in followers {
            self.say(leader, follower, (own, membership), word.clone());
        }
    }

    pub(super) fn answer_follower(&mut self, leader: MemberId, follower: MemberId, word: Word) {
        let own = self.members[leader].membership;
        let known = self.leading(leader).and_then(|leading| leading.followers.get(&follower));
        if let Some(membership) = known.map(|known| known.membership) {
            self.say(leader, follower, (own, membership), word);
        }
    }

    pub(super) fn say_to_leader(&mut self, member: MemberId, word: Word) {
        let Role::Following(leader) = self.members[member].role else { return };
        // The leader may have forgotten this follower, and looks at the follower's membership.
        let memberships = (self.members[member].membership, self.members[leader].membership);
        self.say(member, leader, memberships, word);
    }

    pub(super) fn hears(&mut self, from: MemberId, to: MemberId, memberships: (u64, u64), word: Word) {
        let state = &self.members[to];
        // Keep-alives go their own way, and ask for no membership.
        let is_of_lease = matches!(word, Word::Prolong(..) | Word::Prolonged(..));
        if !(is_of_lease || state.membership == memberships.1) || !state.reach.is_up {
            return;
        }
        if self.is_held_up(from, to) {
            // It is sent again, or read, when that is over.
            return self.held.push(Event::Between { from, to, memberships, word });
        }
        match self.members[to].role {
            _ if is_of_lease => self.hears_of_lease(from, to, word),
            Role::Leading(_) => self.leader_hears(from, to, memberships.0, word),
            Role::Following(leader) if leader == from => self.follower_hears(to, word),
            Role::Following(_) | Role::Looking => {}
        }
    }

    fn hears_of_lease(&mut self, from: MemberId, to: MemberId, word: Word) {
        match (word, &self.members[to].role) {
            (Word::Prolong(number, lease), Role::Leading(_)) => self.prolongs(to, from, number, lease),
            (Word::Prolonged(number, seconds), _) => self.prolonged(to, number, seconds),
            _ => {}
        }
    }

    fn leader_hears(&mut self, from: MemberId, leader: MemberId, membership: u64, word: Word) {
        let now = self.now();
        let Some(leading) = self.leading(leader) else { return };
        let follower = leading.followers.get_mut(&from).filter(|known| known.membership == membership);
        let Some(follower) = follower else { return };
        follower.heard = now;
        match word {
            Word::Has(count) => {
                follower.has = follower.has.max(count);
                self.commits(leader);
            }
            Word::Beaten(question) => {
                follower.answered = follower.answered.max(question);
                self.confirms(leader);
            }
            Word::Propose(change, origin) => self.proposes(leader, change, origin),
            Word::ReadIndex(number) => self.asked_where(leader, from, number),
            _ => {}
        }
    }

    fn follower_hears(&mut self, member: MemberId, word: Word) {
        self.members[member].heard = self.now();
        match word {
            Word::Append(at, logged) => {
                let log = &mut self.members[member].log;
                assert_eq!(log.len(), at, "entries arrive in order");
                log.push(logged);
                let count = log.len();
                self.say_to_leader(member, Word::Has(count));
            }
            Word::Commit(count) => self.applies_later(member, count),
            Word::Beat(question) => self.say_to_leader(member, Word::Beaten(question)),
            Word::ReadAt(number, at) => self.told_where(member, number, at),
            _ => {}
        }
    }

    /// Applies entries in their order, and perhaps late.
    fn applies_later(&mut self, member: MemberId, count: usize) {
        let lag = self.chance.between(Duration::ZERO, self.rules.lag);
        let now = self.now();
        let state = &mut self.members[member];
        state.works = (now + nanos(lag)).max(state.works);
        let (delay, membership) = (state.works - now, state.membership);
        self.in_nanos(delay, Event::Applies(member, membership, count));
    }

    /// Looks whether the leader, or a majority of followers, was heard of; a leader sends heartbeats.
    pub(super) fn ticks(&mut self, member: MemberId) {
        let (now, members) = (self.now(), self.members.len());
        let [patience, trust] =
            [self.rules.patience, self.rules.trust].map(|time| nanos(self.by_clock(member, time)));
        let state = &self.members[member];
        let question = match &state.role {
            Role::Leading(leading) => {
                let heard = leading.followers.values().filter(|follower| follower.heard + trust >= now);
                if heard.count() < members / 2 {
                    return self.looks(member);
                }
                leading.asked
            }
            Role::Following(_) if state.heard + patience < now => return self.looks(member),
            Role::Following(_) => 0,
            Role::Looking => return,
        };
        self.tell_followers(member, &Word::Beat(question));
        self.ticks_later(member);
    }

    pub(super) fn ticks_later(&mut self, member: MemberId) {
        let (delay, membership) = (self.by_clock(member, TICK), self.members[member].membership);
        self.after(delay, Event::Ticks(member, membership));
    }
}
