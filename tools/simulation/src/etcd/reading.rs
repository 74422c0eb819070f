//! How a look is answered that must show all that was done before: the leader asks whether it still leads, and the member waits until it has
//! applied what was done then.

use std::sync::Arc;

use ylock_engine_etcd::algorithm::store::Transaction;

use super::MemberId;
use super::cluster::Members;
use super::event::{Origin, Word};
use super::member::{Role, Waiting};
use super::serving::leader_changed;

impl Members {
    pub(super) fn waits(&mut self, origin: Origin, transaction: Arc<Transaction>) {
        let (member, number) = (origin.member, self.next_request());
        let waiting = Waiting { origin, transaction, at: None };
        self.members[member].looks.insert(number, waiting);
        match self.members[member].role {
            Role::Leading(_) => self.asked_where(member, member, number),
            _ => self.say_to_leader(member, Word::ReadIndex(number)),
        }
    }

    /// A leader asks a majority whether it still leads. What was done until now must then be shown.
    pub(super) fn asked_where(&mut self, leader: MemberId, from: MemberId, number: u64) {
        let done = self.members[leader].applied;
        let Some(leading) = self.leading(leader) else { return };
        leading.asked += 1;
        let question = leading.asked;
        leading.looks.push((question, from, number, done));
        self.tell_followers(leader, &Word::Beat(question));
        self.confirms(leader);
    }

    /// Tells members where their looks are, as far as a majority has answered.
    pub(super) fn confirms(&mut self, leader: MemberId) {
        let members = self.members.len();
        let Some(leading) = self.leading(leader) else { return };
        for (member, number, at) in leading.confirmed_looks(members) {
            if member == leader {
                self.told_where(leader, number, at);
            } else {
                self.answer_follower(leader, member, Word::ReadAt(number, at));
            }
        }
    }

    pub(super) fn told_where(&mut self, member: MemberId, number: u64, at: usize) {
        if let Some(waiting) = self.members[member].looks.get_mut(&number) {
            waiting.at = Some(at);
        }
        for waiting in self.members[member].due_looks() {
            self.shows(waiting.origin, &waiting.transaction);
        }
    }

    /// The looks of a member that has lost its leader fail.
    pub(super) fn fails_looks(&mut self, member: MemberId) {
        let looks = std::mem::take(&mut self.members[member].looks);
        looks.into_values().for_each(|waiting| self.answers(waiting.origin, Err(leader_changed())));
    }
}
