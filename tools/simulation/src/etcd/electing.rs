//! How members become leaders and followers.

use std::sync::Arc;
use std::time::Duration;

use super::MemberId;
use super::cluster::{Cluster, Members};
use super::event::{Change, Event, Logged};
use super::leading::{Follower, Leading};
use super::member::Role;
use super::talking::TICK;
use crate::chance::Chance;
use crate::led::{Coming, Elects, Group, Part, Reach};
use crate::world::{Actor, World};

impl Group for Cluster {
    type Servers = Members;

    fn with<T>(self: &Arc<Self>, work: impl FnOnce(&mut Members) -> T) -> T {
        Self::with(self, work)
    }

    fn end_runtimes(self: &Arc<Self>, actor: Actor) {
        self.with(|members| members.close_of(actor));
    }
}

impl Elects for Members {
    fn world(&self) -> &Arc<World> {
        &self.world
    }

    fn chance(&mut self) -> &mut Chance {
        &mut self.chance
    }

    fn count(&self) -> usize {
        self.members.len()
    }

    fn reach(&self, member: MemberId) -> Reach {
        self.members[member].reach
    }

    fn reach_mut(&mut self, member: MemberId) -> &mut Reach {
        &mut self.members[member].reach
    }

    fn part(&self, member: MemberId) -> Part {
        match &self.members[member].role {
            Role::Looking => Part::Looking,
            Role::Following(leader) => Part::Following(*leader),
            Role::Leading(leading) => Part::Leading(leading.term),
        }
    }

    fn knows(&self, member: MemberId) -> (u64, u64) {
        self.members[member].knows()
    }

    fn last_election(&self) -> u64 {
        self.term
    }

    fn is_electing(&mut self) -> &mut bool {
        &mut self.is_electing
    }

    fn notice(&self) -> Duration {
        TICK
    }

    fn comes(&mut self, after: Duration, what: Coming) {
        let event = match what {
            Coming::Election => Event::Election,
            Coming::Loss(member) => Event::LosesLeader(member, self.members[member].membership),
        };
        self.after(after, event);
    }

    fn bring_held(&mut self) {
        // Now, so that nothing overtakes it.
        std::mem::take(&mut self.held).into_iter().for_each(|held| self.happens(held));
    }

    fn calms(&mut self) {
        self.weather.calm_down();
        self.rules.lag = self.rules.lag.min(Duration::from_millis(5));
    }

    fn process_ends(&mut self, member: MemberId, is_noticed: bool) {
        // What had arrived, and what would have, is gone with the process.
        self.members[member].stalled.clear();
        self.members[member].revoking.clear();
        self.held.retain(|held| !matches!(held, Event::Between { to, .. } if *to == member));
        self.closes_all(member, is_noticed);
    }

    fn can_start(&self) -> bool {
        !self.is_rebuilding
    }

    /// A member that hears of a later leader follows it at once.
    fn hears_of_the_leader(&mut self, member: MemberId) {
        match self.leader().filter(|leader| *leader != member) {
            Some(leader)
                if self.reach(member).takes_part() && self.part(member) != Part::Following(leader) =>
            {
                self.looks(member);
                self.follows(member, leader);
            }
            _ => self.elect_soon(),
        }
    }

    fn catches_up(&mut self, member: MemberId) {
        let stalled = std::mem::take(&mut self.members[member].stalled);
        // Which of its tasks runs first is not known. Each hears what it is told in order.
        let hears_members_first = self.chance.happens(0.5);
        if hears_members_first {
            self.bring_held();
        }
        stalled.into_iter().for_each(|event| self.happens(event));
        if !hears_members_first {
            self.bring_held();
        }
    }

    /// A member looks for a leader. What only a leader can answer fails meanwhile, or waits for the next one.
    fn looks(&mut self, member: MemberId) {
        self.world.note(|| format!("member {member} looks for a leader"));
        let state = &mut self.members[member];
        state.role = Role::Looking;
        state.membership += 1;
        self.fails_looks(member);
        // Watches last for a while without a leader: so they outlive most elections.
        if self.chance.happens(0.5) {
            self.ends_watches(member);
        }
        self.elect_soon();
    }

    fn leads(&mut self, leader: MemberId) {
        // A majority has agreed upon it: no two leaders have the same.
        self.term += 1;
        let term = self.term;
        self.world.note(|| format!("member {leader} leads, term {term}"));
        let state = &mut self.members[leader];
        state.membership += 1;
        // What a majority may have is done, also if the last leader did not hear of it: together with the first entry of this term.
        state.log.push(Arc::new(Logged { term, change: Change::Nothing, origin: None }));
        state.role = Role::Leading(Box::new(Leading::new(term)));
        self.begins_all(leader);
        self.ticks_later(leader);
        self.commits(leader);
    }

    /// Makes a member know what the leader knows. What it has beyond that was never done.
    fn follows(&mut self, member: MemberId, leader: MemberId) {
        self.world.note(|| format!("member {member} follows {leader}"));
        let (log, applied, now) =
            (self.members[leader].log.clone(), self.members[leader].applied, self.now());
        let state = &mut self.members[member];
        (state.log, state.heard) = (log, now);
        state.role = Role::Following(leader);
        state.membership += 1;
        let (membership, has) = (state.membership, state.log.len());
        self.applies(member, applied);
        if let Some(leading) = self.leading(leader) {
            let follower = Follower { membership, has, answered: 0, heard: now };
            leading.followers.insert(member, follower);
        }
        self.ticks_later(member);
        self.commits(leader);
        // Not before the leader has applied what its log has: it would know less leases than there are. A member may go on waiting for the answer of the
        // leader before.
        self.hands_on_all(leader);
        if self.chance.happens(0.5) {
            self.hands_on_all(member);
        }
        self.hands_on_revocations(member);
    }
}
