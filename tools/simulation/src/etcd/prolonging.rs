//! Leases: prolonged by the leader alone, by its own clock, without a word to the others; ended by a change that all members make.

use std::time::Duration;

use ylock_engine_etcd::algorithm::store::{Fault, Granted};

use super::cluster::{Members, nanos};
use super::data::Applied;
use super::event::{Change, Event, Logged, Origin, Reply, Word};
use super::member::Role;
use super::{LeaseId, MemberId};
use crate::led::Elects;

/// What has become of a keep-alive.
enum Prolonged {
    /// The lease lives for so many seconds from now on; 0: there is none.
    For(i64),
    /// It has ended, and is about to be revoked: the answer comes when it is.
    TooLate,
}

impl Members {
    /// Takes a keep-alive. What its answer says of the revision is written down before the leader is asked.
    pub(super) fn asked_to_prolong(&mut self, origin: Origin, lease: LeaseId) {
        let (member, number) = (origin.member, self.next_request());
        let header = self.header(member);
        self.members[member].prolonging.insert(number, (origin, lease, header));
        self.hands_on(member, number, lease);
    }

    fn hands_on(&mut self, member: MemberId, number: u64, lease: LeaseId) {
        match self.members[member].role {
            Role::Leading(_) => self.prolongs(member, member, number, lease),
            _ => self.say_to_leader(member, Word::Prolong(number, lease)),
        }
    }

    /// Asks a new leader for what the last one has not answered.
    pub(super) fn hands_on_all(&mut self, member: MemberId) {
        let all: Vec<_> =
            self.members[member].prolonging.iter().map(|(&number, (_, lease, _))| (number, *lease)).collect();
        all.into_iter().for_each(|(number, lease)| self.hands_on(member, number, lease));
    }

    /// A leader prolongs a lease, and tells the member that asked.
    pub(super) fn prolongs(&mut self, leader: MemberId, from: MemberId, number: u64, lease: LeaseId) {
        match self.prolong(leader, lease) {
            Prolonged::For(seconds) => self.told_of_lease(leader, from, number, seconds),
            Prolonged::TooLate => {
                if let Some(leading) = self.leading(leader) {
                    leading.too_late.push((lease, from, number));
                }
            }
        }
    }

    fn prolong(&mut self, leader: MemberId, lease: LeaseId) -> Prolonged {
        let Some(seconds) = self.members[leader].data.seconds(lease) else { return Prolonged::For(0) };
        let (now, ends) = (self.now(), self.ends(leader, seconds));
        let Some(leading) = self.leading(leader) else { return Prolonged::For(0) };
        match leading.ends.get_mut(&lease) {
            Some(end) if *end > now => {
                *end = ends.max(*end);
                Prolonged::For(seconds)
            }
            _ => Prolonged::TooLate,
        }
    }

    /// Returns the moment at which a lease ends that is prolonged now: as early as the rules allow.
    fn ends(&self, leader: MemberId, seconds: i64) -> u64 {
        let time = Duration::from_secs(seconds.unsigned_abs());
        self.now() + nanos(self.by_clock(leader, time))
    }

    fn told_of_lease(&mut self, leader: MemberId, from: MemberId, number: u64, seconds: i64) {
        if from == leader {
            self.prolonged(leader, number, seconds);
        } else {
            self.say(leader, from, (0, 0), Word::Prolonged(number, seconds));
        }
    }

    /// Answers a keep-alive.
    pub(super) fn prolonged(&mut self, member: MemberId, number: u64, seconds: i64) {
        if let Some((origin, lease, header)) = self.members[member].prolonging.remove(&number) {
            self.answers(origin, Ok(Reply::Granted(Granted { header, lease, seconds })));
        }
    }

    /// Looks after leases that were made or revoked, if the member leads.
    pub(super) fn minds_leases(
        &mut self,
        member: MemberId,
        change: &Change,
        answer: &Result<Applied, Fault>,
    ) {
        match (change, answer) {
            (_, Ok(Applied::Granted(lease, seconds))) => self.begins(member, *lease, *seconds),
            (Change::Revoke(lease), _) => {
                let Some(leading) = self.leading(member) else { return };
                for (from, number) in leading.revoked(*lease) {
                    self.told_of_lease(member, from, number, 0);
                }
            }
            _ => {}
        }
    }

    /// A new leader gives every lease its whole time: what earlier leaders heard is not known.
    pub(super) fn begins_all(&mut self, leader: MemberId) {
        let leases: Vec<_> = self.members[leader].data.leases().collect();
        leases.into_iter().for_each(|(lease, seconds)| self.begins(leader, lease, seconds));
    }

    fn begins(&mut self, member: MemberId, lease: LeaseId, seconds: i64) {
        let (now, ends, membership) =
            (self.now(), self.ends(member, seconds), self.members[member].membership);
        let Some(leading) = self.leading(member) else { return };
        leading.ends.insert(lease, ends);
        self.in_nanos(ends - now, Event::MayEnd(member, membership, lease));
    }

    /// Revokes a lease, if its time is over by the clock of the leader. One that was deposed, and does not know it yet, knows nothing of the keep-alives
    /// that its successor has had; what it is about to propose when it hears of that one, it proposes to that one.
    pub(super) fn may_end(&mut self, leader: MemberId, lease: LeaseId) {
        let (now, membership) = (self.now(), self.members[leader].membership);
        let is_deposed = self.leader().is_some_and(|other| other != leader);
        let is_handed_on = is_deposed && self.chance.happens(0.5);
        let Some(leading) = self.leading(leader) else { return };
        match leading.ends.get(&lease) {
            Some(&ends) if ends > now => self.in_nanos(ends - now, Event::MayEnd(leader, membership, lease)),
            Some(_) if leading.ending.insert(lease) => {
                let term = leading.term;
                self.world.note(|| format!("member {leader} ends lease {lease:x}"));
                if is_handed_on {
                    self.members[leader].revoking.push(lease);
                } else {
                    self.logs(leader, Logged { term, change: Change::Revoke(lease), origin: None });
                }
            }
            _ => {}
        }
    }

    /// Asks the leader to revoke what this member was about to revoke when it led.
    pub(super) fn hands_on_revocations(&mut self, member: MemberId) {
        for lease in std::mem::take(&mut self.members[member].revoking) {
            self.proposes(member, Change::Revoke(lease), None);
        }
    }
}
