//! Which server leads. The servers that look for a leader agree upon one of them when they are a majority: on one that has everything that a majority
//! has ever had.

use std::sync::Arc;
use std::time::Duration;

use crate::chance::Chance;
use crate::world::World;

/// The longest time that servers take to agree on a leader.
const ELECTION: Duration = Duration::from_secs(2);

/// Whether a server runs, and who reaches it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    pub(crate) is_up: bool,
    /// True if no other server reaches it. Clients do.
    pub(crate) is_cut: bool,
    /// True while its process is stopped: what arrives waits until it goes on.
    pub(crate) is_suspended: bool,
}

impl Reach {
    /// Returns whether the others reach the server, and it does what they ask.
    pub(crate) fn takes_part(self) -> bool {
        self.is_up && !self.is_cut && !self.is_suspended
    }
}

impl Default for Reach {
    fn default() -> Self {
        Self { is_up: true, is_cut: false, is_suspended: false }
    }
}

/// The part of a server among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// It knows no leader.
    Looking,
    Following(usize),
    /// It leads since the election of this number.
    Leading(u64),
}

/// What comes after a while.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Coming {
    Election,
    /// A server notices that it has lost its leader.
    Loss(usize),
}

/// Servers that elect one of them; see the [module](self).
pub(crate) trait Elects {
    fn world(&self) -> &Arc<World>;
    fn chance(&mut self) -> &mut Chance;
    fn count(&self) -> usize;
    fn reach(&self, server: usize) -> Reach;
    fn reach_mut(&mut self, server: usize) -> &mut Reach;
    fn part(&self, server: usize) -> Part;

    /// Returns how much a server knows: of two, the one with the larger number has everything of the other one that a majority has.
    fn knows(&self, server: usize) -> (u64, u64);

    /// Returns the number of the last election.
    fn last_election(&self) -> u64;

    /// True if an election is to come.
    fn is_electing(&mut self) -> &mut bool;

    /// Returns the time within which the followers of a server notice that it is gone, where they notice it at once.
    fn notice(&self) -> Duration;

    fn comes(&mut self, after: Duration, what: Coming);

    /// Brings what arrived while one of two servers was cut off.
    fn bring_held(&mut self);

    /// A server knows no leader any more.
    fn looks(&mut self, server: usize);

    fn leads(&mut self, server: usize);
    fn follows(&mut self, server: usize, leader: usize);

    /// Ends the trouble of messages.
    fn calms(&mut self);

    /// What ends with the process of a server, and whether its clients hear of it.
    fn process_ends(&mut self, _server: usize, _is_noticed: bool) {}

    /// Returns whether servers can be started.
    fn can_start(&self) -> bool {
        true
    }

    /// What has arrived while the process of a server was stopped happens.
    fn catches_up(&mut self, _server: usize) {}

    /// Returns the server that leads, as the others see it.
    fn leader(&self) -> Option<usize> {
        (0..self.count()).find(|server| self.reach(*server).takes_part() && self.was_elected_last(*server))
    }

    fn was_elected_last(&self, server: usize) -> bool {
        self.part(server) == Part::Leading(self.last_election())
    }

    fn goes_down(&mut self, server: usize, is_noticed: bool) {
        let reach = self.reach_mut(server);
        (reach.is_up, reach.is_suspended) = (false, false);
        self.process_ends(server, is_noticed);
        self.looks(server);
        if is_noticed {
            self.lose(server);
        }
    }

    fn comes_up(&mut self, server: usize) {
        if !self.reach(server).is_up && self.can_start() {
            self.world().note(|| format!("server {server} is up"));
            self.reach_mut(server).is_up = true;
            self.elect_soon();
        }
    }

    fn heal(&mut self, server: usize) {
        if !self.reach(server).is_cut {
            return;
        }
        self.world().note(|| format!("server {server} is not cut off any more"));
        self.reach_mut(server).is_cut = false;
        self.bring_held();
        self.hears_of_the_leader(server);
    }

    fn resume(&mut self, server: usize) {
        if !self.reach(server).is_suspended {
            return;
        }
        self.world().note(|| format!("server {server} runs again"));
        self.reach_mut(server).is_suspended = false;
        self.catches_up(server);
        self.hears_of_the_leader(server);
    }

    /// A leader that hears of a later election steps down.
    fn hears_of_the_leader(&mut self, server: usize) {
        if matches!(self.part(server), Part::Leading(_)) && !self.was_elected_last(server) {
            self.looks(server);
        }
        self.elect_soon();
    }

    /// The followers of a server notice that they have lost it, each in its own time.
    fn lose(&mut self, leader: usize) {
        let notice = self.notice();
        for server in 0..self.count() {
            if self.part(server) == Part::Following(leader) {
                let delay = self.chance().between(Duration::ZERO, notice);
                self.comes(delay, Coming::Loss(server));
            }
        }
    }

    fn elect_soon(&mut self) {
        if !std::mem::replace(self.is_electing(), true) {
            let delay = self.chance().between(Duration::from_millis(50), ELECTION);
            self.comes(delay, Coming::Election);
        }
    }

    /// Makes the servers that look for a leader follow the one that there is, or elect one of them if they are a majority.
    fn elect(&mut self) {
        *self.is_electing() = false;
        let is_candidate =
            |server: &usize| self.reach(*server).takes_part() && self.part(*server) == Part::Looking;
        let candidates: Vec<_> = (0..self.count()).filter(is_candidate).collect();
        match self.leader() {
            Some(leader) => candidates.into_iter().for_each(|server| self.follows(server, leader)),
            None if candidates.len() > self.count() / 2 => self.elects(&candidates),
            None => {}
        }
        if (0..self.count()).any(|server| self.part(server) == Part::Looking) {
            self.elect_soon();
        }
    }

    /// Elects the server that knows most: it has everything that a majority has ever had.
    fn elects(&mut self, candidates: &[usize]) {
        let first = self.chance().below(candidates.len() as u64) as usize;
        let (before, behind) = candidates.split_at(first);
        let newest = behind.iter().chain(before).max_by_key(|server| self.knows(**server));
        let Some(&leader) = newest else { return };
        self.leads(leader);
        for &server in candidates.iter().filter(|server| **server != leader) {
            self.follows(server, leader);
        }
    }
}
